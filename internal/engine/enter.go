package engine

import (
	"errors"
	"fmt"

	"github.com/sluice-ml/sluice/internal/program"
)

// plan is an invocation of a call as it will be when it becomes a node. Planning has no effect, so that a round whose
// calls cannot all be resolved starts none of them.
type plan struct {
	call     *program.Call
	site     site
	path     string
	name     string
	item     *any
	index    int
	template *program.Template
	retry    *program.Retry
	inputs   Inputs

	loop  bool
	items []plan

	hooked, exit bool
	// skip says why the call is not run; err why it cannot be.
	skip string
	err  error
	// shown says that the call is a node all the same, as upstream makes it before it finds such a mistake.
	shown bool
}

// plan resolves a call in its graph's scope: loop items, condition, template and arguments, in that order.
func (x *step) plan(sc *scope, call *program.Call, at site, path, name string) plan {
	p := plan{call: call, site: at, path: path, name: name}
	if call.Loop == nil {
		x.resolve(sc, &p)
		return p
	}
	p.loop = true
	// A loop's node carries the template too, so that readers know what its items run.
	p.template, _ = x.bindTemplate(call, sc)
	p.site.Template = keyOf(p.template)
	items, err := x.loopItems(call.Loop, sc)
	if err != nil {
		p.err = err
		return p
	}
	p.items = make([]plan, len(items))
	for i := range items {
		item := items[i]
		suffix := fmt.Sprintf("(%d)", i)
		if t := x.m.lang.ItemName(item); t != "" {
			suffix = fmt.Sprintf("(%d:%s)", i, t)
		}
		kid := plan{
			call: call, site: site{From: fromParent}, path: path + suffix, name: name + suffix,
			item: &items[i], index: i,
		}
		x.resolve(sc.withItem(&items[i]), &kid)
		if kid.err != nil && p.err == nil {
			p.err = kid.err
		}
		p.items[i] = kid
	}
	return p
}

// resolve decides whether an invocation runs, and with what.
func (x *step) resolve(sc *scope, p *plan) {
	if n := len(p.call.Lifecycle); n > maxLifecycle {
		p.err = fmt.Errorf("%d lifecycle hooks are more than %d", n, maxLifecycle)
		return
	}
	when := p.call.When
	if when != nil && when.Form != "cel" && !x.holds(when, sc, p) {
		if t, err := x.bindTemplate(p.call, sc); err == nil {
			p.template, p.site.Template = t, keyOf(t)
		}
		return
	}
	t, err := x.bindTemplate(p.call, sc)
	if err != nil {
		p.err, p.shown = err, true
		return
	}
	p.template, p.site.Template = t, keyOf(t)
	p.retry = p.call.Retry
	if p.retry == nil {
		p.retry = t.Retry
	}
	if p.inputs, err = x.resolveInputs(t, &p.call.Arguments, sc); err != nil {
		p.err = err
		return
	}
	if when != nil && when.Form == "cel" {
		// KFP's trigger policy reads the call's own inputs.
		x.holds(when, sc.withInputs(&p.inputs), p)
	}
}

// holds evaluates a condition and notes in the plan what its failing means.
func (x *step) holds(c *program.Condition, sc *scope, p *plan) bool {
	ok, err := x.m.lang.Condition(*c, x.env(sc))
	if err != nil {
		p.err = fmt.Errorf("condition %q: %w", c.Source, err)
		_, unknown := x.m.lang.Text(c.Source, x.env(sc)) // what it reads is not there: upstream does not come to the call
		p.shown = unknown == nil
		return false
	}
	if !ok {
		text := c.Source
		if c.Form == "when" {
			if t, err := x.m.lang.Text(c.Source, x.env(sc)); err == nil {
				text = t
			}
		}
		p.skip = fmt.Sprintf("when '%s' evaluated false", text)
	}
	return ok
}

var errNoTemplate = errors.New("names no template")

// bindTemplate finds the template that a call names.
func (x *step) bindTemplate(call *program.Call, sc *scope) (*program.Template, error) {
	ref := &call.Template
	if ref.Inline != nil {
		return ref.Inline, nil
	}
	scopeKey, name := ref.Scope, ref.Name
	var err error
	if hasTag(name) {
		if name, err = x.m.lang.Text(name, x.env(sc)); err != nil {
			return nil, fmt.Errorf("template name: %w", err)
		}
	}
	if hasTag(scopeKey) {
		if scopeKey, err = x.m.lang.Text(scopeKey, x.env(sc)); err != nil {
			return nil, fmt.Errorf("template reference: %w", err)
		}
	}
	if name == "" {
		return nil, errNoTemplate
	}
	t, ok := x.m.program.Templates[scopeKey+"/"+name]
	if !ok {
		return nil, fmt.Errorf("template %q not found in %s", name, scopeKey)
	}
	return t, nil
}

func keyOf(t *program.Template) string {
	if t == nil {
		return ""
	}
	return t.Key
}

