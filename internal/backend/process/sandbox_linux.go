package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// sandbox is how tasks get a private view of the machine: each executor is started as the first process of namespaces of
// its own, and puts the view together there.
type sandbox struct {
	root   bool // else in a user namespace
	memory bool // what tasks write is kept in memory
	layers []spec.Layer
}

// openSandbox tries which kind of sandbox this machine allows. It is nil where none is wanted or possible.
func openSandbox(cfg Config) (*sandbox, error) {
	if cfg.Sandbox == Off {
		return nil, nil
	}
	v := &sandbox{root: os.Geteuid() == 0}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		v.layers = layers(string(mounts))
		if !v.root {
			v.layers, err = pieces(v.layers, "/")
			// In a user namespace a folder of another user cannot be written below, open to all as it may be, unless it is
			// the top of a layer.
			if isFolder("/var/tmp") {
				v.layers = append(v.layers, spec.Layer{Path: "/var/tmp"})
			}
		}
	}
	if err == nil {
		v.layers = withFresh(v.layers, temporary, folders(cfg))
		if err = v.probe(cfg); err != nil {
			// The folder's file system cannot take what tasks write, as inside most containers; memory always can.
			v.memory = true
			if v.probe(cfg) == nil {
				cfg.Log.Warn("what tasks write is kept in memory, because the folder cannot take it", "folder", cfg.Home, "reason", err)
				err = nil
			}
		}
	}
	switch {
	case err == nil:
		return v, nil
	case cfg.Sandbox == On:
		return nil, fmt.Errorf("process backend: this machine allows no sandbox: %w", err)
	}
	cfg.Log.Warn("tasks run without a sandbox: they see and change this machine's own files", "reason", err)
	return nil, nil
}

// folders are those where tasks find programs and libraries, and our own.
func folders(cfg Config) []string {
	list := slices.Clone(cfg.ExtraPath)
	for _, v := range cfg.Env {
		switch name, value, _ := strings.Cut(v, "="); name {
		case "PATH", "PYTHONPATH", "LD_LIBRARY_PATH":
			list = append(list, filepath.SplitList(value)...)
		case "VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME":
			list = append(list, value)
		}
	}
	// A virtual environment's programs need the libraries beside them.
	for _, folder := range slices.Clone(list) {
		if filepath.Base(folder) == "bin" {
			list = append(list, filepath.Dir(folder))
		}
	}
	list = append(list, cfg.Home, filepath.Join(cfg.Home, "envs"), filepath.Join(cfg.Home, "artifacts"))
	// Any of them may be a link to where it really is.
	for _, folder := range slices.Clone(list) {
		if place, err := filepath.EvalSymlinks(folder); err == nil && place != folder {
			list = append(list, place)
		}
	}
	// What lies above comes first, so that nothing is placed twice.
	slices.SortFunc(list, func(a, b string) int { return len(a) - len(b) })
	return list
}

// probe starts an executor that only enters the view.
func (v *sandbox) probe(cfg Config) (err error) {
	if err := os.MkdirAll(cfg.Home, 0o755); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(cfg.Home, "probe-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeAll(folder)) }()
	s := spec.Spec{Path: "probe"}
	v.describe(folder, &s)
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := spec.Write(root, spec.SpecFile, s); err != nil {
		return err
	}
	p, err := startExecutor(append(append([]string{}, cfg.Executor...), folder), executorEnv(), folder, v)
	if err != nil {
		return err
	}
	p.reap()
	p.close()
	result, err := spec.Read[spec.Result](root, spec.ResultFile)
	if err != nil {
		return fmt.Errorf("the executor ended without a result%s", said(folder, false))
	}
	if result.Phase != spec.Succeeded {
		return errors.New(result.Message)
	}
	for _, w := range result.Warnings {
		cfg.Log.Debug("sandbox", "warning", w)
	}
	return nil
}

// describe adds the sandbox to a task.
func (v *sandbox) describe(folder string, s *spec.Spec) {
	s.Sandbox = &spec.Sandbox{Upper: filepath.Join(folder, upperFolder), Memory: v.memory, User: !v.root, Layers: v.layers}
}

// attributes puts a new executor into namespaces of its own.
func (v *sandbox) attributes(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	if !v.root {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
}

func bootID() string { return spec.Boot() }
