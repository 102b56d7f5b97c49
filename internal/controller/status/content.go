// Package status is what of a run is shown in its Workflow object: the projection as JSON, the merge patch that leads from
// what was written last to what is to be seen now, and the compressed form of nodes that are too many for an object. It is
// pure.
package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/sluice-ml/sluice/internal/argo"
)

// The labels of a Workflow object that follow its state.
const (
	LabelPhase     = "workflows.argoproj.io/phase"
	LabelCompleted = "workflows.argoproj.io/completed"
)

// Content is what an object shows: each node's JSON by its ID, the status without its nodes, and labels and annotations that are ours.
type Content struct {
	Nodes       map[string]json.RawMessage
	Rest        map[string]any
	Labels      map[string]string
	Annotations map[string]string
	// Size is the length of all nodes as JSON.
	Size int
}

// Of gives the content of a projection.
func Of(w *argo.Workflow) (Content, error) {
	c := Content{Nodes: make(map[string]json.RawMessage, len(w.Status.Nodes)), Labels: w.Labels, Annotations: w.Annotations}
	rest := *w.Status
	rest.Nodes = nil
	for id, n := range w.Status.Nodes {
		data, err := json.Marshal(n)
		if err != nil {
			return Content{}, fmt.Errorf("node %s: %w", n.Name, err)
		}
		c.Nodes[id] = data
		c.Size += len(id) + len(data) + len(`"":,`)
	}
	data, err := json.Marshal(rest)
	if err != nil {
		return Content{}, fmt.Errorf("status: %w", err)
	}
	c.Rest, err = object(data)
	return c, err
}

// Read gives the content of an object as it lies in the cluster: its status as unstructured JSON. Compressed nodes are
// taken out of their form.
func Read(status map[string]any, labels, annotations map[string]string) (Content, error) {
	c := Content{Nodes: map[string]json.RawMessage{}, Rest: maps.Clone(status), Labels: labels, Annotations: annotations}
	if c.Rest == nil {
		c.Rest = map[string]any{}
	}
	delete(c.Rest, "nodes")
	delete(c.Rest, "compressedNodes")
	dropNulls(c.Rest)
	if packed, _ := status["compressedNodes"].(string); packed != "" {
		data, err := Unpack(packed)
		if err != nil {
			return c, err
		}
		if err := json.Unmarshal(data, &c.Nodes); err != nil {
			return c, fmt.Errorf("compressedNodes: %w", err)
		}
	}
	nodes, _ := status["nodes"].(map[string]any)
	for id, n := range nodes {
		data, err := json.Marshal(n)
		if err != nil {
			return c, fmt.Errorf("node %s: %w", id, err)
		}
		c.Nodes[id] = data
	}
	for id, data := range c.Nodes {
		c.Size += len(id) + len(data) + len(`"":,`)
	}
	return c, nil
}

// object reads a JSON object without its nulls: a merge patch cannot tell them from what is not there.
func object(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	dropNulls(out)
	return out, nil
}

func dropNulls(m map[string]any) {
	for k, v := range m {
		switch v := v.(type) {
		case nil:
			delete(m, k)
		case map[string]any:
			dropNulls(v)
		}
	}
}
