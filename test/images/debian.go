package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Debian are the images that a Debian with some packages stands in for: those with Python, and servers and tools that
// some manifests need.
func Debian() []string {
	return []string{
		"docker.io/library/python:alpine3.23", "docker.io/library/python:3.9", "docker.io/library/debian:9.4",
		"docker.io/library/debian:9.5-slim", "docker.io/library/debian:9.2", "docker.io/curlimages/curl:latest",
		"docker.io/library/nginx:1.13", "docker.io/library/nginx:latest", "docker.io/library/influxdb:1.2", "docker.io/stedolan/jq:latest",
	}
}

// packages are what the manifests' commands need beyond the smallest system.
const packages = "python3,python3-pip,curl,jq,nginx-light,influxdb,influxdb-client,ca-certificates,git,procps,busybox-static"

// ErrNoDebian says that a Debian cannot be made here.
var ErrNoDebian = errors.New("cannot make a Debian image here")

// DebianRoot gives the path of a tar archive of a Debian's root folder, made in folder once (a minute, as root, from the
// machine's own package mirror).
func DebianRoot(ctx context.Context, folder string) (string, error) {
	archive := filepath.Join(folder, "debian-"+hex256([]byte(packages + " python, sh"))[:8]+".tar")
	if _, err := os.Stat(archive); err == nil {
		return archive, nil
	}
	if os.Geteuid() != 0 {
		return "", fmt.Errorf("%w: it needs root", ErrNoDebian)
	}
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoDebian, err)
	}
	mirror, err := output(ctx, "apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Codename: bookworm")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoDebian, err)
	}
	if mirror == "" {
		return "", fmt.Errorf("%w: the package sources have no bookworm", ErrNoDebian)
	}
	mirror, _, _ = strings.Cut(mirror, "\n")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make a folder for images: %w", err)
	}
	root, err := os.MkdirTemp(folder, ".debian-") // the Go tools do not look into such folders
	if err != nil {
		return "", fmt.Errorf("make a folder for images: %w", err)
	}
	defer os.RemoveAll(root)
	if _, err := output(ctx, "debootstrap", "--variant=minbase", "--include="+packages, "bookworm", root, mirror); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoDebian, err)
	}
	// Python has another name in its images, and the shell of most that this stands in for is busybox'.
	for link, target := range map[string]string{"usr/local/bin/python": "/usr/bin/python3", "bin/sh": "busybox"} {
		name := filepath.Join(root, filepath.FromSlash(link))
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("pack the Debian image: %w", err)
		}
		if err := os.Symlink(target, name); err != nil {
			return "", fmt.Errorf("pack the Debian image: %w", err)
		}
	}
	partial := archive + ".partial"
	_, err = output(ctx, "tar", "-C", root, "--exclude=./var/cache/apt", "--exclude=./var/lib/apt", "--exclude=./usr/share/doc",
		"--exclude=./usr/share/locale", "--exclude=./dev/*", "-cf", partial, ".")
	if err != nil {
		return "", fmt.Errorf("pack the Debian image: %w", err)
	}
	return archive, os.Rename(partial, archive)
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	var errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(errs.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}
