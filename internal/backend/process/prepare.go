package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// prepare makes the task folder: everything that the executor needs. It can be done again.
func (a *attempt) prepare() error {
	if err := a.makeFolder(); err != nil {
		return fmt.Errorf("make the task folder: %w", err)
	}
	task, err := a.spec()
	if err != nil {
		return err
	}
	data, err := json.Marshal(task)
	if err != nil {
		return fmt.Errorf("make the task folder: %w", err)
	}
	// Nobody reads it before the executor starts, and whoever starts another one writes it anew.
	return os.WriteFile(filepath.Join(a.folder, spec.SpecFile), data, 0o600)
}

// makeFolder makes the task folder and what is in it for any task. Others cannot see it: what lies above it is closed.
func (a *attempt) makeFolder() error {
	if err := os.MkdirAll(filepath.Dir(a.folder), 0o700); err != nil {
		return err
	}
	folders := []string{"."}
	switch {
	case a.b.cfg.Launcher != nil:
	case a.b.view != nil:
		folders = append(folders, homeFolder)
	default:
		folders = append(folders, homeFolder, tempFolder)
	}
	for _, name := range folders {
		if err := os.Mkdir(filepath.Join(a.folder, name), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if a.b.cfg.Launcher == nil {
		return nil
	}
	if err := syscall.Mkfifo(filepath.Join(a.folder, spec.StopPipe), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// spec says all that the executor has to do.
func (a *attempt) spec() (spec.Spec, error) {
	body := a.cmd.Body
	s := spec.Spec{
		Path: a.cmd.Path, Result: body.Result, ExecutorOutput: body.ExecutorOutput, Timeout: a.cmd.Timeout,
		Grace: a.b.cfg.Grace, Boot: a.b.boot, Launched: a.b.cfg.Launcher != nil,
	}
	if body.Kind != program.Containers && body.Kind != program.Script {
		return s, fmt.Errorf("the process backend cannot run a task of kind %q", body.Kind)
	}
	if len(body.Containers) == 0 {
		return s, errors.New("the task has no container")
	}
	var err error
	if s.Inputs, err = a.stageInputs(); err != nil {
		return s, err
	}
	if err := a.volumes(&s); err != nil {
		return s, err
	}
	python, err := a.python()
	if err != nil {
		return s, err
	}
	for i, c := range body.Containers {
		one, err := a.container(c, i == 0, python)
		if err != nil {
			return s, err
		}
		s.Containers = append(s.Containers, one)
	}
	a.outputs(&s)
	if a.b.cfg.Launcher != nil { // it mounts and limits by itself
		a.mounts, s.Mounts = s.Mounts, nil
		return s, nil
	}
	if a.b.view != nil {
		a.b.view.describe(a.folder, &s)
		s.Sandbox.Links = a.programs()
	}
	return s, a.limits(&s)
}

// container makes one container's command ready.
func (a *attempt) container(c program.Container, first bool, python *pythonEnv) (spec.Container, error) {
	name := c.Name
	if name == "" {
		name = "main"
	}
	out := spec.Container{Name: name, Needs: c.Needs, Dir: c.WorkingDir, Inherit: a.b.cfg.Launcher != nil}
	vars, err := a.env(c, python)
	if err != nil {
		return out, fmt.Errorf("container %s: %w", name, err)
	}
	out.Env = vars.list()
	if a.b.cfg.Launcher != nil {
		if out.User, err = a.b.cfg.Launcher.User(a.ctx, c, a.cmd.Body.Pod); err != nil {
			return out, fmt.Errorf("container %s: %w", name, err)
		}
	}
	argv, err := a.argv(c, first && python != nil, vars)
	if err != nil {
		return out, fmt.Errorf("container %s: %w", name, err)
	}
	out.Argv = argv
	switch {
	case out.Dir != "":
	case a.b.cfg.Launcher != nil: // the image's own
	default:
		out.Dir = filepath.Join(a.folder, homeFolder)
		if a.b.view != nil && a.b.view.root {
			out.Dir = "/" // what most images have
		}
	}
	if c.Retries != "" {
		if out.Retries, err = strconv.Atoi(c.Retries); err != nil {
			return out, fmt.Errorf("container %s: retries: %w", name, err)
		}
	}
	if c.RetryDelay != "" {
		if out.Delay, err = duration(c.RetryDelay); err != nil {
			return out, fmt.Errorf("container %s: retry delay: %w", name, err)
		}
	}
	return out, nil
}

// duration reads "2m", or a number of seconds.
func duration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(text)
}

// outputs says what to collect. Typed outputs are KFP's: their folders exist before the task starts, and their files are
// read as they are, without a newline taken off.
func (a *attempt) outputs(s *spec.Spec) {
	folders := map[string]bool{}
	typed := func(path string) {
		if path != "" {
			folders[filepath.Dir(path)] = true
		}
	}
	typed(s.ExecutorOutput)
	for _, o := range a.cmd.Outputs.Parameters {
		if o.Path == "" {
			continue
		}
		p := spec.Parameter{Name: o.Name, Path: o.Path, Trim: o.Type == program.Any, Optional: o.Type != program.Any}
		if o.Default != nil {
			p.Default, p.Optional = constant(o.Default), true
		}
		if o.Type != program.Any || a.b.view != nil { // a container has its folder too: of its image, or an emptyDir
			typed(o.Path)
		}
		s.Parameters = append(s.Parameters, p)
	}
	for _, o := range a.cmd.Outputs.Artifacts {
		if o.Path == "" && o.KeyFrom == "" && o.MetadataFrom == "" {
			continue
		}
		if o.Type != "" || a.b.view != nil {
			typed(o.Path)
		}
		s.Artifacts = append(s.Artifacts, spec.Artifact{
			Name: o.Name, Path: o.Path, Optional: o.Optional, KeyFrom: o.KeyFrom, MetadataFrom: o.MetadataFrom,
		})
	}
	for folder := range folders {
		s.Folders = append(s.Folders, folder)
	}
}

// constant gives a default that is a literal; one that needs evaluation is left to the engine.
func constant(b *program.Binding) *string {
	if b.Text != nil {
		return b.Text
	}
	if b.Const == nil {
		return nil
	}
	text := string(b.Const)
	if unquoted, err := unquote(b.Const); err == nil {
		text = unquoted
	}
	return &text
}
