package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
)

// edits are what people and tools may write into a Workflow object to steer it, as Argo's own tools do: spec.shutdown,
// spec.suspend, and in status.nodes how a suspended task has ended.
type edits struct {
	shutdown  string
	suspended bool
	nodes     map[string]json.RawMessage
}

func editsOf(w workflow, c status.Content) edits {
	e := edits{shutdown: w.shutdown(), suspended: w.suspended(), nodes: c.Nodes}
	if deadline, ok := nestedInt(w, "spec", "activeDeadlineSeconds"); ok && deadline == 0 && e.shutdown == "" {
		e.shutdown = "Terminate" // as old tools did it
	}
	return e
}

// editedNode is what counts of a node that somebody may have edited.
type editedNode struct {
	Phase   engine.Phase `json:"phase"`
	Message string       `json:"message"`
	Outputs struct {
		Parameters []struct {
			Name      string          `json:"name"`
			Value     *argo.AnyString `json:"value"`
			ValueFrom *struct {
				Supplied *json.RawMessage `json:"supplied"`
			} `json:"valueFrom"`
		} `json:"parameters"`
	} `json:"outputs"`
}

// supplied gives the outputs that somebody has put in.
func (n *editedNode) supplied() map[string]any {
	out := map[string]any{}
	for _, p := range n.Outputs.Parameters {
		if p.Value != nil && (p.ValueFrom == nil || p.ValueFrom.Supplied == nil) {
			out[p.Name] = string(*p.Value)
		}
	}
	return out
}

// steer turns edits into events for a run that goes on. ids gives nodes' IDs in the object by their names; before is
// what spec.suspend said when it was looked at last.
func steer(s *engine.State, e edits, ids map[string]string, before bool) []engine.Event {
	if s.Phase.Ended() {
		return nil
	}
	switch {
	case e.shutdown == "Terminate" && s.Shutdown != "Terminate":
		return []engine.Event{{Shutdown: &engine.Shutdown{Terminate: true}}}
	case e.shutdown == "Stop" && s.Shutdown == "":
		return []engine.Event{{Shutdown: &engine.Shutdown{}}}
	}
	var events []engine.Event
	for n := range s.Nodes() {
		if !waitsForPerson(n) {
			continue
		}
		data, ok := e.nodes[ids[n.Path]]
		if !ok {
			continue
		}
		var edited editedNode
		if json.Unmarshal(data, &edited) != nil || !edited.Phase.Ended() {
			continue
		}
		supplied := edited.supplied()
		given := map[string]any{}
		for i := range n.Template().Outputs.Parameters {
			o := &n.Template().Outputs.Parameters[i]
			if v, ok := supplied[o.Name]; ok && o.Supplied {
				given[o.Name] = v
			}
		}
		events = append(events, engine.Event{Resume: &engine.Resume{
			Nodes: []engine.NodeID{n.ID}, Outputs: given, Message: edited.Message, Phase: edited.Phase,
		}})
	}
	switch {
	case s.Suspended && before && !e.suspended:
		// Tasks are resumed one by one, with their outputs; then the workflow, in which none waits any more.
		events = append(events, engine.Event{Resume: &engine.Resume{}})
	case !s.Suspended && !before && e.suspended:
		events = append(events, engine.Event{Suspend: &engine.Suspend{}})
	}
	return events
}

// waitsForPerson says whether a node is a suspended task.
func waitsForPerson(n *engine.Node) bool {
	return n.Kind == engine.Leaf && n.Stage == engine.StageRun && n.Template() != nil && n.Template().Suspend != nil
}

// retryOf says what to try again in an ended run, from an object in which somebody has taken away or reset the nodes that
// are to run again, as `argo retry` does. names are the nodes of the object by their IDs as this process would show them.
func retryOf(s *engine.State, w workflow, there status.Content, ids map[string]string) engine.RetryRun {
	var r engine.RetryRun
	for n := range s.Nodes() {
		if n.Kind != engine.Leaf || n.Phase != engine.SucceededPhase || n.Exit {
			continue
		}
		data, kept := there.Nodes[ids[n.Path]]
		var edited editedNode
		if kept && (json.Unmarshal(data, &edited) != nil || edited.Phase.Ended()) {
			continue
		}
		if !exits(s, n) {
			r.Restart = append(r.Restart, n.ID)
		}
	}
	parameters, _ := nested(w.Object, "spec", "arguments", "parameters").([]any)
	for _, p := range parameters {
		m, _ := p.(map[string]any)
		name, _ := m["name"].(string)
		v, given := m["value"]
		if !given || name == "" {
			continue
		}
		text := fmt.Sprint(v)
		if old, known := s.Parameters[name]; known && fmt.Sprint(old) != text {
			if r.Parameters == nil {
				r.Parameters = map[string]any{}
			}
			r.Parameters[name] = text
		}
	}
	return r
}

// exits says whether a node belongs to an exit handler, which runs again in any case.
func exits(s *engine.State, n *engine.Node) bool {
	for ; n != nil; n = s.Node(n.Parent) {
		if n.Exit || n.Hooked && n.Parent == 0 {
			return true
		}
	}
	return false
}

// idsOf gives the IDs of a content's nodes by their names.
func idsOf(c status.Content) map[string]string {
	out := make(map[string]string, len(c.Nodes))
	for _, id := range slices.Sorted(maps.Keys(c.Nodes)) {
		var n struct{ Name string }
		if json.Unmarshal(c.Nodes[id], &n) == nil {
			out[n.Name] = id
		}
	}
	return out
}

// nested finds a value in JSON, nil where it is not there.
func nested(m map[string]any, path ...string) any {
	var v any = m
	for _, step := range path {
		in, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = in[step]
	}
	return v
}

func nestedInt(w workflow, path ...string) (int64, bool) {
	switch v := nested(w.Object, path...).(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}
