// Package images packs the container images that manifests of the corpora name, on this machine and without a registry:
// busybox under the names of small ones, and a Debian with the programs that the others need.
package images

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Image is a container image that can be packed here: busybox, and the programs that the corpus has for some images, at the
// paths where they have them.
type Image struct {
	// Names are the full names of images that it stands for.
	Names []string
	// Program is a file of the corpus' bin folder; Entrypoint where it goes, and what the image runs.
	Program, Entrypoint string
}

// Packed is the tag of images that manifests name without one.
const Packed = "packed"

// Small are the images that busybox is enough for.
func Small() []Image {
	return []Image{
		{Names: []string{"docker.io/library/busybox:latest", "docker.io/library/alpine:3.23", "docker.io/library/alpine:" + Packed}},
		{Names: []string{"docker.io/argoproj/argosay:v2"}, Program: "argosay", Entrypoint: "/argosay"},
		{Names: []string{"docker.io/argoproj/argosay:v1"}, Program: "cowsay", Entrypoint: "/usr/local/bin/cowsay"},
	}
}

// Root is the tar archive of a small image's root; bin is the corpus' folder of programs.
func (i Image) Root(ctx context.Context, busybox, bin string) ([]byte, error) {
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the programs of busybox: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, body []byte) error {
		h.Size = int64(len(body))
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err := w.Write(body)
		return err
	}
	addFile := func(name, from string) error {
		body, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return add(tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755}, body)
	}
	for _, folder := range []string{"bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr", "usr/bin", "usr/local", "usr/local/bin", "var"} {
		mode := int64(0o755)
		if folder == "tmp" {
			mode = 0o1777
		}
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: mode}, nil); err != nil {
			return nil, err
		}
	}
	if err := addFile("bin/busybox", busybox); err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(applets)) {
		if name == "busybox" {
			continue
		}
		if err := add(tar.Header{Typeflag: tar.TypeSymlink, Name: path.Join("bin", name), Linkname: "/bin/busybox", Mode: 0o777}, nil); err != nil {
			return nil, err
		}
	}
	// Some manifests ask for bash, where the recorded runs had one.
	if err := add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/bash", Mode: 0o755}, []byte("#!/bin/sh\nexec sh \"$@\"\n")); err != nil {
		return nil, err
	}
	if i.Program != "" {
		if err := addFile(strings.TrimPrefix(i.Entrypoint, "/"), filepath.Join(bin, i.Program)); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// FullName completes an image's name as docker does.
func FullName(name string) string {
	if !strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") {
		name += ":latest"
	}
	switch strings.Count(name, "/") {
	case 0:
		return "docker.io/library/" + name
	case 1:
		return "docker.io/" + name
	}
	return name
}