// commit makes a node, or a group of them, of a plan and begins it.
func (x *step) commit(parent *Node, p *plan) *Node {
	if p.err == nil && p.skip == "" {
		if why := x.refused(parent, p.exit); why != "" {
			switch {
			case !x.bornStopped() || p.retry != nil:
				return x.absent(parent, p, FailedPhase, why)
			case p.loop && len(p.items) > 0: // its items are refused
			case !p.loop && p.template.Graph != nil:
				n := x.add(parent, p, GraphNode)
				n.Inputs = p.inputs
				x.enterGraph(n)
				return n
			default:
				return x.absent(parent, p, FailedPhase, why)
			}
		}
		if depth := x.depth(parent); depth > x.s.Run.MaxDepth {
			p.err = fmt.Errorf("the workflow calls templates more than %d deep: does its recursion end?", x.s.Run.MaxDepth)
		}
		if x.s.Len() >= x.mostNodes() {
			p.err = fmt.Errorf("the run has grown to %d nodes: does its recursion end?", x.s.Len())
		}
	}
	switch {
	case p.err != nil:
		n := x.absent(parent, p, ErrorPhase, p.err.Error())
		n.work.Broken = p.shown
		return n
	case p.skip != "":
		return x.absent(parent, p, SkippedPhase, p.skip)
	case p.loop && len(p.items) == 0:
		phase := SkippedPhase
		if p.call.Loop.EmptySucceeds {
			phase = SucceededPhase
		}
		return x.absent(parent, p, phase, "Skipped, empty params")
	case p.loop:
		n := x.add(parent, p, LoopNode)
		n.Phase, n.Stage = RunningPhase, StageRun
		n.work.Open = len(p.items)
		n.Children = make([]NodeID, 0, len(p.items))
		for i := range p.items {
			x.commit(n, &p.items[i])
		}
		x.watch(n, string(RunningPhase))
		return n
	}
	kind := Leaf
	switch {
	case p.retry != nil:
		kind = RetryNode
	case p.template.Graph != nil:
		kind = GraphNode
	}
	n := x.add(parent, p, kind)
	n.Inputs = p.inputs
	x.begin(n)
	return n
}

// mostNodes is where a run stops growing.
func (x *step) mostNodes() int {
	if n := x.s.Run.MaxNodes; n > 0 {
		return n
	}
	return defaultNodes
}

// add makes a node under its parent (nil: of the run itself).
func (x *step) add(parent *Node, p *plan, kind NodeKind) *Node {
	n := &Node{
		ID: NodeID(len(x.s.nodes)), Kind: kind, Path: p.path, Name: p.name, Item: p.item, Index: p.index,
		Hooked: p.hooked, Exit: p.exit, Phase: Pending, Started: x.now,
		call: p.call, template: p.template, site: p.site, work: &work{},
	}
	if x.s.Generation > 0 {
		n.Identity = x.regenerated(n.Path)
	}
	x.s.nodes = append(x.s.nodes, n)
	if parent != nil {
		n.Parent = parent.ID
		parent.Children = append(parent.Children, n.ID)
		x.s.touch(parent)
	}
	x.s.touch(n)
	return n
}

// absent makes a node that has ended before it began.
func (x *step) absent(parent *Node, p *plan, phase Phase, message string) *Node {
	n := x.add(parent, p, AbsentNode)
	n.Phase, n.Message = phase, message
	n.Inputs = p.inputs
	x.done(n)
	return n
}

// depth counts the graphs around a node.
func (x *step) depth(n *Node) int {
	d := 0
	for ; n != nil; n = x.s.Node(n.Parent) {
		if n.Kind == GraphNode {
			d++
		}
	}
	return d
}

// begin takes the node's slot, then its locks, then asks the Pre hooks, then starts its work.
func (x *step) begin(n *Node) {
	if owner, limit := x.slots(n); owner != nil {
		if int64(owner.Active) >= limit {
			n.Stage = StageSlot
			owner.Queue = append(owner.Queue, n.ID)
			return
		}
		owner.Active++
		n.work.Slotted = true
	}
	x.lock(n)
}

// lock asks for the locks of an attempt's template.
func (x *step) lock(n *Node) {
	if (n.Kind != Leaf && n.Kind != GraphNode) || len(n.template.Locks) == 0 {
		x.locked(n)
		return
	}
	locks, err := x.resolveLocks(n.template.Locks, x.leafScope(n))
	if err != nil {
		n.work.Broken = true
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	n.Stage, n.work.Locked, n.work.Locks = StageLocks, true, locks
	n.Message = x.waitsFor(locks)
	x.s.touch(n)
	x.emit(AcquireLocks{Node: n.ID, Path: n.Path, Locks: locks})
}

func (x *step) locked(n *Node) {
	n.Message = ""
	n.Stage = StagePre
	n.work.At, n.work.Seed = x.now, x.draw()
	if n.work.Reopened {
		x.retrier().goOnWith(n)
		return
	}
	x.askNext(n)
}

// proceed starts the node's own work, once its Pre hooks have answered.
func (x *step) proceed(n *Node) {
	switch n.Kind {
	case GraphNode:
		x.enterGraph(n)
	case RetryNode:
		n.Phase, n.Stage = RunningPhase, StageRun
		x.watch(n, string(RunningPhase))
		x.nextAttempt(n)
	case Leaf:
		x.place(n)
	}
}
