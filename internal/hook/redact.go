package hook

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// redacted stands where a secret stood.
const redacted = "(redacted)"

// minSecret is the shortest value that is looked for: shorter ones would make half of all texts unreadable.
const minSecret = 4

// redact replaces secret values in all texts of a request. What it changes it copies first.
func redact(r *v1alpha1.TaskReviewRequest, secrets []string) {
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, redacted)
		}
	}
	if len(pairs) == 0 {
		return
	}
	c := cleaner{strings.NewReplacer(pairs...)}
	r.Workflow.Parameters = c.values(r.Workflow.Parameters)
	r.Workflow.Annotations = c.texts(r.Workflow.Annotations)
	r.Workflow.Labels = c.texts(r.Workflow.Labels)
	r.Task.Annotations = c.texts(r.Task.Annotations)
	r.Task.Labels = c.texts(r.Task.Labels)
	r.Task.Inputs.Parameters = c.values(r.Task.Inputs.Parameters)
	r.Task.Inputs.Artifacts = c.artifacts(r.Task.Inputs.Artifacts)
	if spec := c.raw(r.Task.TemplateSpec); string(spec) != string(r.Task.TemplateSpec) {
		r.Task.TemplateSpec, r.Task.TemplateDigest = spec, digestOf(spec)
	}
	r.Task.Call = c.raw(r.Task.Call)
	if r.Result == nil {
		return
	}
	result := *r.Result
	result.Message = c.text(result.Message)
	result.Outputs.Parameters = c.values(result.Outputs.Parameters)
	result.Outputs.Artifacts = c.artifacts(result.Outputs.Artifacts)
	if text := result.Outputs.Result; text != nil {
		clean := c.text(*text)
		result.Outputs.Result = &clean
	}
	r.Result = &result
}

type cleaner struct{ replacer *strings.Replacer }

func (c cleaner) text(s string) string { return c.replacer.Replace(s) }

func (c cleaner) texts(in map[string]string) map[string]string {
	out := maps.Clone(in)
	for key, value := range out {
		out[key] = c.text(value)
	}
	return out
}

func (c cleaner) values(in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = c.value(value)
	}
	return out
}

func (c cleaner) value(v any) any {
	switch v := v.(type) {
	case string:
		return c.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.value(v[i])
		}
		return out
	case map[string]any:
		return c.values(v)
	}
	return v
}

// raw cleans the texts inside a piece of JSON.
func (c cleaner) raw(data json.RawMessage) json.RawMessage {
	var v any
	if len(data) == 0 || json.Unmarshal(data, &v) != nil {
		return data
	}
	clean, err := json.Marshal(c.value(v))
	if err != nil {
		return nil // rather nothing than a secret
	}
	before, err := json.Marshal(v)
	if err == nil && string(before) == string(clean) {
		return data
	}
	return clean
}

func (c cleaner) artifacts(in map[string][]v1alpha1.Artifact) map[string][]v1alpha1.Artifact {
	return mapValues(in, func(list []v1alpha1.Artifact) []v1alpha1.Artifact {
		out := make([]v1alpha1.Artifact, len(list))
		for i, a := range list {
			a.URI = c.text(a.URI)
			a.Metadata = c.values(a.Metadata)
			a.Store = c.raw(a.Store)
			out[i] = a
		}
		return out
	})
}
