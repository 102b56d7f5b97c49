package argo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
)

// eachCall calls f for every step or task of a template.
func (t *Template) eachCall(f func(*Invocation)) {
	for i := range t.Steps {
		for j := range t.Steps[i] {
			f(&t.Steps[i][j].Invocation)
		}
	}
	if t.DAG != nil {
		for i := range t.DAG.Tasks {
			f(&t.DAG.Tasks[i].Invocation)
		}
	}
}

// visible is a call whose variables a text may read.
type visible struct {
	t    *Template
	loop bool
	// own is the call that the text is in; later is one that has not ended when the text is read.
	own, later bool
}

// variables are what texts of a template may read.
type variables struct {
	v *validator
	t *Template
	// word is "steps" or "tasks" in a graph, and call finds one of its calls.
	word string
	call func(name string) (visible, bool)
	// loop is the call around the text, whose items it may read.
	loop *Invocation
	// outer are the variables around an inline template, which it may read too.
	outer *variables
}

// inside gives the variables around a template that is written inside a call.
func (s *variables) inside(inv *Invocation) *variables {
	out := *s
	out.loop = inv
	return &out
}

// callTexts checks the texts of a call, its inline template left out.
func (v *validator) callTexts(p place, prefix string, inv *Invocation, vars *variables) {
	node, ok := p.doc.tree.find(p.path)
	if !ok || node.kind != mapNode {
		return
	}
	inside := vars.inside(inv)
	for i, key := range node.keys {
		if key == "inline" || key == "when" {
			continue
		}
		node.items[i].texts(join(p.path, key), func(path, text string) {
			v.text(place{doc: p.doc, path: path}, prefix, text, inside)
		})
	}
	if inv.When != "" {
		v.text(p.at("when"), prefix, inv.When, inside)
	}
}

// outputTexts checks the texts of a graph's outputs.
func (v *validator) outputTexts(p place, vars *variables) {
	at := p.at("outputs")
	if node, ok := p.doc.tree.find(at.path); ok {
		node.texts(at.path, func(path, text string) {
			v.text(place{doc: p.doc, path: path}, at.name+" ", text, vars)
		})
	}
}

// text checks the placeholders of a text.
func (v *validator) text(p place, prefix, text string, vars *variables) {
	if !hasTag(text) {
		return
	}
	if prefix != "" && !strings.HasSuffix(prefix, " ") {
		prefix += " "
	}
	for _, tag := range simpleTags(text) {
		if ok, hint := vars.known(tag); !ok {
			v.invalid(p, fmt.Sprintf("%sfailed to resolve {{%s}}", prefix, tag), "failed to resolve {{%s}}%s", tag, hint)
		}
	}
	if tag, ok := unclosedTag(text); ok {
		v.invalid(p, fmt.Sprintf("%sfailed to resolve {{%s}}", prefix, tag), "%s is never closed; add }}", shorten("{{"+tag))
		return
	}
	if err := argoexpr.CheckText(text); err != nil {
		v.late(p, "%v", err)
	}
}

// unclosedTag gives what follows the last {{ of a text, where that is never closed and one of Argo's variables.
func unclosedTag(text string) (string, bool) {
	i := strings.LastIndex(text, "{{")
	if i < 0 || strings.Contains(text[i:], "}}") {
		return "", false
	}
	tag := text[i+2:]
	word, _, _ := strings.Cut(strings.TrimSpace(tag), ".")
	return tag, slices.Contains([]string{"item", "steps", "inputs", "outputs", "pod", "workflow", "tasks"}, word) && strings.Contains(tag, ".")
}

// expression checks an expression without braces.
func (v *validator) expression(p place, src string) {
	if strings.TrimSpace(src) == "" {
		return
	}
	if err := argoexpr.CheckExpression(src); err != nil {
		v.late(p, "%v", err)
	}
}

// simpleTags gives the placeholders of a text that are no expressions and hold no others.
func simpleTags(text string) []string {
	var out []string
	for {
		i := strings.Index(text, "{{")
		if i < 0 {
			return out
		}
		text = text[i+2:]
		end := strings.Index(text, "}}")
		if end < 0 {
			return out
		}
		tag := text[:end]
		if strings.HasPrefix(tag, "=") {
			text = text[end+2:]
			continue
		}
		if nested := strings.LastIndex(tag, "{{"); nested >= 0 {
			out = append(out, tag[nested+2:])
			// What is around the inner one is not known before that is.
			text = text[end+2:]
			if rest := strings.Index(text, "}}"); rest >= 0 {
				text = text[rest+2:]
			}
			continue
		}
		out = append(out, tag)
		text = text[end+2:]
	}
}

// known says whether a placeholder can have a value, and else what may help. Words that are none of Argo's are left
// alone: they are for other tools.
func (s *variables) known(tag string) (bool, string) {
	tag = strings.TrimSpace(tag)
	parts := strings.Split(tag, ".")
	if len(parts) < 2 {
		return true, ""
	}
	switch parts[0] {
	case "inputs":
		return s.knownInput(parts)
	case "workflow":
		return s.v.global.known(parts)
	case "steps", "tasks":
		return s.knownCall(parts)
	case "item":
		return s.knownItem(strings.Join(parts[1:], "."))
	case "pod":
		if parts[1] != "name" {
			return false, "; only pod.name is known of a pod"
		}
		if s.t.isGraph() || s.t.Suspend != nil {
			return s.outer != nil, "; only a task has a pod"
		}
	}
	return true, ""
}

