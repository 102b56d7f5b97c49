// Package container runs tasks in containers of their own images with the podman or docker program of this machine. In
// each container the executor runs the task; it and the task folder are mounted into it. Everything else is as in
// the package process: folders, adoption, outputs.
package container

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

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

// New makes a backend. It looks at once whether the program is there.
func New(cfg Config, sink process.Sink) (*process.Backend, error) {
	l := &launcher{
		env: cfg.Process.Env, executor: cfg.Executor, network: cfg.Network, options: cfg.Options, images: map[string]imageConfig{},
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
	if l.network == "" {
		l.network = "host"
	}
	l.options = append(machineOptions(filepath.Base(cfg.Program)), l.options...)
	cfg.Process.Launcher = l
	return process.New(cfg.Process, sink)
}

// launcher is the process backend's launcher.
type launcher struct {
	program, executor, network string
	options, env               []string

	mu     sync.Mutex
	images map[string]imageConfig
}

func (l *launcher) Folder() string { return folderPath }

// Command runs the executor in the image of the task's containers. Signals that the program gets it hands on.
func (l *launcher) Command(task process.Launch) ([]string, error) {
	image, err := oneImage(task.Containers)
	if err != nil {
		return nil, err
	}
	argv := []string{
		l.program, "run", "--rm", "--log-driver", "none", "--network", l.network, "--security-opt", "label=disable",
		"--volume", l.executor + ":" + executorPath + ":ro", "--volume", task.Folder + ":" + folderPath,
	}
	for _, m := range task.Mounts {
		mount := m.From + ":" + m.Path
		if m.ReadOnly {
			mount += ":ro"
		}
		argv = append(argv, "--volume", mount)
	}
	if task.Limits && len(task.Containers) == 1 {
		c := task.Containers[0]
		memory, err := process.Quantity(c.MemoryLimit)
		if err != nil {
			return nil, fmt.Errorf("memory limit: %w", err)
		}
		cpu, err := process.Quantity(c.CPULimit)
		if err != nil {
			return nil, fmt.Errorf("cpu limit: %w", err)
		}
		if memory > 0 {
			argv = append(argv, "--memory", fmt.Sprintf("%.0fb", memory))
		}
		if cpu > 0 {
			argv = append(argv, "--cpus", fmt.Sprintf("%.3f", cpu))
		}
	}
	argv = append(argv, l.options...)
	return append(argv, "--entrypoint", executorPath, image, folderPath), nil
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
