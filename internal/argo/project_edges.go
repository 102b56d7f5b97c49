package argo

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
)

// hidden says whether a node has no counterpart in Argo: the items of a step's loop stand in its group directly, and what
// memoize found before the first attempt is the retry node's own.
func (j *projector) hidden(n *engine.Node) bool {
	parent := j.s.Node(n.Parent)
	if parent == nil {
		return false
	}
	if parent.Kind == engine.RetryNode {
		return !n.Hooked && n.Attempt == 0 && (memoized(n) || j.keyRefused(n))
	}
	return n.Kind == engine.LoopNode && parent.Kind == engine.Round
}

// memoized says whether the outputs of earlier work stand for a node because its author asked for that.
func memoized(n *engine.Node) bool {
	t := n.Template()
	return n.CacheHit != nil && *n.CacheHit && t != nil && t.Cache != nil && t.Cache.Scheme == "key"
}

// keyRefused says whether what a node's author asked of the cache makes no sense, such as a key that is none.
func (j *projector) keyRefused(n *engine.Node) bool {
	if n.Kind == engine.RetryNode {
		for _, id := range n.Children {
			if a := j.s.Node(id); !a.Hooked {
				return a.Attempt == 0 && j.keyRefused(a)
			}
		}
		return false
	}
	for i := range n.Hooks {
		if c := &n.Hooks[i]; c.Point == engine.Pre && c.Answer.Decision == engine.DecideFail && c.Hook == j.cache() {
			return true
		}
	}
	return false
}

// cache is the name of the hook that is the cache; empty where none is.
func (j *projector) cache() string {
	for i := range j.s.Run.Hooks {
		if h := &j.s.Run.Hooks[i]; h.Cache {
			return h.Name
		}
	}
	return ""
}

// parents gives the nodes in whose children a node stands. In Argo that is the order of events, not the tree of calls:
// a step group stands under the ends of the one before it, a task under the ends of those that it depends on.
func (j *projector) parents(n *engine.Node) []string {
	parent := j.s.Node(n.Parent)
	switch {
	case parent == nil:
		root := j.s.Node(j.s.Root)
		if n.Hooked && !n.Exit && root != nil {
			return []string{j.id(root.Path)}
		}
		return nil
	case n.Hooked:
		return []string{j.id(parent.Path)}
	case n.Kind == engine.Round:
		return j.roundParents(n, parent)
	case j.hidden(parent):
		return j.parents(parent)
	case parent.Kind == engine.GraphNode:
		return j.taskParents(n, parent)
	}
	return []string{j.id(parent.Path)}
}

func (j *projector) roundParents(n, graph *engine.Node) []string {
	var before *engine.Node
	for _, id := range graph.Children {
		if c := j.s.Node(id); c != nil && c.Kind == engine.Round && !c.Dropped && c.Index == n.Index-1 {
			before = c
		}
	}
	if before == nil {
		return []string{j.id(graph.Path)}
	}
	ends := j.roundEnds(before)
	if len(ends) == 0 {
		return []string{j.id(before.Path)}
	}
	return ends
}

// roundEnds gives the ends of all children of a step group.
func (j *projector) roundEnds(round *engine.Node) []string {
	var out ends
	for _, c := range j.shown(round) {
		out.add(j.outbound(c)...)
	}
	return out.ids
}

// shown gives a node's children as Argo has them: those of a hidden loop in its place.
func (j *projector) shown(n *engine.Node) []*engine.Node {
	var out []*engine.Node
	for _, id := range n.Children {
		c := j.s.Node(id)
		switch {
		case c == nil || c.Dropped:
		case j.hidden(c):
			out = append(out, j.shown(c)...)
		default:
			out = append(out, c)
		}
	}
	return out
}

func (j *projector) taskParents(n, graph *engine.Node) []string {
	call := n.Call()
	if call == nil || len(call.Needs) == 0 {
		return []string{j.id(graph.Path)}
	}
	var out ends
	members := j.membersOf(graph)
	calls := graph.Template().Graph.Calls
	for _, need := range call.Needs {
		if dep := j.s.Node(members[calls[need].Name]); dep != nil {
			out.add(j.outbound(dep)...)
		}
	}
	if len(out.ids) == 0 {
		return []string{j.id(graph.Path)}
	}
	return out.ids
}

