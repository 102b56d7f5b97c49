package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/test/conformance/corpus"
)

// image is a container image that can be packed here: busybox under the names of small images, and the programs that the
// corpus has for some of them, at the paths where the images have them.
type image struct {
	names      []string
	program    string // a file of the corpus' bin folder
	entrypoint string // where it goes, and what the image runs
}

func images() []image {
	return []image{
		{names: []string{"docker.io/library/busybox:latest", "docker.io/library/alpine:3.23"}},
		{names: []string{"docker.io/argoproj/argosay:v2"}, program: "argosay", entrypoint: "/argosay"},
		{names: []string{"docker.io/argoproj/argosay:v1"}, program: "cowsay", entrypoint: "/usr/local/bin/cowsay"},
	}
}

// rootFolder is the tar archive of an image's root.
func rootFolder(ctx context.Context, busybox, bin string, i image) ([]byte, error) {
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
	if i.program != "" {
		if err := addFile(strings.TrimPrefix(i.entrypoint, "/"), filepath.Join(bin, i.program)); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: *['"]?([^'"\s]+)`)

// onlyPacked says whether a manifest uses images, and none but those that are packed here.
func onlyPacked(m corpus.Manifest) bool {
	var known []string
	for _, i := range images() {
		known = append(known, i.names...)
	}
	used := false
	for _, file := range append([]string{m.Path}, m.Needs...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		for _, match := range imageLine.FindAllStringSubmatch(string(text), -1) {
			used = true
			if !slices.Contains(known, fullName(match[1])) {
				return false
			}
		}
	}
	return used
}

// fullName completes an image's name as docker does.
func fullName(name string) string {
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