func (s *variables) knownInput(parts []string) (bool, string) {
	if s.outer != nil {
		if ok, _ := s.outer.knownInput(parts); ok {
			return true, ""
		}
	}
	var names []string
	switch parts[1] {
	case "parameters":
		if len(parts) == 2 {
			return len(s.t.Inputs.Parameters) > 0, "; the template has no input parameters"
		}
		for _, p := range s.t.Inputs.Parameters {
			names = append(names, p.Name)
		}
		if slices.Contains(names, strings.Join(parts[2:], ".")) {
			return true, ""
		}
	case "artifacts":
		for _, a := range s.t.Inputs.Artifacts {
			names = append(names, a.Name)
		}
		if len(parts) == 2 || slices.Contains(names, parts[2]) {
			return len(parts) <= 3 || slices.Contains([]string{"path", "key", "uri", "json", "type", "metadata"}, parts[3]),
				"; known of an artifact are path, key, uri, json, type and metadata.NAME"
		}
	default:
		return false, "; write inputs.parameters.NAME or inputs.artifacts.NAME"
	}
	return false, fmt.Sprintf("; the template has no input %s %q%s", strings.TrimSuffix(parts[1], "s"), parts[2], choose(parts[2], names))
}

// choose offers the names that may have been meant.
func choose(name string, names []string) string {
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	if best := nearest(name, known); best != "" {
		return "; did you mean " + best + "?"
	}
	if len(names) == 0 || len(names) > 10 {
		return ""
	}
	return "; there is " + strings.Join(names, ", ")
}

// knownItem checks a field of a loop's item against the items, where they are written down.
func (s *variables) knownItem(field string) (bool, string) {
	for outer := s; outer != nil; outer = outer.outer {
		inv := outer.loop
		if inv == nil || !inv.loops() {
			continue
		}
		if inv.WithItems == nil {
			return true, ""
		}
		for _, item := range inv.WithItems {
			var fields map[string]json.RawMessage
			if json.Unmarshal(item.RawMessage, &fields) == nil {
				if _, ok := fields[field]; ok {
					return true, ""
				}
			}
			if hasTag(string(item.RawMessage)) || strings.HasPrefix(strings.TrimSpace(string(item.RawMessage)), "[") {
				return true, ""
			}
		}
		return false, fmt.Sprintf("; no item of withItems has a field %q", field)
	}
	return false, "; there is no loop here"
}

func (s *variables) knownCall(parts []string) (bool, string) {
	if strings.HasPrefix(parts[1], "name") && len(parts) == 2 {
		return true, ""
	}
	if s.outer != nil {
		if ok, _ := s.outer.knownCall(parts); ok {
			return true, ""
		}
	}
	if s.word != parts[0] {
		if s.word == "" {
			return false, "; a task reads results of others through its inputs"
		}
		return false, fmt.Sprintf("; in this template write %s.%s", s.word, strings.Join(parts[1:], "."))
	}
	one := strings.TrimSuffix(parts[0], "s")
	c, ok := s.call(parts[1])
	switch {
	case !ok && s.word == "steps":
		return false, fmt.Sprintf("; there is no step %q before this one", parts[1])
	case !ok:
		return false, fmt.Sprintf("; there is no task %q", parts[1])
	case c.later:
		return false, fmt.Sprintf("; this task does not wait for %s, so that may not have run; add it to depends or dependencies", parts[1])
	case len(parts) == 2:
		return true, ""
	}
	switch parts[2] {
	case "id", "startedAt", "finishedAt", "hostNodeName", "status", "exitCode", "ip", "name", "path", "message", "reused", "hooks", "inputs":
		return true, ""
	case "outputs":
		return c.knownOutput(one, parts)
	}
	return false, fmt.Sprintf("; known of a %s are id, ip, status, exitCode, message, startedAt, finishedAt, hostNodeName and outputs", one)
}

func (c visible) knownOutput(one string, parts []string) (bool, string) {
	if c.t == nil || len(parts) == 3 {
		return true, ""
	}
	var names []string
	switch parts[3] {
	case "result":
		return !c.t.isGraph() && c.t.Suspend == nil, "; only a task has a result, " + parts[1] + " is a whole graph"
	case "parameters":
		if len(parts) == 4 {
			return true, ""
		}
		for _, p := range c.t.Outputs.Parameters {
			names = append(names, p.Name)
		}
		if slices.Contains(names, strings.Join(parts[4:], ".")) {
			return true, ""
		}
	case "artifacts":
		for _, a := range c.t.Outputs.Artifacts {
			names = append(names, a.Name)
		}
		if len(parts) == 4 || slices.Contains(names, parts[4]) {
			return true, ""
		}
	case "exitCode":
		return true, ""
	default:
		return false, "; write outputs.result, outputs.parameters.NAME or outputs.artifacts.NAME"
	}
	return false, fmt.Sprintf("; the template of %s %s has no output %s %q%s", one, parts[1], strings.TrimSuffix(parts[3], "s"), parts[4], choose(parts[4], names))
}
