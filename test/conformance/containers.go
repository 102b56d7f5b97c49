package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/images"
)

// packedLabel marks the images that were packed here.
const packedLabel = "dev.sluice.packed"

// containerEngine is podman or docker. Podman keeps what is packed here in a store of its own, beside the images of
// whoever runs this.
type containerEngine struct {
	program string
	env     []string // "NAME=value"; whatever calls the engine needs them
	private bool
}

func openEngine(ctx context.Context, program, folder string) (*containerEngine, error) {
	e := &containerEngine{program: program}
	if filepath.Base(program) != "podman" {
		return e, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make a folder for images: %w", err)
	}
	config := filepath.Join(folder, "storage.conf")
	e.env, e.private = []string{"CONTAINERS_STORAGE_CONF=" + config}, true
	for _, driver := range []string{"overlay", "vfs"} { // the second works everywhere
		text := fmt.Sprintf("[storage]\ndriver = %q\ngraphroot = %[2]q\nrootless_storage_path = %[2]q\nrunroot = %[3]q\n",
			driver, filepath.Join(folder, "images"), filepath.Join(folder, "run"))
		if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write the settings of %s: %w", program, err)
		}
		if _, err := e.run(ctx, nil, "info"); err == nil {
			break
		}
	}
	return e, nil
}

func (e *containerEngine) run(ctx context.Context, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, e.program, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), e.env...), bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	text := string(bytes.TrimSpace(out))
	if err != nil {
		return text, fmt.Errorf("%v: %w: %s", cmd.Args, err, text)
	}
	return text, nil
}

// pack makes the images. The reason says why it cannot be done here.
func (e *containerEngine) pack(ctx context.Context, bin string) (reason string, err error) {
	if _, err := exec.LookPath(e.program); err != nil {
		return "there is no " + e.program, nil
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return "there is no busybox to pack images from (Debian's busybox-static)", nil
	}
	if e.private { // what an earlier run left that was killed
		if _, err := e.run(ctx, nil, "rm", "--force", "--all"); err != nil {
			return err.Error(), nil
		}
	}
	for _, i := range images.Small() {
		archive, err := i.Root(ctx, busybox, bin)
		if err != nil {
			return "", err
		}
		for n, name := range i.Names {
			if reason := e.taken(ctx, name); reason != "" {
				return reason, nil
			}
			args := []string{"tag", i.Names[0], name}
			if n == 0 {
				args = []string{"import", "--change", "LABEL " + packedLabel + "=yes"}
				if i.Entrypoint != "" {
					args = append(args, "--change", fmt.Sprintf("ENTRYPOINT [%q]", i.Entrypoint))
				}
				args = append(args, "-", name)
			}
			if _, err := e.run(ctx, archive, args...); err != nil {
				return err.Error(), nil
			}
		}
	}
	if e.private { // the images of earlier runs, which have no name now
		_, err = e.run(ctx, nil, "image", "prune", "--force")
	}
	return "", err
}

// taken says why an image cannot have a name: in a store that is not ours it may be someone's.
func (e *containerEngine) taken(ctx context.Context, name string) string {
	if e.private {
		return ""
	}
	label, err := e.run(ctx, nil, "image", "inspect", "--format", fmt.Sprintf("{{index .Config.Labels %q}}", packedLabel), name)
	if err != nil || label == "yes" {
		return "" // it is not there, or ours
	}
	return fmt.Sprintf("%s has an image %s that was not packed here and would be replaced", e.program, name)
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: *['"]?([^'"\s]+)`)

// onlyPacked says whether a manifest uses images, and none but those that are packed here.
func onlyPacked(m corpus.Manifest) bool {
	var known []string
	for _, i := range images.Small() {
		known = append(known, i.Names...)
	}
	used := false
	for _, file := range append([]string{m.Path}, m.Needs...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		for _, match := range imageLine.FindAllStringSubmatch(string(text), -1) {
			used = true
			if !slices.Contains(known, images.FullName(match[1])) {
				return false
			}
		}
	}
	return used
}