// membersOf finds the nodes of a graph's calls by the calls' names.
func (j *projector) membersOf(graph *engine.Node) map[string]engine.NodeID {
	m, ok := j.members[graph.ID]
	if !ok {
		m = make(map[string]engine.NodeID, len(graph.Children))
		for _, id := range graph.Children {
			if c := j.s.Node(id); c != nil && !c.Hooked && !c.Dropped && c.Call() != nil {
				m[c.Call().Name] = id
			}
		}
		j.members[graph.ID] = m
	}
	return m
}

// outbound gives the ends of a node: those below which stands what comes after it.
func (j *projector) outbound(n *engine.Node) []string {
	self := []string{j.id(n.Path)}
	switch n.Kind {
	case engine.LoopNode:
		var out ends
		for _, c := range j.shown(n) {
			out.add(j.outbound(c)...)
		}
		if len(out.ids) == 0 {
			return self
		}
		return out.ids
	case engine.RetryNode:
		children := j.shown(n)
		if len(children) == 0 {
			if len(n.Children) > 0 { // memoized
				return self
			}
			return nil
		}
		return []string{j.id(children[len(children)-1].Path)}
	case engine.GraphNode:
		if n.CacheHit != nil && *n.CacheHit {
			return self
		}
		return j.graphEnds(n)
	case engine.Leaf:
		if set := containerSetOf(n); set != nil {
			out := ends{}
			out.add(setEnds(set, func(name string) string { return j.id(n.Path + "." + name) })...)
			for _, c := range j.shown(n) {
				out.add(j.outbound(c)...)
			}
			return out.ids
		}
	}
	return self
}

// graphEnds gives the ends of a graph: of its last round, or of its targets.
func (j *projector) graphEnds(n *engine.Node) []string {
	t := n.Template()
	if t == nil || t.Graph == nil {
		return nil
	}
	if t.Graph.Stages != nil {
		var last *engine.Node
		for _, id := range n.Children {
			if c := j.s.Node(id); c != nil && c.Kind == engine.Round && !c.Dropped {
				last = c
			}
		}
		if last == nil {
			return nil
		}
		return j.roundEnds(last)
	}
	var out ends
	members := j.membersOf(n)
	target := j.targets(n)
	for i := range t.Graph.Calls {
		if !target[i] {
			continue
		}
		if c := j.s.Node(members[t.Graph.Calls[i].Name]); c != nil {
			out.add(j.outbound(c)...)
		}
	}
	return out.ids
}

// targets says which calls decide a DAG: those that its target names, else those that nothing depends on.
func (j *projector) targets(n *engine.Node) []bool {
	g := n.Template().Graph
	out := make([]bool, len(g.Calls))
	if g.Targets != "" {
		text := g.Targets
		if hasTag(text) {
			if t, err := j.lang.Text(text, j.env(n)); err == nil {
				text = t
			}
		}
		named := map[string]bool{}
		for name := range strings.FieldsSeq(text) {
			named[name] = true
		}
		for i := range g.Calls {
			out[i] = named[g.Calls[i].Name]
		}
		return out
	}
	for i := range out {
		out[i] = true
	}
	for i := range g.Calls {
		for _, need := range g.Calls[i].Needs {
			out[need] = false
		}
	}
	return out
}

// boundary gives the graph that a node's call stands in; nil for what the workflow itself calls.
func (j *projector) boundary(n *engine.Node) *engine.Node {
	for {
		parent := j.s.Node(n.Parent)
		switch {
		case parent == nil:
			return nil
		case parent.Kind == engine.GraphNode && !n.Hooked:
			return parent
		}
		n = parent
	}
}

// ends is a list of IDs, each once.
type ends struct {
	ids  []string
	seen map[string]bool
}

func (e *ends) add(ids ...string) {
	for _, id := range ids {
		if e.seen == nil {
			e.seen = map[string]bool{}
		}
		if !e.seen[id] {
			e.seen[id] = true
			e.ids = append(e.ids, id)
		}
	}
}
