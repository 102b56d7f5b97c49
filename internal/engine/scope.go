package engine

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// scope is what one evaluation can see: see [expr.Scope] for the paths.
type scope struct {
	x *step
	// frame is the node whose inputs are seen (inputs overrides them); graph the one whose calls are; leaf is set for
	// a task's own texts. Nil means none.
	frame, graph, leaf *Node
	inputs             *Inputs
	item               *any
	// own is the node that a lifecycle call belongs to: its call's name means this node, also where it is one of a loop.
	own *Node
	// status is what the node of a lifecycle expression, or the run, is said to be.
	status string
	// fixed gives the time and the seeds of evaluations that must come out the same each time they are made.
	fixed *rendering
	// last is the result that a retry policy decides about.
	last *Result
}

var _ expr.Scope = (*scope)(nil)

func (x *step) env(sc *scope) expr.Env {
	if sc.fixed != nil {
		return sc.fixed.env()
	}
	return expr.Env{Scope: sc, Now: x.now, Seed: x.draw()}
}

func (r *rendering) env() expr.Env {
	r.draws++
	return expr.Env{Scope: r.sc, Now: r.now, Seed: mix(r.seed, r.draws)}
}

// hasTag is the quick test for a placeholder, the same in all languages.
func hasTag(s string) bool { return strings.Contains(s, "{{") }

func (x *step) runScope() *scope { return &scope{x: x} }

// graphScope is what the calls of a graph see.
func (x *step) graphScope(n *Node) *scope { return &scope{x: x, frame: n, graph: n} }

// leafScope is what a node's own template sees.
func (x *step) leafScope(n *Node) *scope {
	sc := &scope{x: x, frame: n, leaf: n, item: n.Item}
	if n.Kind == GraphNode {
		sc.graph = n
	}
	sc.fixed = x.recorded(n, sc)
	return sc
}

// recorded evaluates with the time and seed that a node has kept; nil before it has.
func (x *step) recorded(n *Node, sc *scope) *rendering {
	if n.work == nil || n.work.At.IsZero() {
		return nil
	}
	return &rendering{x: x, sc: sc, seed: n.work.Seed, now: n.work.At}
}

// callScope is what the call that a node stands for sees.
func (x *step) callScope(n *Node) *scope {
	g := x.enclosingGraph(n)
	return &scope{x: x, frame: g, graph: g, item: n.Item, own: n}
}

// enclosingGraph is the graph that a node's call stands in; nil for the entry call.
func (x *step) enclosingGraph(n *Node) *Node {
	for n != nil {
		owner := n.site.From == fromLifecycle
		n = x.s.Node(n.Parent)
		if n == nil || (n.Kind == GraphNode && !owner) {
			return n
		}
	}
	return nil
}

func (sc scope) withItem(item *any) *scope        { sc.item = item; return &sc }
func (sc scope) withInputs(inputs *Inputs) *scope { sc.inputs = inputs; return &sc }

// Lookup implements [expr.Scope].
func (sc *scope) Lookup(path []string) (any, expr.Presence) {
	if len(path) == 0 {
		return nil, expr.Absent
	}
	rest := path[1:]
	switch path[0] {
	case "inputs":
		return sc.input(rest)
	case "outputs":
		return sc.output(rest)
	case "tasks", "steps":
		return sc.task(rest)
	case "item":
		if sc.item == nil {
			return nil, expr.Absent
		}
		return descend(*sc.item, rest)
	case "hooks":
		return sc.hook(rest)
	case "workflow":
		return sc.workflow(rest)
	case "retries", "lastRetry":
		return sc.retry(path)
	case "node", "pod", "task":
		return sc.self(path)
	case "status", "duration", "exitCode":
		return sc.metric(path)
	}
	return nil, expr.Absent
}

// descend follows the rest of a path into a JSON value.
func descend(v any, path []string) (any, expr.Presence) {
	for i, key := range path {
		switch t := v.(type) {
		case map[string]any:
			e, ok := t[key]
			if !ok {
				// A key may itself have dots ("app.kubernetes.io/name").
				e, ok = t[strings.Join(path[i:], ".")]
				if ok {
					return e, expr.Present
				}
				return nil, expr.Absent
			}
			v = e
		case []program.Artifact:
			return artifactField(t, path[i:])
		default:
			return nil, expr.Absent
		}
	}
	return v, expr.Present
}

func (sc *scope) frameInputs() *Inputs {
	if sc.inputs != nil {
		return sc.inputs
	}
	if sc.frame != nil {
		return &sc.frame.Inputs
	}
	return nil
}

func (sc *scope) input(path []string) (any, expr.Presence) {
	in := sc.frameInputs()
	if in == nil {
		return nil, expr.Absent
	}
	if len(path) == 0 {
		return map[string]any{"parameters": orEmpty(in.Parameters), "artifacts": sc.inputArtifacts(in)}, expr.Present
	}
	switch path[0] {
	case "parameters":
		if len(path) == 1 {
			return orEmpty(in.Parameters), expr.Present
		}
		if v, ok := in.Parameters[path[1]]; ok {
			return descend(v, path[2:])
		}
		if sc.declares(path[1], false) {
			return nil, expr.Skipped
		}
		return dotted(orEmpty(in.Parameters), path[1:])
	case "artifacts":
		if len(path) == 1 {
			return sc.inputArtifacts(in), expr.Present
		}
		list, ok := in.Artifacts[path[1]]
		if len(path) == 3 && path[2] == "path" {
			// The path is known of an optional artifact that is not there, too.
			if p, found := sc.inputPath(path[1], list); found {
				return p, expr.Present
			}
		}
		if !ok {
			if sc.declares(path[1], true) {
				return nil, expr.Skipped
			}
			return nil, expr.Absent
		}
		if len(path) == 2 {
			return list, expr.Present
		}
		if path[2] == "json" && len(path) == 3 {
			return sc.x.artifactJSON(list)
		}
		return artifactField(list, path[2:])
	}
	return nil, expr.Absent
}

