package main

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
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
// corpus has for some of them.
type image struct {
	names      []string
	program    string // a file of the corpus' bin folder, the image's entrypoint
	entrypoint string
}

func images() []image {
	return []image{
		{names: []string{"docker.io/library/busybox:latest", "docker.io/library/alpine:3.23"}},
		{names: []string{"docker.io/argoproj/argosay:v2"}, program: "argosay", entrypoint: "/argosay"},
		{names: []string{"docker.io/argoproj/argosay:v1"}, program: "cowsay", entrypoint: "/bin/cowsay"},
	}
}

// packImages makes the images with a container engine. The reason says why it cannot be done here.
func packImages(ctx context.Context, engine, bin string) (reason string, err error) {
	if _, err := exec.LookPath(engine); err != nil {
		return "there is no " + engine, nil
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return "there is no busybox to pack images from (Debian's busybox-static)", nil
	}
	for _, i := range images() {
		archive, err := rootFolder(ctx, busybox, bin, i)
		if err != nil {
			return "", err
		}
		args := []string{"import"}
		if i.entrypoint != "" {
			args = append(args, "--change", fmt.Sprintf("ENTRYPOINT [%q]", i.entrypoint))
		}
		for n, name := range i.names {
			cmd := exec.CommandContext(ctx, engine, append(args, "-", name)...)
			if n > 0 {
				cmd = exec.CommandContext(ctx, engine, "tag", i.names[0], name)
			}
			cmd.Stdin = bytes.NewReader(archive)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Sprintf("%v: %v: %s", cmd.Args, err, bytes.TrimSpace(out)), nil
			}
		}
	}
	return "", nil
}

// rootFolder is the tar archive of an image's root.
func rootFolder(ctx context.Context, busybox, bin string, i image) ([]byte, error) {
	applets, err := exec.CommandContext(ctx, busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the programs of busybox: %w", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, from string) error {
		if from == "" {
			return w.WriteHeader(&h)
		}
		file, err := os.Open(from)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		h.Size = info.Size()
		if err := w.WriteHeader(&h); err != nil {
			return err
		}
		_, err = io.Copy(w, file)
		return err
	}
	for _, folder := range []string{"bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr", "usr/bin", "var"} {
		mode := int64(0o755)
		if folder == "tmp" {
			mode = 0o1777
		}
		if err := add(tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: mode}, ""); err != nil {
			return nil, err
		}
	}
	if err := add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, busybox); err != nil {
		return nil, err
	}
	for name := range strings.FieldsSeq(string(applets)) {
		if name == "busybox" || name == i.program {
			continue
		}
		if err := add(tar.Header{Typeflag: tar.TypeSymlink, Name: path.Join("bin", name), Linkname: "/bin/busybox", Mode: 0o777}, ""); err != nil {
			return nil, err
		}
	}
	if i.program != "" {
		if err := add(tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(i.entrypoint, "/"), Mode: 0o755}, filepath.Join(bin, i.program)); err != nil {
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

// workingEngine finds settings with which the engine can start a container here, and gives the variable that names them.
// Some machines forbid raising limits, or have cgroups that one low-level runtime cannot cope with and another can.
func workingEngine(ctx context.Context, engine, folder string) (variable, reason string, err error) {
	var last string
	for _, runtime := range []string{"", "crun", "runc"} {
		variable := "CONTAINERS_CONF="
		if runtime != "" {
			config := filepath.Join(folder, "containers-"+runtime+".conf")
			text := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n[engine]\nruntime = \"" + runtime + "\"\n"
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return "", "", fmt.Errorf("write the settings of %s: %w", engine, err)
			}
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
				return "", "", fmt.Errorf("write the settings of %s: %w", engine, err)
			}
			variable += config
		}
		cmd := exec.CommandContext(ctx, engine, "run", "--rm", "--network", "none", images()[0].names[0], "true")
		if runtime != "" {
			cmd.Env = append(os.Environ(), variable)
		}
		out, err := cmd.CombinedOutput()
		if err == nil {
			if runtime == "" {
				variable = ""
			}
			return variable, "", nil
		}
		last = string(bytes.TrimSpace(out))
	}
	return "", engine + " cannot start a container here: " + last, nil
}
