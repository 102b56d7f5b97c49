package cli

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
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
		return nil, refusal{err: err}
	}
	m := &manifest{
		language: "argo", program: p, lang: argoexpr.New(), namespace: opts.Namespace,
		configMaps: b.ConfigMaps, secrets: b.Secrets,
	}
	m.name, m.generate = opts.Name, opts.GenerateName
	if m.name == "" && m.generate == "" {
		m.name, m.generate = ownName(docs[0].Data, b.Name())
	}
	m.project = func(s *engine.State) (any, error) { return projectArgo(b, p, s) }
	return m, nil
}

func projectArgo(_ *argo.Bundle, _ *program.Program, s *engine.State) (any, error) { return s, nil }

// ownName gives a manifest's name, or the beginning of the name that is to be made up for it: a template's or a
// schedule's own name is only the beginning of a run's.
func ownName(data []byte, name string) (fixed, generate string) {
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var o struct {
			Kind     string
			Metadata struct {
				Name         string
				GenerateName string `yaml:"generateName"`
			}
		}
		if d.Decode(&o) != nil {
			return "", name + "-" // a list of objects, or nothing named
		}
		switch {
		case o.Kind == "Workflow" && o.Metadata.Name == name && name != "":
			return name, ""
		case o.Kind == "Workflow" && o.Metadata.GenerateName == name && name != "":
			return "", name
		case o.Metadata.Name == name && name != "":
			return "", name + "-"
		}
	}
}