// dotted finds a name that has dots in it.
func dotted(m map[string]any, path []string) (any, expr.Presence) {
	if len(path) > 1 {
		if v, ok := m[strings.Join(path, ".")]; ok {
			return v, expr.Present
		}
	}
	return nil, expr.Absent
}

// declares says whether the frame's template has an input of that name.
func (sc *scope) declares(name string, artifact bool) bool {
	if sc.frame == nil || sc.frame.template == nil {
		return false
	}
	in := &sc.frame.template.Inputs
	if artifact {
		for i := range in.Artifacts {
			if in.Artifacts[i].Name == name {
				return true
			}
		}
		return false
	}
	for i := range in.Parameters {
		if in.Parameters[i].Name == name {
			return true
		}
	}
	return false
}

func (sc *scope) inputArtifacts(in *Inputs) map[string]any {
	out := make(map[string]any, len(in.Artifacts))
	for name, list := range in.Artifacts {
		out[name] = list
	}
	return out
}

// inputPath is where an input artifact is in the task: as declared, else as the language says.
func (sc *scope) inputPath(name string, list []program.Artifact) (string, bool) {
	if sc.frame == nil || sc.frame.template == nil {
		return "", false
	}
	for i := range sc.frame.template.Inputs.Artifacts {
		d := &sc.frame.template.Inputs.Artifacts[i]
		if d.Name != name {
			continue
		}
		if d.Path == "" {
			if len(list) == 0 {
				return "", false
			}
			return sc.x.m.lang.InputPath(list[0]), true
		}
		if !hasTag(d.Path) {
			return d.Path, true
		}
		p, err := sc.x.m.lang.Text(d.Path, sc.x.env(sc))
		return p, err == nil
	}
	return "", false
}

// output is what a leaf can read of its own outputs: where to put them.
func (sc *scope) output(path []string) (any, expr.Presence) {
	n := sc.leaf
	if n == nil || n.template == nil {
		return nil, expr.Absent
	}
	places, paths, err := sc.x.places(n)
	if err != nil {
		return nil, expr.Absent
	}
	if len(path) == 0 || len(path) == 1 {
		params := map[string]any{}
		for i := range n.template.Outputs.Parameters {
			o := &n.template.Outputs.Parameters[i]
			params[o.Name] = map[string]any{"path": o.Path}
		}
		arts := map[string]any{}
		for name, a := range places {
			arts[name] = []program.Artifact{a}
		}
		all := map[string]any{"parameters": params, "artifacts": arts}
		return descend(all, path)
	}
	switch path[0] {
	case "parameters":
		for i := range n.template.Outputs.Parameters {
			o := &n.template.Outputs.Parameters[i]
			if o.Name != path[1] {
				continue
			}
			p := o.Path
			if hasTag(p) {
				if p, err = sc.x.m.lang.Text(p, sc.x.env(sc)); err != nil {
					return nil, expr.Absent
				}
			}
			return descend(map[string]any{"path": p}, path[2:])
		}
	case "artifacts":
		a, ok := places[path[1]]
		if !ok {
			return nil, expr.Absent
		}
		if len(path) == 2 {
			return []program.Artifact{a}, expr.Present
		}
		if len(path) == 3 && path[2] == "path" {
			return paths[path[1]], expr.Present
		}
		if len(path) == 3 && path[2] == "json" {
			return sc.x.artifactJSON([]program.Artifact{a})
		}
		return artifactField([]program.Artifact{a}, path[2:])
	}
	return nil, expr.Absent
}

// hook finds a placeholder of the node or of a graph around it, innermost first.
func (sc *scope) hook(path []string) (any, expr.Presence) {
	start := sc.leaf
	if start == nil {
		start = sc.graph
	}
	if start == nil {
		start = sc.frame
	}
	if len(path) == 0 {
		return nil, expr.Absent
	}
	for n := start; n != nil; n = sc.x.s.Node(n.Parent) {
		if v, p := hookValue(n, path); p == expr.Present {
			return v, p
		}
	}
	// Exit handlers stand beside the root, which the hooks of the workflow were asked about.
	if root := sc.x.s.Node(sc.x.s.Root); root != nil && start != nil {
		if v, p := hookValue(root, path); p == expr.Present {
			return v, p
		}
	}
	return nil, expr.Absent
}

func hookValue(n *Node, path []string) (any, expr.Presence) {
	for i := len(n.Hooks) - 1; i >= 0; i-- {
		hc := &n.Hooks[i]
		if hc.Hook != path[0] || hc.Point != Pre || hc.Answered.IsZero() {
			continue
		}
		if len(path) == 1 {
			return orEmpty(hc.Answer.Placeholders), expr.Present
		}
		if v, p := descend(orEmpty(hc.Answer.Placeholders), path[1:]); p == expr.Present {
			return normal(v), p
		}
	}
	return nil, expr.Absent
}

// Names gives parameters in the order of their declaration: where a language writes all of them, that is how.
func (sc *scope) Names(path []string) []string {
	if len(path) != 2 || path[1] != "parameters" {
		return nil
	}
	var declared []program.Input
	switch {
	case path[0] == "workflow":
		declared = sc.x.m.program.Parameters
	case path[0] == "inputs" && sc.frame != nil && sc.frame.template != nil:
		declared = sc.frame.template.Inputs.Parameters
	}
	names := make([]string, len(declared))
	for i := range declared {
		names[i] = declared[i].Name
	}
	return names
}
