package submission

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/store"
)

// ArgoSources are the documents of a submission as Argo's front end takes them: the main one and the others.
func ArgoSources(docs []store.Document) (argo.Source, []argo.Source) {
	var out []argo.Source
	for _, d := range docs {
		out = append(out, argo.Source(d))
	}
	return out[0], out[1:]
}

func argoOptions(opts Options) (argo.Options, error) {
	o := argo.Options{
		Entrypoint: opts.Entrypoint, ServiceAccount: opts.ServiceAccount, Name: opts.Name, GenerateName: opts.GenerateName,
		Labels: opts.Labels, Annotations: opts.Annotations, Parameters: map[string]string{}, Artifacts: opts.Artifacts,
		Resubmitted: opts.Resubmitted,
	}
	for name, v := range opts.Parameters {
		switch v := v.(type) {
		case Given:
			o.Parameters[name] = string(v)
		case string:
			o.Parameters[name] = v
		default: // Argo's parameters are texts
			text, err := json.Marshal(v)
			if err != nil {
				return o, fmt.Errorf("parameter %s: %w", name, err)
			}
			o.Parameters[name] = string(text)
		}
	}
	return o, nil
}

func compileArgo(docs []store.Document, opts Options) (*Manifest, error) {
	o, err := argoOptions(opts)
	if err != nil {
		return nil, err
	}
	b, err := argo.Load(ArgoSources(docs))
	if err != nil {
		return nil, Refusal{Err: err}
	}
	p, err := b.Compile(o)
	if err != nil {
		return nil, Refusal{Err: err, Object: invalidWorkflow(b, o, err)}
	}
	w, err := b.Workflow(o)
	if err != nil {
		return nil, Refusal{Err: err}
	}
	m := &Manifest{
		Language: "argo", Program: p, Lang: argoexpr.New(), Namespace: w.Namespace,
		Name: w.Name, Generate: w.GenerateName, ConfigMaps: b.ConfigMaps, Secrets: b.Secrets,
		Artifacts: opts.Artifacts,
	}
	m.Spec = &w.Spec
	if w.Status != nil && w.Status.StoredWorkflowTemplateSpec != nil {
		m.Spec = w.Status.StoredWorkflowTemplateSpec
	}
	if opts.Namespace != "" {
		m.Namespace = opts.Namespace
	}
	for _, problem := range b.Validate(o) {
		if problem.Warning {
			problem.Warning = false // who prints them says that they are
			m.Warnings = append(m.Warnings, problem.Error())
		}
	}
	m.Project = func(s *engine.State) (any, error) {
		return argo.Project(p, s, argo.ProjectOptions{Workflow: w}), nil
	}
	return m, nil
}

// invalidWorkflow is the object that Argo would show for a workflow whose mistake it finds only once it has accepted it:
// failed, without nodes. It is nil for what Argo refuses outright.
func invalidWorkflow(b *argo.Bundle, o argo.Options, err error) any {
	var problems argo.Problems
	if !errors.As(err, &problems) {
		return nil
	}
	message, invalid := problems.InvalidSpec()
	if !invalid {
		return nil
	}
	w, err := b.Workflow(o)
	if err != nil {
		return nil
	}
	if w.Name == "" {
		w.Name = w.GenerateName + Suffix()
	}
	now := metav1.Now()
	w.Status = &argo.WorkflowStatus{Phase: string(engine.FailedPhase), StartedAt: now, FinishedAt: now, Message: message}
	return w
}
