package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/program"
)

// Where the executor and the task folder are in a container.
const (
	executorPath = "/sluice-executor"
	folderPath   = "/sluice"
)

// Config is how containers are run.
type Config struct {
	// Program is podman or docker, a name in PATH or a path.
	Program string
	// Executor is the path of a static sluice-executor; empty is the one in the folder of the running program.
	Executor string
	// Network is the network that tasks are in; empty is the machine's own, where they reach what is on localhost.
	Network string
	// Options are more options for "podman run".
	Options []string
	// Process is the rest; its Executor, Sandbox and Launcher mean nothing here.
	Process process.Config
}

// New makes a backend. It looks at once whether the program is there and works.
func New(cfg Config, sink process.Sink) (*process.Backend, error) {
	l := &launcher{
		name: cfg.Program, env: cfg.Process.Env, executor: cfg.Executor, network: cfg.Network,
	}
	var err error
	if l.program, err = exec.LookPath(cfg.Program); err != nil {
		return nil, fmt.Errorf("container backend: %w", err)
	}
	if l.executor == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("container backend: find the executor: %w", err)
		}
		l.executor = filepath.Join(filepath.Dir(self), "sluice-executor")
	}
	if _, err := os.Stat(l.executor); err != nil {
		return nil, fmt.Errorf("container backend: the executor that is put into containers is missing: %w", err)
	}
	if _, err := l.output(context.Background(), "version"); err != nil {
		return nil, fmt.Errorf("container backend: %s does not work here: %w", cfg.Program, err)
	}
	if l.network == "" {
		l.network = "host"
	}
	l.options = append(machineOptions(filepath.Base(cfg.Program)), cfg.Options...)
	cfg.Process.Launcher = l
	return process.New(cfg.Process, sink)
}

// launcher is the process backend's launcher. name is how people call the program that is at the path program.
type launcher struct {
	name, program, executor, network string
	options, env                     []string

	images images
}

func (l *launcher) Folder() string { return folderPath }

// Command runs the executor in the image of the task's containers. The image is there: [launcher.User] has fetched it.
func (l *launcher) Command(task process.Launch) ([]string, error) {
	image, err := oneImage(task.Containers)
	if err != nil {
		return nil, err
	}
	argv := []string{
		l.program, "run", "--rm", "--name", containerName(task.Folder), "--label", folderLabel + "=" + task.Folder,
		"--pull", "never", "--log-driver", "none", "--network", l.network, "--user", "0:0", "--security-opt", "label=disable",
		"--volume", l.executor + ":" + executorPath + ":ro", "--volume", task.Folder + ":" + folderPath,
	}
	for _, m := range task.Mounts {
		mount := m.From + ":" + m.Path
		if m.ReadOnly {
			mount += ":ro"
		}
		argv = append(argv, "--volume", mount)
	}
	if task.Limits {
		limits, err := limitOptions(task.Containers)
		if err != nil {
			return nil, err
		}
		argv = append(argv, limits...)
	}
	argv = append(argv, l.options...)
	return append(argv, "--entrypoint", executorPath, image, folderPath), nil
}

// limitOptions limit a task to what its containers may use together; one without a limit lifts it.
func limitOptions(containers []program.Container) ([]string, error) {
	var options []string
	for _, kind := range []struct {
		what, option, format string
		of                   func(program.Container) string
	}{
		{"memory", "--memory", "%.0fb", func(c program.Container) string { return c.MemoryLimit }},
		{"cpu", "--cpus", "%.3f", func(c program.Container) string { return c.CPULimit }},
	} {
		sum, all := 0.0, true
		for _, c := range containers {
			most, err := process.Quantity(kind.of(c))
			if err != nil {
				return nil, fmt.Errorf("%s limit: %w", kind.what, err)
			}
			sum += most
			all = all && most > 0
		}
		if all {
			options = append(options, kind.option, fmt.Sprintf(kind.format, sum))
		}
	}
	return options, nil
}

// oneImage is the image that all containers of a task share: they run in one.
func oneImage(containers []program.Container) (string, error) {
	image := containers[0].Image
	for _, c := range containers[1:] {
		if c.Image != image {
			return "", fmt.Errorf("the containers of a set run in one container here and so must have one image, not %q and %q", image, c.Image)
		}
	}
	if image == "" {
		return "", errors.New("the container names no image")
	}
	return image, nil
}
