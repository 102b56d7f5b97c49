package submission

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

func compileKFP(docs []store.Document, opts Options) (*Manifest, error) {
	p, err := kfp.Load(kfp.Source(docs[0]))
	if err != nil {
		return nil, Refusal{Err: err}
	}
	configMaps, secrets, err := companions(docs[1:])
	if err != nil {
		return nil, Refusal{Err: err}
	}
	types := kfpTypes(p)
	parameters := map[string]any{}
	for name, v := range opts.Parameters {
		parameters[name] = Typed(v, types[name])
	}
	prog, err := p.Compile(kfp.Options{Parameters: parameters, Artifacts: opts.Artifacts})
	if err != nil {
		return nil, Refusal{Err: err}
	}
	prog.ConfigMaps = configMaps
	for k, v := range opts.Labels {
		if prog.Labels == nil {
			prog.Labels = map[string]string{}
		}
		prog.Labels[k] = v
	}
	if opts.ServiceAccount != "" {
		prog.ServiceAccount = opts.ServiceAccount
	}
	if opts.Entrypoint != "" {
		return nil, Refusal{Err: errors.New("--entrypoint is for Argo manifests; a pipeline starts at its root")}
	}
	m := &Manifest{
		Language: "kfp", Program: prog, Lang: kfpexpr.New(), Namespace: opts.Namespace, Title: p.Title(),
		Name: opts.Name, Generate: opts.GenerateName, Parameters: parameters, Artifacts: p.TypedArtifacts(opts.Artifacts), ConfigMaps: configMaps, Secrets: secrets,
	}
	if m.Spec, err = workflowSpec(p); err != nil {
		return nil, Refusal{Err: err}
	}
	if m.Generate == "" {
		m.Generate = prog.Name + "-"
	}
	m.Project = func(s *engine.State) (any, error) { return projectKFP(p, prog, s) }
	return m, nil
}

// workflowSpec gives what a pipeline asks of a cluster in the terms of a Workflow; nil for nothing.
func workflowSpec(p *kfp.Pipeline) (*argo.WorkflowSpec, error) {
	settings := p.WorkflowSettings()
	if settings == nil {
		return nil, nil
	}
	var spec argo.WorkflowSpec
	if err := json.Unmarshal(settings, &spec); err != nil {
		return nil, fmt.Errorf("platforms.kubernetes.pipelineConfig: %w", err)
	}
	return &spec, nil
}

func kfpTypes(p *kfp.Pipeline) map[string]program.Type {
	types := map[string]program.Type{}
	if p.Spec.Root == nil {
		return types
	}
	for name, in := range p.Spec.Root.InputDefinitions.Parameters {
		types[name] = program.Type(in.ParameterType)
	}
	return types
}

func projectKFP(p *kfp.Pipeline, prog *program.Program, s *engine.State) (any, error) {
	return kfp.Project(prog, s, kfp.ProjectOptions{Spec: p, ServiceAccount: prog.ServiceAccount}), nil
}
