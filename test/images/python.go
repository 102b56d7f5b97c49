package images

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Python are the images that compiled pipelines run their components in: a Debian with the layer of [PythonLayer] stands in
// for all of them.
func Python() []string {
	return []string{
		"docker.io/library/python:3.11", "docker.io/library/python:alpine3.9", "public.ecr.aws/docker/library/python:3.12",
		"registry.access.redhat.com/ubi9/python-311:" + Packed, "docker.io/google/cloud-sdk:slim", "docker.io/google/cloud-sdk:" + Packed,
	}
}

// Where the layer has the packages that pip finds in the place of an index, and those that are installed.
const (
	wheelFolder   = "usr/local/share/wheels"
	packageFolder = "usr/local/lib/python3.11/dist-packages"
)

// pipSettings let the commands that install a component's packages do so in a pod, which reaches no index, as they are.
const pipSettings = "[global]\nno-index = true\nfind-links = /" + wheelFolder + "\nbreak-system-packages = true\n"

// PythonLayer gives the path of a tar archive with the packages that components install when they start: each line of a
// requirements file as a wheel, without what it depends on, and the first of them installed. programs is a folder of
// programs that images have. It is made in folder once (a minute, from the machine's own package index).
func PythonLayer(ctx context.Context, requirements, programs, folder string) (string, error) {
	text, err := os.ReadFile(requirements)
	if err != nil {
		return "", fmt.Errorf("read what components install: %w", err)
	}
	archive := filepath.Join(folder, "python-"+hex256(append(text, pipSettings...))[:8]+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for images: %w", err)
	}
	root, err := os.MkdirTemp(folder, ".python-")
	if err != nil {
		return "", fmt.Errorf("make a folder for images: %w", err)
	}
	defer os.RemoveAll(root)
	if err := fillPython(ctx, root, wanted(string(text)), programs); err != nil {
		return "", fmt.Errorf("pack the Python image: %w", err)
	}
	partial := archive + ".partial"
	if _, err := output(ctx, "tar", "-C", root, "--owner=0", "--group=0", "-cf", partial, "usr", "etc"); err != nil {
		return "", fmt.Errorf("pack the Python image: %w", err)
	}
	return archive, os.Rename(partial, archive)
}

// wanted are the lines of a requirements file that name a package.
func wanted(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

func fillPython(ctx context.Context, root string, requirements []string, programs string) error {
	wheels, bin := filepath.Join(root, wheelFolder), filepath.Join(root, "usr/local/bin")
	for _, folder := range []string{wheels, bin, filepath.Join(root, "etc")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	pip := func(args ...string) error {
		_, err := output(ctx, "python3", append([]string{"-m", "pip", "--quiet", "--disable-pip-version-check"}, args...)...)
		return err
	}
	for i, r := range requirements { // one by one: they are versions of the same package
		if err := pip("wheel", "--no-deps", "--wheel-dir", wheels, r); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := pip("install", "--no-deps", "--no-index", "--find-links", wheels, "--target", filepath.Join(root, packageFolder), r); err != nil {
			return err
		}
	}
	if err := os.CopyFS(bin, os.DirFS(programs)); err != nil {
		return err
	}
	if err := os.Chmod(root, 0o755); err != nil { // it becomes "/"
		return err
	}
	return os.WriteFile(filepath.Join(root, "etc/pip.conf"), []byte(pipSettings), 0o644)
}
