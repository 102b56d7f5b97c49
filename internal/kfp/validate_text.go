package kfp

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
)

// texts checks the placeholders in an executor's texts: what they refer to must be an input or output of the component.
func (v *validator) texts(path, name string, c *ComponentSpec, e *ExecutorSpec) {
	var texts []string
	if e.Container != nil {
		texts = append(append(texts, e.Container.Command...), e.Container.Args...)
		texts = append(texts, e.Container.Image, e.Container.Resources.ResourceCPULimit, e.Container.Resources.ResourceMemoryLimit,
			e.Container.Resources.ResourceCPURequest, e.Container.Resources.ResourceMemoryRequest)
		for _, env := range e.Container.Env {
			texts = append(texts, env.Value)
		}
		if a := e.Container.Resources.Accelerator; a != nil {
			texts = append(texts, a.ResourceCount, a.ResourceType)
		}
	}
	if e.Importer != nil {
		texts = append(texts, stringsOf(e.Importer.Metadata)...)
		if r := e.Importer.ArtifactURI.RuntimeParameter; r != "" {
			texts = append(texts, "{{$.inputs.parameters['"+r+"']}}")
		}
	}
	seen := map[string]bool{}
	for _, text := range texts {
		for _, steps := range kfpexpr.Placeholders(text) {
			v.reference(path, name, c, steps, seen)
		}
	}
}

func (v *validator) reference(path, name string, c *ComponentSpec, steps []string, seen map[string]bool) {
	if len(steps) < 3 || steps[0] != "inputs" && steps[0] != "outputs" {
		return
	}
	known := true
	switch steps[0] + "." + steps[1] {
	case "inputs.parameters":
		known = c.InputDefinitions.Parameters[steps[2]] != nil || v.extra[name][steps[2]]
	case "inputs.artifacts":
		known = c.InputDefinitions.Artifacts[steps[2]] != nil
	case "outputs.parameters":
		known = c.OutputDefinitions.Parameters[steps[2]] != nil
	case "outputs.artifacts":
		known = c.OutputDefinitions.Artifacts[steps[2]] != nil
	}
	what := strings.TrimSuffix(steps[0], "s") + " " + strings.TrimSuffix(steps[1], "s")
	if key := what + steps[2]; !known && !seen[key] {
		seen[key] = true
		v.probs.add(path, "declare it, or remove the placeholder", "its executor %s uses the %s %q, which the component does not have",
			c.ExecutorLabel, what, steps[2])
	}
}

// stringsOf gives all texts in a JSON value, keys included.
func stringsOf(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, stringsOf(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, k := range sortedKeys(v) {
			out = append(append(out, k), stringsOf(v[k])...)
		}
		return out
	}
	return nil
}
