package kfpcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// workflow is the part of a Workflow object that shows how a pipeline went.
type workflow struct {
	Metadata struct{ Name, UID string }
	Status   struct {
		Phase, Message string
		Nodes          map[string]node
		Outputs        nodeValues
	}
}

type node struct {
	ID, Name, DisplayName, Type, Phase, Message string
	// One of these names the component.
	TemplateName string
	TemplateRef  struct{ Template string }
	Outputs      nodeValues
}

type nodeValues struct {
	Parameters []struct{ Name, Value string }
}

// ReadWorkflow reads the Workflow object of a pipeline as the run that it stands for. A node's name is its path, which says
// what it is part of.
func ReadWorkflow(text []byte) (*Run, error) {
	var w workflow
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("read a workflow: %w", err)
	}
	if w.Status.Phase == "" {
		return nil, fmt.Errorf("workflow %s has no phase", w.Metadata.Name)
	}
	r := &Run{RunID: w.Metadata.UID, State: stateOf(w.Status.Phase)}
	r.Outputs.Parameters = map[string]any{}
	if w.Status.Message != "" {
		r.Error = &struct {
			Message string `json:"message"`
		}{w.Status.Message}
	}
	nodes := slices.SortedFunc(maps.Values(w.Status.Nodes), func(a, b node) int { return cmp.Compare(a.Name, b.Name) })
	byName := map[string]node{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	for _, n := range nodes {
		parent, rest := within(n.Name, byName)
		if n.Type == "Pod" && n.Phase != "Skipped" && n.Phase != "Omitted" && !strings.HasPrefix(n.Message, "reused: ") {
			r.attempts = append(r.attempts, cmp.Or(n.TemplateRef.Template, n.TemplateName))
		}
		if parent.Type == "Retry" {
			continue
		}
		r.Details.Tasks = append(r.Details.Tasks, taskOf(n, parent, rest))
		if parent.ID == "" {
			r.Outputs.Parameters = n.Outputs.values()
		}
	}
	return r, nil
}

// Pods is how many pods a run read by [ReadWorkflow] must have had: one an attempt of a container task, none for an importer
// or for what makes and deletes volume claims.
func Pods(p *Pipeline, r *Run) int {
	n := 0
	for _, component := range r.attempts {
		e := p.Deployment.Executors[p.Components[component].ExecutorLabel]
		if e.Container != nil && !strings.HasPrefix(e.Container.Image, "argostub/") {
			n++
		}
	}
	return n
}

// within gives the node that a name is part of, and what the name adds to it.
func within(name string, byName map[string]node) (parent node, rest string) {
	for i := len(name) - 1; i > 0; i-- {
		if name[i] != '.' && name[i] != '(' {
			continue
		}
		if p, ok := byName[name[:i]]; ok {
			return p, name[i:]
		}
	}
	return node{}, name
}

func taskOf(n, parent node, rest string) Task {
	t := Task{ID: n.ID, DisplayName: n.DisplayName, ParentID: parent.ID, State: stateOf(n.Phase)}
	switch {
	case parent.ID == "":
		t.Type = "ROOT"
	case strings.HasPrefix(rest, "("):
		t.Type = "LOOP_ITERATION"
		t.Name = parent.Name[strings.LastIndexByte(parent.Name, '.')+1:]
	default:
		t.Name = rest[1:]
		if n.Type == "TaskGroup" {
			t.Type = "LOOP"
		}
	}
	return t
}

func stateOf(phase string) string {
	switch phase {
	case "Error":
		return "FAILED"
	case "Omitted":
		return "SKIPPED"
	}
	return strings.ToUpper(phase)
}

// values gives parameters as they are in JSON: a Workflow has them as texts.
func (v nodeValues) values() map[string]any {
	out := map[string]any{}
	for _, p := range v.Parameters {
		var value any
		if err := json.Unmarshal([]byte(p.Value), &value); err != nil {
			value = p.Value
		}
		out[p.Name] = value
	}
	return out
}
