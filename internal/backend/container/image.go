package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// imageConfig is what an image says about how it is run.
type imageConfig struct {
	Entrypoint []string
	Cmd        []string
}

// Entrypoint gives what an image runs: its entrypoint, and its own arguments where the container has none.
func (l *launcher) Entrypoint(ctx context.Context, image string, args []string) ([]string, error) {
	c, err := l.inspect(ctx, image)
	if err != nil {
		return nil, err
	}
	argv := append([]string{}, c.Entrypoint...)
	if len(args) == 0 {
		argv = append(argv, c.Cmd...)
	}
	if len(argv) == 0 && len(args) == 0 {
		return nil, fmt.Errorf("image %s runs nothing by itself: give the container a command", image)
	}
	return argv, nil
}

// inspect reads an image's configuration, which it pulls where it is not here. Images do not change while they are used.
func (l *launcher) inspect(ctx context.Context, image string) (imageConfig, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, known := l.images[image]; known {
		return c, nil
	}
	out, err := l.output(ctx, "image", "inspect", "--format", "{{json .Config}}", image)
	if err != nil {
		if _, err := l.output(ctx, "pull", "--quiet", image); err != nil {
			return imageConfig{}, fmt.Errorf("image %s: %w", image, err)
		}
		if out, err = l.output(ctx, "image", "inspect", "--format", "{{json .Config}}", image); err != nil {
			return imageConfig{}, fmt.Errorf("image %s: %w", image, err)
		}
	}
	var c imageConfig
	if err := json.Unmarshal(out, &c); err != nil {
		return c, fmt.Errorf("image %s: %w", image, err)
	}
	l.images[image] = c
	return c, nil
}

// output runs the program and gives what it printed.
func (l *launcher) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, l.program, args...)
	cmd.Env = l.env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}
