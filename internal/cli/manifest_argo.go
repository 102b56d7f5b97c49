package cli

import (
	"encoding/json"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/store"
)

func argoSources(docs []store.Document) (argo.Source, []argo.Source) {
	var out []argo.Source
	for _, d := range docs {
		out = append(out, argo.Source(d))
	}
	return out[0], out[1:]
}

func argoOptions(opts options) (argo.Options, error) {
	o := argo.Options{
		Entrypoint: opts.Entrypoint, ServiceAccount: opts.ServiceAccount, Name: opts.Name, GenerateName: opts.GenerateName,
		Labels: opts.Labels, Annotations: opts.Annotations, Parameters: map[string]string{},
	}
	for name, v := range opts.Parameters {
		switch v := v.(type) {
		case given:
			o.Parameters[name] = string(v)
		case string:
			o.Parameters[name] = v
		default: // Argo's parameters are texts
			text, err := json.Marshal(v)
			if err != nil {
				return o, usage("parameter %s: %w", name, err)
			}
			o.Parameters[name] = string(text)
		}
	}
	return o, nil
}

func compileArgo(docs []store.Document, opts options) (*manifest, error) {
	o, err := argoOptions(opts)
	if err != nil {
		return nil, err
	}
	b, err := argo.Load(argoSources(docs))
	if err != nil {
		return nil, refusal{err: err}
	}
	p, err := b.Compile(o)
	if err != nil {
		return nil, refusal{err: err, object: invalidWorkflow(b, o, err)}
	}
	w, err := b.Workflow(o)
	if err != nil {
		return nil, refusal{err: err}
	}
	m := &manifest{
		language: "argo", program: p, lang: argoexpr.New(), namespace: w.Namespace,
		name: w.Name, generate: w.GenerateName, configMaps: b.ConfigMaps, secrets: b.Secrets,
	}
	if opts.Namespace != "" {
		m.namespace = opts.Namespace
	}
	for _, problem := range b.Validate(o) {
		if problem.Warning {
			m.warnings = append(m.warnings, problem.Error())
		}
	}
	m.project = func(s *engine.State) (any, error) {
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
		w.Name = w.GenerateName + suffix()
	}
	now := metav1.Now()
	w.Status = &argo.WorkflowStatus{Phase: string(engine.FailedPhase), StartedAt: now, FinishedAt: now, Message: message}
	return w
}
