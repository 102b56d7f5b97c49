package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	"github.com/sluice-ml/sluice/internal/program"
)

// imageConfig is what an image says about how it is run.
type imageConfig struct {
	Entrypoint []string
	Cmd        []string
	User       string
}

// images are what is known of images; they do not change while they are used.
type images struct {
	mu     sync.Mutex
	byName map[string]*image
}

// image is one of them. Who looks first fetches it, the others wait.
type image struct {
	turn   chan struct{}
	config *imageConfig
}

func (i *images) get(name string) *image {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.byName == nil {
		i.byName = map[string]*image{}
	}
	one := i.byName[name]
	if one == nil {
		one = &image{turn: make(chan struct{}, 1)}
		i.byName[name] = one
	}
	return one
}

// Entrypoint gives what an image runs: its entrypoint, and its own arguments where the container has none.
func (l *launcher) Entrypoint(ctx context.Context, image string, args []string) ([]string, error) {
	c, err := l.inspect(ctx, image, false)
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

// settings are those of a container or pod, in Kubernetes' own JSON, that matter here.
type settings struct {
	ImagePullPolicy string `json:"imagePullPolicy"`
	SecurityContext struct {
		RunAsUser  *int64 `json:"runAsUser"`
		RunAsGroup *int64 `json:"runAsGroup"`
	} `json:"securityContext"`
}

// User gives whom a container's command runs as.
func (l *launcher) User(ctx context.Context, c program.Container, pod program.JSON) (string, error) {
	var own, shared settings
	if err := errors.Join(decode(c.Raw, &own), decode(pod, &shared)); err != nil {
		return "", err
	}
	if c.Image == "" {
		return "", errors.New("it names no image")
	}
	config, err := l.inspect(ctx, c.Image, own.ImagePullPolicy == "Never")
	if err != nil {
		return "", err
	}
	user, group, hasGroup := strings.Cut(config.User, ":")
	for _, s := range []settings{shared, own} {
		if id := s.SecurityContext.RunAsUser; id != nil {
			user = fmt.Sprint(*id)
		}
		if id := s.SecurityContext.RunAsGroup; id != nil {
			group, hasGroup = fmt.Sprint(*id), true
		}
	}
	if hasGroup {
		if user == "" {
			user = "0"
		}
		return user + ":" + group, nil
	}
	return user, nil
}

func decode(data program.JSON, into *settings) error {
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("read the settings of the container or pod: %w", err)
	}
	return nil
}

// inspect reads an image's configuration. It pulls the image where it is not here and that is not forbidden.
func (l *launcher) inspect(ctx context.Context, name string, never bool) (imageConfig, error) {
	one := l.images.get(name)
	select {
	case one.turn <- struct{}{}:
		defer func() { <-one.turn }()
	case <-ctx.Done():
		return imageConfig{}, context.Cause(ctx)
	}
	if one.config != nil {
		return *one.config, nil
	}
	out, err := l.output(ctx, "image", "inspect", "--format", "{{json .Config}}", name)
	if err != nil && !never {
		if _, err = l.output(ctx, "pull", "--quiet", fullName(name)); err == nil {
			out, err = l.output(ctx, "image", "inspect", "--format", "{{json .Config}}", name)
		}
	}
	if ctx.Err() != nil {
		return imageConfig{}, context.Cause(ctx)
	}
	if err != nil {
		return imageConfig{}, fmt.Errorf("image %s is not on this machine and could not be fetched: %w; build it with \"%s build -t %s FOLDER\", or make it of a root folder with \"tar -C FOLDER -c . | %s import - %s\"",
			name, err, l.name, name, l.name, name)
	}
	var c imageConfig
	if err := json.Unmarshal(out, &c); err != nil {
		return c, fmt.Errorf("read the configuration of image %s: %w", name, err)
	}
	one.config = &c
	return c, nil
}

// fullName completes an image's name as Kubernetes does; podman alone would ask which registry is meant.
func fullName(name string) string {
	first, rest, path := strings.Cut(name, "/")
	switch {
	case !path:
		return "docker.io/library/" + name
	case !strings.ContainsAny(first, ".:") && first != "localhost" && rest != "":
		return "docker.io/" + name
	}
	return name
}

// output runs the program and gives what it printed; an error has the last line of what it complained of.
func (l *launcher) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, l.program, args...)
	cmd.Env, cmd.Dir = l.env, "/"
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		said := strings.TrimSpace(string(exit.Stderr))
		said = said[strings.LastIndexByte(said, '\n')+1:]
		if said == "" {
			said = err.Error()
		}
		return nil, fmt.Errorf("%s %s: %s", l.name, args[0], strings.TrimPrefix(said, "Error: "))
	}
	return out, err
}
