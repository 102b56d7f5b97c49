// Package argocheck compares what sluice made of an Argo manifest with what upstream's controller made of it, by the
// rules of the conformance corpus' README: phase, and for every node type, phase, children, outputs and exit code.
package argocheck

import (
	"encoding/json"
	"fmt"
	"os"
)

// Expected is one file of the corpus' expected/ folder: a run on a real cluster, with the workflow's generated name
// written $WF, a pod's suffix #, times $TIME and addresses $IP.
type Expected struct {
	File string `json:"file"`
	Kind string `json:"kind"`
	// Name is the object's own name where it was not run as it is (see Via).
	Name string `json:"name"`
	// Via says how the run was started where the file is no plain Workflow: "workflowTemplateRef" for templates.
	Via string `json:"via"`
	// Result is the final phase, or "rejected".
	Result  string `json:"result"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	// Volatile runs are compared by node names, types and phases only. Random ones only for consistency.
	Volatile  bool `json:"volatile"`
	Random    bool `json:"random"`
	Suspended bool `json:"suspended"`
	NodeCount int  `json:"nodeCount"`

	Nodes         []Node            `json:"nodes"`
	Outputs       Outputs           `json:"outputs"`
	Prerequisites map[string]string `json:"prerequisites"`
}

// Node is a node of a run, expected or seen, by name.
type Node struct {
	Name         string   `json:"name"`
	DisplayName  string   `json:"displayName"`
	Type         string   `json:"type"`
	Phase        string   `json:"phase"`
	Message      string   `json:"message"`
	TemplateName string   `json:"templateName"`
	Boundary     string   `json:"boundary"`
	Children     []string `json:"children"`
	Outputs      Outputs  `json:"outputs"`
}

// Outputs of a node or a workflow.
type Outputs struct {
	// Parameters by name; NoValue for one that is declared but has no value yet.
	Parameters map[string]string `json:"parameters"`
	Artifacts  []Artifact        `json:"artifacts"`
	Result     *string           `json:"result"`
	ExitCode   string            `json:"exitCode"`
}

// Artifact is an output artifact; only its name is compared, since where it is stored is each one's own business.
type Artifact struct {
	Name string `json:"name"`
}

// NoValue stands for the value of an output parameter that has none.
const NoValue = "<valueFrom>"

// Invalid says whether upstream refused the spec after it was submitted: phase Failed (or rejected) and no nodes at all.
func (e *Expected) Invalid() bool {
	return e.Result == "rejected" || e.Result == "Failed" && e.NodeCount == 0
}

// ReadExpected reads an expected file.
func ReadExpected(path string) (*Expected, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read expected run: %w", err)
	}
	var e Expected
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fmt.Errorf("read expected run %s: %w", path, err)
	}
	return &e, nil
}
