package pod

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// scriptFile is where the source of a script is put.
const scriptFile = spec.PodDir + "/script"

// task says what one container has to do. Inputs and outputs are left to the main one. The command is not in it: it stays
// in the pod's own fields.
func (b *builder) task(name string) (spec.Pod, error) {
	sidecar := !slices.Contains(b.names, name)
	own := spec.Container{Name: name, Inherit: true}
	out := spec.Pod{Task: spec.Spec{Path: b.cmd.Path, Grace: b.grace()}, Main: b.main, Sidecar: sidecar, Containers: b.names}
	for _, c := range b.cmd.Body.Containers {
		if c.Name != name && len(b.cmd.Body.Containers) > 1 || sidecar {
			continue
		}
		out.Await = c.Needs
		var err error
		if c.Retries != "" {
			if own.Retries, err = strconv.Atoi(c.Retries); err != nil {
				return out, fmt.Errorf("container %s: retries: %w", name, err)
			}
		}
		if c.RetryDelay != "" {
			if own.Delay, err = duration(c.RetryDelay); err != nil {
				return out, fmt.Errorf("container %s: retry delay: %w", name, err)
			}
		}
	}
	if !sidecar {
		out.Task.Timeout = b.cmd.Timeout
	}
	out.Task.Containers = []spec.Container{own}
	if name == b.main {
		if err := b.exchange(&out); err != nil {
			return out, err
		}
	}
	return out, nil
}

// exchange says what the task is given and leaves.
func (b *builder) exchange(out *spec.Pod) error {
	body, s := b.cmd.Body, &out.Task
	s.Result, s.ExecutorOutput = body.Result, body.ExecutorOutput
	if body.Kind == program.Script {
		mode := int32(0o755)
		s.Inputs = append(s.Inputs, spec.Input{Name: "script", Data: &body.Script, Path: scriptFile, Mode: &mode})
	}
	if err := b.inputs(out); err != nil {
		return err
	}
	b.outputs(out)
	if b.needsEndpoint(out) {
		out.Endpoint, out.CA = b.cfg.Endpoint, b.cfg.CA
		if out.Endpoint == "" && len(out.Fetch)+len(out.Save) > 0 {
			return fmt.Errorf("the task has artifacts, and the controller has no task endpoint to bring them by")
		}
	}
	return nil
}

// inputs lists the input artifacts: texts are in the specification, all others come from the endpoint.
func (b *builder) inputs(out *spec.Pod) error {
	declared := map[string]program.InputArtifact{}
	if t := b.cmd.Template; t != nil {
		for _, in := range t.Inputs.Artifacts {
			declared[in.Name] = in
		}
	}
	for _, name := range sortedKeys(b.cmd.Inputs.Artifacts) {
		paths := b.cmd.ArtifactPaths[name]
		for i, a := range b.cmd.Inputs.Artifacts[name] {
			if i >= len(paths) || paths[i] == "" {
				continue // described, but not wanted in the task
			}
			in := spec.Input{Name: name, Path: paths[i], Mode: declared[name].Mode, Recurse: declared[name].Recurse}
			text, isText, err := rawText(a)
			if err != nil {
				return fmt.Errorf("input artifact %s: %w", name, err)
			}
			if isText {
				in.Data = &text
			} else {
				out.Fetch = append(out.Fetch, spec.Transfer{Name: name, Index: i, Input: len(out.Task.Inputs), Archive: a.Archive, SubPath: a.SubPath})
			}
			out.Task.Inputs = append(out.Task.Inputs, in)
		}
	}
	return nil
}

// rawText gives the text of an artifact that is one.
func rawText(a program.Artifact) (text string, isText bool, err error) {
	if a.Store == nil || a.SubPath != "" {
		return "", false, nil
	}
	kind, body, err := artifact.Kind(a.Store)
	if err != nil || kind != "raw" {
		return "", false, err
	}
	var raw struct {
		Data string `json:"data"`
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return "", false, fmt.Errorf("raw artifact: %w", err)
	}
	return raw.Data, true, nil
}

// outputs lists what is to be taken. Typed outputs are KFP's: their files are read as they are and may be missing.
func (b *builder) outputs(out *spec.Pod) {
	for _, o := range b.cmd.Outputs.Parameters {
		if o.Path == "" {
			continue
		}
		typed := o.Type != program.Any
		p := spec.Parameter{Name: o.Name, Path: o.Path, Trim: !typed, Optional: typed}
		if o.Default != nil {
			p.Default, p.Optional = constant(o.Default), true
		}
		out.Task.Parameters = append(out.Task.Parameters, p)
	}
	for _, o := range b.cmd.Outputs.Artifacts {
		if o.Path == "" && o.KeyFrom == "" && o.MetadataFrom == "" {
			continue
		}
		out.Task.Artifacts = append(out.Task.Artifacts, spec.Artifact{
			Name: o.Name, Path: o.Path, Optional: o.Optional, KeyFrom: o.KeyFrom, MetadataFrom: o.MetadataFrom,
		})
		if o.KeyFrom != "" || o.MetadataFrom != "" {
			continue // its bytes are elsewhere
		}
		if b.cmd.OutputArtifacts[o.Name].Store == nil {
			continue // there is no place for it, which the executor says if there is something
		}
		archive := b.cmd.OutputArtifacts[o.Name].Archive
		if archive == "" {
			archive = o.Archive
		}
		out.Save = append(out.Save, spec.Transfer{Name: o.Name, Archive: archive, File: fileName(o.Path, o.Name)})
	}
}

// fileName is what the top of an archive is called: the last part of the path in the task.
func fileName(p, otherwise string) string {
	if name := path.Base(p); name != "." && name != "/" {
		return name
	}
	return otherwise
}

// needsEndpoint says whether the task has to speak to the endpoint: for artifacts, and for a result that may be too long
// for a termination message.
func (b *builder) needsEndpoint(p *spec.Pod) bool {
	s := p.Task
	return len(p.Fetch)+len(p.Save)+len(s.Parameters)+len(s.Artifacts) > 0 || s.Result || s.ExecutorOutput != ""
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
	var unquoted string
	if err := json.Unmarshal(b.Const, &unquoted); err == nil {
		text = unquoted
	}
	return &text
}

// duration reads "2m", or a number of seconds.
func duration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	return time.ParseDuration(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
