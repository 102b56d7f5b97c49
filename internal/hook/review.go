package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
	"strconv"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// newRequest makes the public question of an engine command. Maps and lists are shared with the command, which nobody
// changes; redact makes copies where it must.
func newRequest(run engine.Run, p *program.Program, cmd engine.AskHook) *v1alpha1.TaskReviewRequest {
	r := &v1alpha1.TaskReviewRequest{
		UID:      cmd.UID,
		Hook:     cmd.Hook,
		Point:    v1alpha1.Point(cmd.Point),
		Scope:    v1alpha1.Scope(cmd.Scope),
		Asked:    cmd.Asked,
		Workflow: workflowOf(run, p, cmd.Parameters),
		Task: v1alpha1.Task{
			ID:              strconv.Itoa(int(cmd.Node)),
			Path:            cmd.Path,
			Name:            cmd.Name,
			Attempt:         cmd.Attempt,
			Final:           cmd.Final,
			Inputs:          inputsOf(cmd.Inputs),
			OutputArtifacts: mapValues(cmd.OutputArtifacts, artifactOf),
		},
		State: cmd.State,
	}
	if r.Scope == "" {
		r.Scope = v1alpha1.ScopeTask
	}
	if t := cmd.Template; t != nil {
		r.Task.Template, r.Task.Labels, r.Task.Annotations = t.Name, t.Labels, t.Annotations
		r.Task.TemplateSpec = t.Source
		if len(t.Source) > 0 {
			r.Task.TemplateDigest = digestOf(t.Source)
		}
	}
	if cmd.Call != nil {
		r.Task.Call = cmd.Call.Source
	}
	if c := cmd.Cache; c != nil {
		r.Task.Cache = &v1alpha1.Cache{Scheme: c.Scheme, Name: c.Name, Key: c.Key, MaxAge: c.MaxAge}
	}
	if cmd.Result != nil && cmd.Point == engine.Post {
		finished := cmd.Finished
		if finished.IsZero() {
			finished = cmd.Asked
		}
		r.Result = resultOf(cmd.Result, finished)
	}
	return r
}

func digestOf(template json.RawMessage) string {
	sum := sha256.Sum256(template)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func workflowOf(run engine.Run, p *program.Program, parameters map[string]any) v1alpha1.Workflow {
	w := v1alpha1.Workflow{
		Name:         run.Name,
		Namespace:    run.Namespace,
		UID:          run.UID,
		Labels:       run.Labels,
		Annotations:  run.Annotations,
		Parameters:   parameters,
		ArtifactRoot: run.ArtifactRoot,
		CreatedAt:    timeOf(run.Created),
	}
	if p != nil {
		w.Pipeline, w.Language = p.Name, p.Language
	}
	return w
}

func inputsOf(in engine.Inputs) v1alpha1.Inputs {
	out := v1alpha1.Inputs{Parameters: in.Parameters, Artifacts: mapValues(in.Artifacts, artifactsOf)}
	for name, defaulted := range in.Defaulted {
		if defaulted {
			out.Defaulted = append(out.Defaulted, name)
		}
	}
	sort.Strings(out.Defaulted)
	return out
}

func resultOf(r *engine.Result, finished time.Time) *v1alpha1.Result {
	return &v1alpha1.Result{
		Phase:    string(r.Phase),
		ExitCode: r.ExitCode,
		Message:  r.Message,
		Outputs: v1alpha1.Outputs{
			Parameters: r.Outputs.Parameters,
			Artifacts:  mapValues(r.Outputs.Artifacts, artifactsOf),
			Result:     r.Outputs.Result,
		},
		Reused:     r.Reused,
		StartedAt:  timeOf(r.Started),
		FinishedAt: timeOf(finished),
		Host:       r.Host,
		Resources:  r.Resources,
	}
}

func artifactsOf(list []program.Artifact) []v1alpha1.Artifact {
	out := make([]v1alpha1.Artifact, len(list))
	for i, a := range list {
		out[i] = artifactOf(a)
	}
	return out
}

func artifactOf(a program.Artifact) v1alpha1.Artifact { return v1alpha1.Artifact(a) }

func programArtifacts(list []v1alpha1.Artifact) []program.Artifact {
	out := make([]program.Artifact, len(list))
	for i, a := range list {
		out[i] = program.Artifact(a)
	}
	return out
}

// mapValues converts the values of a map; nil stays nil.
func mapValues[A, B any](in map[string]A, f func(A) B) map[string]B {
	if in == nil {
		return nil
	}
	out := make(map[string]B, len(in))
	for key, value := range in {
		out[key] = f(value)
	}
	return out
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
