package engine

import "github.com/sluice-ml/sluice/internal/program"

// maxLifecycle bounds the lifecycle calls of one call, and of the workflow: a word has a bit for each that was started.
const maxLifecycle = 64

// subscribed gives the lifecycle calls of a node that may be watched by them: it stands for the call, for a loop over it or for
// one item of that.
func (x *step) subscribed(n *Node) []program.Lifecycle {
	if n.call == nil || len(n.call.Lifecycle) == 0 || n.Kind == Round || n.Kind == AbsentNode {
		return nil
	}
	if n.site.From == fromParent && x.s.Node(n.Parent).Kind != LoopNode {
		return nil
	}
	return n.call.Lifecycle
}

// watches says whether a lifecycle call of a node's call watches that node. Where there is a loop, Argo's exit handlers are
// about each item. So are all others in steps, which have no node for the loop; those of a DAG's task are about the loop.
func (x *step) watches(l *program.Lifecycle, n *Node) bool {
	loop := n
	if n.Kind != LoopNode {
		loop = x.s.Node(n.Parent)
		if n.site.From != fromParent || loop.Kind != LoopNode {
			return true
		}
	}
	group := x.s.Node(loop.Parent)
	whole := !l.Exit && group != nil && group.Kind == GraphNode
	return whole == (n == loop)
}

// watch starts the calls whose expression has become true with a node's new status, each once.
func (x *step) watch(n *Node, status string) {
	calls := x.subscribed(n)
	if calls == nil {
		return
	}
	for i := range calls {
		l := &calls[i]
		if l.Exit || n.work.Fired&(1<<i) != 0 || !x.watches(l, n) {
			continue
		}
		sc := x.callScope(n)
		sc.status = status
		if x.wanted(l, sc) {
			x.call(n, i, l, sc)
		}
	}
}

// wanted evaluates a lifecycle call's expression. One that cannot be evaluated is not true: what it reads may not be there
// yet, or may never be.
func (x *step) wanted(l *program.Lifecycle, sc *scope) bool {
	ok, err := x.m.lang.Condition(program.Condition{Form: "expression", Source: l.Expression}, x.env(sc))
	return ok && err == nil
}

// runExitCalls starts a node's exit handlers.
func (x *step) runExitCalls(n *Node) {
	calls := x.subscribed(n)
	for i := range calls {
		if l := &calls[i]; l.Exit && n.work.Fired&(1<<i) == 0 && x.watches(l, n) {
			sc := x.callScope(n)
			sc.status = string(n.Phase)
			if l.Expression != "" && !x.wanted(l, sc) {
				continue
			}
			x.call(n, i, l, sc)
		}
	}
}

func (x *step) call(n *Node, i int, l *program.Lifecycle, sc *scope) {
	if x.refused(n, l.Exit || n.Exit) != "" {
		return
	}
	n.work.Fired |= 1 << i
	suffix := ".hooks." + l.Name
	if l.Exit {
		suffix = ".onExit"
	}
	p := x.plan(sc, &l.Call, site{From: fromLifecycle, Index: i}, n.Path+suffix, n.Name+suffix)
	p.hooked, p.exit = true, l.Exit || n.Exit
	n.work.Calls++
	x.commit(n, &p)
}

// runLifecycle starts the calls that watch the workflow as a whole.
func (x *step) runLifecycle(status string) {
	calls := x.m.program.Lifecycle
	for i := range calls {
		l := &calls[i]
		if x.s.own.Fired&(1<<i) != 0 || (l.Exit && status == string(RunningPhase)) {
			continue
		}
		sc := x.runScope()
		sc.status = status
		if !l.Exit && !x.wanted(l, sc) {
			continue
		}
		if x.refused(nil, l.Exit) != "" {
			continue
		}
		x.s.own.Fired |= 1 << i
		path := x.s.Run.Name + ".hooks." + l.Name
		if l.Exit {
			path = x.s.Run.Name + ".onExit"
		}
		p := x.plan(sc, &l.Call, site{From: fromRun, Index: i}, path, path)
		p.hooked, p.exit = true, l.Exit
		x.s.own.Calls++
		x.commit(nil, &p)
	}
}
