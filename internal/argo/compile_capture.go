package argo

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// Argo replaces the placeholders of a call in everything that is written inside it, its inline template and the
// workflow's volumes included. Here a template sees its own inputs only, so what such texts read of the graph around
// them becomes an input without a declaration, named after the placeholder, which the call gives.

// callTagForm is a simple placeholder for something of another call.
var callTagForm = regexp.MustCompile(`\{\{\s*((?:steps|tasks)\.[^{}=]+?)\s*\}\}`)

// captureCalls rewrites the placeholders for other calls in a JSON text, except those of the template's own calls, and
// lists them.
func captureCalls(source []byte, own map[string]bool) ([]byte, []string) {
	var tags []string
	out := callTagForm.ReplaceAllFunc(source, func(m []byte) []byte {
		tag := string(callTagForm.FindSubmatch(m)[1])
		parts := strings.SplitN(tag, ".", 3)
		if own[parts[1]] || len(parts) < 3 {
			return m
		}
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		return []byte("{{inputs.parameters." + tag + "}}")
	})
	return out, tags
}

// captureInline gives an inline template in which placeholders of the graph around it are its own inputs, with what the
// call must give for them.
func captureInline(t *Template) (*Template, []program.Argument, error) {
	source, err := raw(t)
	if err != nil {
		return nil, nil, err
	}
	own, declared := map[string]bool{}, map[string]bool{}
	t.eachCall(func(inv *Invocation) { own[inv.Name] = true })
	for _, p := range t.Inputs.Parameters {
		declared[p.Name] = true
	}
	source, tags := captureCalls(source, own)
	var args []program.Argument
	for _, tag := range tags {
		declared[tag] = true
		args = append(args, program.Argument{Name: tag, From: program.Binding{Ref: tag}})
	}
	out := new(Template)
	if err := json.Unmarshal(source, out); err != nil {
		return nil, nil, err
	}
	tree, err := generic(out)
	if err != nil {
		return nil, nil, err
	}
	eachText(tree, func(text string) {
		paths, err := argoexpr.References(text)
		if err != nil {
			return // reported by Validate
		}
		for _, p := range paths {
			if len(p) >= 3 && p[0] == "inputs" && p[1] == "parameters" && !declared[p[2]] {
				declared[p[2]] = true
				args = append(args, program.Argument{Name: p[2], From: program.Binding{Ref: "inputs.parameters." + p[2]}})
			}
		}
	})
	return out, args, nil
}

// eachText calls f for every string in a JSON value.
func eachText(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, e := range v {
			eachText(e, f)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			eachText(v[k], f)
		}
	}
}

// addInputs declares captured values: they may be missing, and then only a text that reads them fails.
func addInputs(t *program.Template, args []program.Argument) {
	for _, a := range args {
		t.Inputs.Parameters = append(t.Inputs.Parameters, program.Input{Name: a.Name, Optional: true})
	}
}

// capturingVolumes gives the workflow's volumes that read results of calls, rewritten, and what they read.
func capturingVolumes(volumes []corev1.Volume) (map[string]corev1.Volume, map[string][]string) {
	rewritten, reads := map[string]corev1.Volume{}, map[string][]string{}
	for _, v := range volumes {
		source, err := raw(v)
		if err != nil {
			continue
		}
		source, tags := captureCalls(source, nil)
		var out corev1.Volume
		if len(tags) == 0 || json.Unmarshal(source, &out) != nil {
			continue
		}
		rewritten[v.Name], reads[v.Name] = out, tags
	}
	return rewritten, reads
}

// captureVolumes lets a task's template read what the volumes that it mounts need.
func (c *compiler) captureVolumes(t *program.Template) {
	if t.Task == nil {
		return
	}
	for i := range t.Task.Volumes {
		for _, tag := range c.volumeReads[t.Task.Volumes[i].Name] {
			if slices.Contains(c.captured[t.Key], tag) {
				continue
			}
			c.captured[t.Key] = append(c.captured[t.Key], tag)
			addInputs(t, []program.Argument{{Name: tag}})
		}
	}
}

// giveCaptured makes every call of a graph give what the volumes of its template read of that graph.
func (c *compiler) giveCaptured() {
	if len(c.captured) == 0 {
		return
	}
	for _, key := range sortedKeys(c.p.Templates) {
		g := c.p.Templates[key].Graph
		if g == nil {
			continue
		}
		for i := range g.Calls {
			call := &g.Calls[i]
			for _, tag := range c.captured[call.Template.Scope+"/"+call.Template.Name] {
				name := strings.SplitN(tag, ".", 3)[1]
				if slices.ContainsFunc(g.Calls, func(other program.Call) bool { return other.Name == name }) {
					call.Arguments.Parameters = append(call.Arguments.Parameters, program.Argument{Name: tag, From: program.Binding{Ref: tag}})
				}
			}
		}
	}
}
