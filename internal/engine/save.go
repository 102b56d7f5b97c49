package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// saved is a state's JSON form.
type saved struct {
	Run        Run            `json:"run"`
	Phase      Phase          `json:"phase,omitempty"`
	Message    string         `json:"message,omitempty"`
	Started    time.Time      `json:"started,omitzero"`
	Finished   time.Time      `json:"finished,omitzero"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Artifacts  artifactMap    `json:"artifacts,omitempty"`
	Outputs    Outputs        `json:"outputs,omitzero"`
	Root       NodeID         `json:"root,omitempty"`
	ExitRoot   NodeID         `json:"exitRoot,omitempty"`
	Suspended  bool           `json:"suspended,omitempty"`
	Shutdown   string         `json:"shutdown,omitempty"`
	Generation int            `json:"generation,omitempty"`
	Own        *work          `json:"own"`
	Failed     []NodeID       `json:"failed,omitempty"`
	Nodes      []savedNode    `json:"nodes"`
}

// plainNode has Node's fields without its methods, so that encoding does not come back here.
type plainNode Node

type savedNode struct {
	plainNode
	Site site  `json:"site"`
	Work *work `json:"work,omitempty"`
}

// MarshalJSON gives the whole state; [Machine.Load] takes it back.
func (s *State) MarshalJSON() ([]byte, error) {
	out := saved{
		Run: s.Run, Phase: s.Phase, Message: s.Message, Started: s.Started, Finished: s.Finished,
		Parameters: s.Parameters, Artifacts: s.Artifacts, Outputs: s.Outputs, Root: s.Root, ExitRoot: s.ExitRoot,
		Suspended: s.Suspended, Shutdown: s.Shutdown, Generation: s.Generation, Own: s.own, Failed: s.failed,
		Nodes: make([]savedNode, 0, len(s.nodes)-1),
	}
	for _, n := range s.nodes[1:] {
		out.Nodes = append(out.Nodes, savedNode{plainNode(*n), n.site, n.work})
	}
	return json.Marshal(out)
}

// Load reads a saved state of the machine's program.
func (m *Machine) Load(data []byte) (*State, error) {
	var in saved
	if err := decode(data, &in); err != nil {
		return nil, fmt.Errorf("engine: saved state: %w", err)
	}
	s := &State{
		Run: in.Run, Phase: in.Phase, Message: in.Message, Started: in.Started, Finished: in.Finished,
		Parameters: normalMap(in.Parameters), Artifacts: normalArtifacts(in.Artifacts), Outputs: in.Outputs.normal(),
		Root: in.Root, ExitRoot: in.ExitRoot, Suspended: in.Suspended, Shutdown: in.Shutdown, Generation: in.Generation, own: in.Own, failed: in.Failed,
		nodes: make([]*Node, 1, len(in.Nodes)+1),
	}
	if s.own == nil {
		s.own = &work{}
	}
	s.Run.Parameters = normalMap(s.Run.Parameters)
	s.Run.Artifacts = normalArtifacts(s.Run.Artifacts)
	for i := range in.Nodes {
		n := (*Node)(&in.Nodes[i].plainNode)
		if n.ID != NodeID(i+1) {
			return nil, fmt.Errorf("engine: saved state: node %d is out of place", i+1)
		}
		n.site, n.work = in.Nodes[i].Site, in.Nodes[i].Work
		if n.work == nil && n.Stage != StageDone {
			n.work = &work{}
		}
		n.normalise()
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes[1:] {
		if err := m.rebind(s, n, 0); err != nil {
			return nil, fmt.Errorf("engine: saved state: node %s: %w", n.Path, err)
		}
	}
	return s, nil
}

func normalMap(m map[string]any) map[string]any {
	for k, v := range m {
		m[k] = normal(v)
	}
	return m
}

func normalArtifacts(m artifactMap) artifactMap {
	for _, list := range m {
		for i := range list {
			list[i].Metadata = normalMap(list[i].Metadata)
		}
	}
	return m
}

func (out Outputs) normal() Outputs {
	normalMap(out.Parameters)
	normalArtifacts(out.Artifacts)
	return out
}

func (n *Node) normalise() {
	normalMap(n.Inputs.Parameters)
	normalArtifacts(n.Inputs.Artifacts)
	n.Outputs.normal()
	if n.Item != nil {
		v := normal(*n.Item)
		n.Item = &v
	}
	for i := range n.Hooks {
		n.Hooks[i].Answer.normal()
	}
	if n.work != nil && n.work.Result != nil {
		n.work.Result.Outputs.normal()
	}
}

// asArtifacts recognises a loop item that is an artifact: such items are lists of one.
func asArtifacts(v any) ([]program.Artifact, bool) {
	l, ok := v.([]any)
	if !ok || len(l) != 1 {
		return nil, false
	}
	m, ok := l[0].(map[string]any)
	if !ok {
		return nil, false
	}
	if _, ok := m["uri"]; !ok {
		return nil, false
	}
	data, err := json.Marshal(l)
	if err != nil {
		return nil, false
	}
	var list []program.Artifact
	if json.Unmarshal(data, &list) != nil {
		return nil, false
	}
	return list, true
}

// rebind finds the call and the template of a loaded node again.
func (m *Machine) rebind(s *State, n *Node, depth int) error {
	if n.call != nil {
		return nil
	}
	if depth > len(s.nodes) {
		return fmt.Errorf("its parents go in a circle")
	}
	parent := s.Node(n.Parent)
	if parent != nil {
		if err := m.rebind(s, parent, depth+1); err != nil {
			return err
		}
	}
	call, err := m.callAt(s, n.site, parent)
	if err != nil {
		return err
	}
	n.call = call
	if n.Item != nil && call.Loop != nil && call.Loop.Artifacts {
		if list, ok := asArtifacts(*n.Item); ok {
			var item any = list
			n.Item = &item
		}
	}
	switch {
	case n.site.Template != "":
		if n.template = m.program.Templates[n.site.Template]; n.template == nil && call.Template.Inline == nil {
			return fmt.Errorf("the program has no template %q", n.site.Template)
		}
	}
	if n.template == nil && call.Template.Inline != nil {
		n.template = call.Template.Inline
	}
	if n.template == nil && n.Kind != AbsentNode && n.Kind != LoopNode {
		return fmt.Errorf("it has no template")
	}
	return nil
}

func (m *Machine) callAt(s *State, at site, parent *Node) (*program.Call, error) {
	p := m.program
	pick := func(calls []program.Lifecycle) (*program.Call, error) {
		if at.Index < 0 || at.Index >= len(calls) {
			return nil, fmt.Errorf("the program has no lifecycle call %d there", at.Index)
		}
		return &calls[at.Index].Call, nil
	}
	switch at.From {
	case fromEntry:
		return &p.Entry, nil
	case fromExit:
		if p.OnExit == nil {
			return nil, fmt.Errorf("the program has no exit handler")
		}
		return p.OnExit, nil
	case fromRun:
		return pick(p.Lifecycle)
	}
	if parent == nil {
		return nil, fmt.Errorf("it has no parent")
	}
	switch at.From {
	case fromRound, fromParent:
		return parent.call, nil
	case fromLifecycle:
		return pick(parent.call.Lifecycle)
	case fromCall:
		graph := parent
		if parent.Kind == Round {
			graph = s.Node(parent.Parent)
		}
		if graph == nil || graph.template == nil || graph.template.Graph == nil || at.Index < 0 || at.Index >= len(graph.template.Graph.Calls) {
			return nil, fmt.Errorf("the program has no call %d there", at.Index)
		}
		return &graph.template.Graph.Calls[at.Index], nil
	}
	return nil, fmt.Errorf("origin %q is unknown", at.From)
}
