package argocheck

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// Actual is a run as the Workflow object that sluice printed shows it, in the terms of the expected files.
type Actual struct {
	Name     string
	Phase    string
	Message  string
	Finished bool
	Nodes    []Node
	Outputs  Outputs
	// Problems are contradictions in the object itself: children that do not exist, two nodes of one name.
	Problems []string
}

// workflow is the part of Argo's Workflow object that the comparison needs.
type workflow struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Phase      string            `json:"phase"`
		Message    string            `json:"message"`
		FinishedAt string            `json:"finishedAt"`
		Nodes      map[string]status `json:"nodes"`
		Outputs    outputs           `json:"outputs"`
	} `json:"status"`
}

type status struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	DisplayName  string   `json:"displayName"`
	Type         string   `json:"type"`
	Phase        string   `json:"phase"`
	Message      string   `json:"message"`
	TemplateName string   `json:"templateName"`
	BoundaryID   string   `json:"boundaryID"`
	Children     []string `json:"children"`
	Outputs      outputs  `json:"outputs"`
}

type outputs struct {
	Parameters []struct {
		Name  string           `json:"name"`
		Value *json.RawMessage `json:"value"`
	} `json:"parameters"`
	Artifacts []Artifact `json:"artifacts"`
	Result    *string    `json:"result"`
	ExitCode  *string    `json:"exitCode"`
}

// ReadWorkflow reads a Workflow object in JSON.
func ReadWorkflow(text []byte) (*Actual, error) {
	var w workflow
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, fmt.Errorf("the output is no Workflow in JSON: %w", err)
	}
	if w.Kind != "Workflow" {
		return nil, fmt.Errorf("the output is a %q, not a Workflow", w.Kind)
	}
	name := w.Metadata.Name
	a := &Actual{Name: name, Phase: w.Status.Phase, Message: w.Status.Message, Finished: w.Status.FinishedAt != ""}
	byID := map[string]string{}
	for id, n := range w.Status.Nodes {
		byID[id] = nodeName(n.Name, name)
		if n.ID != id {
			a.Problems = append(a.Problems, fmt.Sprintf("node %s lies under the key %s but has the id %s", n.Name, id, n.ID))
		}
	}
	seen := map[string]bool{}
	for _, n := range w.Status.Nodes {
		node := Node{
			Name: nodeName(n.Name, name), DisplayName: n.DisplayName, Type: n.Type, Phase: n.Phase, Message: n.Message,
			TemplateName: n.TemplateName, Outputs: n.Outputs.flat(), Boundary: byID[n.BoundaryID],
		}
		if seen[node.Name] {
			a.Problems = append(a.Problems, "two nodes are called "+node.Name)
		}
		seen[node.Name] = true
		if n.BoundaryID != "" && node.Boundary == "" {
			a.Problems = append(a.Problems, fmt.Sprintf("%s: boundary %s does not exist", node.Name, n.BoundaryID))
		}
		for _, child := range n.Children {
			childName, ok := byID[child]
			if !ok {
				a.Problems = append(a.Problems, fmt.Sprintf("%s: child %s does not exist", node.Name, child))
				continue
			}
			node.Children = append(node.Children, childName)
		}
		a.Nodes = append(a.Nodes, node)
	}
	sort.Slice(a.Nodes, func(i, j int) bool { return a.Nodes[i].Name < a.Nodes[j].Name })
	sort.Strings(a.Problems)
	a.Outputs = w.Status.Outputs.flat()
	return a, nil
}

// nodeName writes the workflow's name at the start of a node's name as $WF.
func nodeName(name, workflow string) string {
	if rest, ok := strings.CutPrefix(name, workflow); ok {
		return "$WF" + rest
	}
	return name
}

func (o outputs) flat() Outputs {
	flat := Outputs{Artifacts: o.Artifacts, Result: o.Result}
	if o.ExitCode != nil {
		flat.ExitCode = *o.ExitCode
	}
	for _, p := range o.Parameters {
		if flat.Parameters == nil {
			flat.Parameters = map[string]string{}
		}
		flat.Parameters[p.Name] = text(p.Value)
	}
	return flat
}

// text is a parameter's value as Argo writes it: a string as it is, anything else as JSON.
func text(raw *json.RawMessage) string {
	if raw == nil || string(*raw) == "null" {
		return NoValue
	}
	var s string
	if json.Unmarshal(*raw, &s) == nil {
		return s
	}
	return string(*raw)
}

// same compares a value with an expected one, which may hold $WF, #, $TIME and $IP for what differs from run to run.
func same(want, got, workflow string) bool {
	if want == got {
		return true
	}
	if !strings.ContainsAny(want, "$#") {
		return false
	}
	pattern := regexp.QuoteMeta(want)
	for placeholder, form := range map[string]string{
		regexp.QuoteMeta("$WF"):   regexp.QuoteMeta(workflow),
		regexp.QuoteMeta("$TIME"): `[0-9T:.Z+-]+`,
		regexp.QuoteMeta("$IP"):   `[0-9a-fA-F.:]+`,
		`-#`:                      `-[0-9a-z]+`,
	} {
		pattern = strings.ReplaceAll(pattern, placeholder, form)
	}
	matched, err := regexp.MatchString("^(?s:"+pattern+")$", got)
	return err == nil && matched
}
