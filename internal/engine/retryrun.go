package engine

import (
	"fmt"
	"maps"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// retryRun starts a failed run again. What succeeded stays as it is, recorded hook answers included; a failed task
// starts anew under the same path, so the number of its attempt goes on where it was; a graph goes on where it stopped.
func (x *step) retryRun(e RetryRun) error {
	s := x.s
	if !s.Phase.Ended() {
		return fmt.Errorf("engine: the run has not ended")
	}
	for _, id := range e.Restart {
		if s.Node(id) == nil {
			return fmt.Errorf("engine: there is no node %d to start again", id)
		}
	}
	root := s.Node(s.Root)
	if root != nil && !root.Phase.Bad() && len(e.Restart) == 0 && !s.Phase.Bad() {
		return fmt.Errorf("engine: the run has succeeded: nothing is to be tried again")
	}
	s.Phase, s.Message, s.Shutdown, s.Suspended = RunningPhase, "", "", false
	s.Generation++
	s.own = &work{}
	s.ExitRoot = 0
	for _, n := range s.nodes[1:] {
		if n.work != nil && n.Stage == StageDone {
			n.work.Notices = nil // the run's end has told them
			n.work = n.work.rest()
		}
		if n.Parent == 0 && n.ID != s.Root { // exit handlers and what else watched the run
			dropTree(x, n)
		}
	}
	if len(e.Parameters) > 0 {
		// Commands have given the old ones away. The new ones count as given.
		s.Parameters, s.Run.Parameters = maps.Clone(s.Parameters), maps.Clone(s.Run.Parameters)
		if s.Run.Parameters == nil {
			s.Run.Parameters = map[string]any{}
		}
		for k, v := range e.Parameters {
			s.Parameters[k] = normal(v)
			s.Run.Parameters[k] = s.Parameters[k]
		}
	}
	s.touchRun()
	if x.m.program.Deadline > 0 {
		s.own.Deadline = x.now.Add(runDeadline(x.m.program))
		x.emit(SetTimer{Timer: Timer{Kind: DeadlineTimer}, At: s.own.Deadline})
	}
	s.Finished = time.Time{}
	s.own.Restart = e.Restart
	if len(x.m.program.Locks) == 0 {
		x.goOn()
		return nil
	}
	locks, err := x.resolveLocks(x.m.program.Locks, x.runScope())
	if err != nil {
		x.endRun(ErrorPhase, err.Error())
		return nil
	}
	s.own.Locked, s.own.Locks, s.own.Reopened = true, locks, true
	s.Message = x.waitsFor(locks)
	x.emit(AcquireLocks{Path: s.Run.Name, Locks: locks})
	return nil
}

// goOn starts what is to run again, once the run has its locks.
func (x *step) goOn() {
	s := x.s
	s.Message = ""
	root := s.Node(s.Root)
	switch r := x.retrier(); {
	case root == nil:
		x.enterRoot()
	case root.Kind == AbsentNode && r.wanted(root):
		dropTree(x, root)
		x.enterRoot()
	case r.wanted(root):
		r.again(root)
	default:
		// Only an exit handler failed: it runs once more.
		x.rootDone(root)
	}
}

// retrier knows what a person wants to run again.
func (x *step) retrier() *retrier {
	if x.retries != nil {
		return x.retries
	}
	restart := map[NodeID]bool{}
	for _, id := range x.s.own.Restart {
		for n := x.s.Node(id); n != nil; n = x.s.Node(n.Parent) {
			restart[n.ID] = true
		}
	}
	x.retries = &retrier{x: x, restart: restart}
	return x.retries
}

// retrier walks over what has to run again: it costs as much as the run is large, once.
type retrier struct {
	x       *step
	restart map[NodeID]bool
}

// wanted says whether a node is to run again, or something in it is.
func (r *retrier) wanted(n *Node) bool {
	return n.Phase.Bad() || n.Phase == OmittedPhase || r.restart[n.ID]
}

// again brings a node back to life.
func (r *retrier) again(n *Node) {
	x := r.x
	switch n.Kind {
	case GraphNode:
		if n.work == nil || n.work.Nodes == nil {
			r.fresh(n) // it never came to its calls
			return
		}
		r.reenter(n)
	case LoopNode:
		todo := r.reopen(n)
		n.work.Open = len(todo)
		for _, id := range n.Children {
			if c := x.s.Node(id); c.Phase == SucceededPhase && !c.Hooked && !r.wanted(c) {
				n.work.Succeeded++
			}
		}
		r.drop(n, absent(todo)...)
		for _, c := range todo {
			if c.Kind == AbsentNode {
				r.item(n, c)
			} else {
				r.again(c)
			}
		}
		x.watch(n, string(RunningPhase))
	case RetryNode:
		r.reenter(n)
		n.Started = x.now
	default:
		r.fresh(n)
	}
}

// reenter takes a group's slot and locks again before it goes on. Its Pre hooks have answered.
func (r *retrier) reenter(n *Node) {
	r.reopen(n)
	n.work.Before = n.Attempt
	if n.Kind != RetryNode {
		n.work.Before = 0
	}
	if err := r.renew(n); err != nil {
		r.x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	n.work.Reopened = true
	r.x.begin(n)
}

// renew resolves the inputs of a call that runs again: the workflow's parameters may be others, and so what came before.
// What is no call of its own keeps its inputs.
func (r *retrier) renew(n *Node) error {
	parent := r.x.s.Node(n.Parent)
	if n.site.From == fromParent && (parent == nil || parent.Kind != LoopNode) {
		return nil
	}
	p := plan{call: n.call}
	r.x.resolve(r.x.callScope(n), &p)
	if p.err == nil && p.template == n.template {
		n.Inputs = p.inputs
	}
	return p.err
}

// goOnWith goes on with a group that has its slot and locks again.
func (r *retrier) goOnWith(n *Node) {
	n.work.Reopened = false
	n.Phase, n.Stage = RunningPhase, StageRun
	r.x.s.touch(n)
	r.x.watch(n, string(RunningPhase))
	if n.Kind == RetryNode {
		r.x.nextAttempt(n)
		return
	}
	if err := r.x.startDeadline(n); err != nil {
		r.x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	if n.template.Graph.Stages != nil {
		r.rounds(n)
	} else {
		r.graph(n)
	}
}

// absent are those of some nodes that never became what they stand for: they are planned again.
func absent(nodes []*Node) []*Node {
	var out []*Node
	for _, n := range nodes {
		if n.Kind == AbsentNode {
			out = append(out, n)
		}
	}
	return out
}

// item plans an item of a loop again that could not be run, and was dropped.
func (r *retrier) item(loop, old *Node) {
	p := plan{
		call: old.call, site: site{From: fromParent}, path: old.Path, name: old.Name, item: old.Item, index: old.Index, exit: old.Exit,
	}
	r.x.resolve(r.x.callScope(loop).withItem(old.Item), &p)
	r.x.commit(loop, &p)
}

// reopen makes a done group run again, and gives the children of it that are to: those that failFast took back before they
// began are children again.
func (r *retrier) reopen(n *Node) []*Node {
	x := r.x
	r.dropCalls(n)
	w := &work{}
	if n.work != nil {
		w.Nodes, w.Branch = n.work.Nodes, n.work.Branch
		for _, id := range n.work.Lost {
			x.s.Node(id).Dropped = false
		}
		n.Children = append(n.Children, n.work.Lost...)
	}
	n.work = w
	n.Phase, n.Stage, n.Message = RunningPhase, StageRun, ""
	n.Finished, n.Outputs, n.ExitCode = time.Time{}, Outputs{}, nil
	x.s.touch(n)
	var todo []*Node
	for _, id := range n.Children {
		if c := x.s.Node(id); !c.Hooked && r.wanted(c) {
			todo = append(todo, c)
		}
	}
	return todo
}

// fresh runs a leaf, or a call that never became one, anew: a leaf keeps its node and its path, and gets a
// new identity for the backend.
func (r *retrier) fresh(n *Node) {
	x := r.x
	if n.Kind == AbsentNode {
		return
	}
	r.dropCalls(n)
	n.Identity = x.regenerated(n.Path)
	n.work = &work{}
	n.Phase, n.Stage, n.Message, n.Reused, n.CacheHit = Pending, "", "", false, nil
	n.Started, n.Finished, n.Outputs, n.ExitCode = x.now, time.Time{}, Outputs{}, nil
	n.Hooks = nil
	x.s.touch(n)
	if err := r.renew(n); err != nil {
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	x.begin(n)
}

// graph goes on with a graph of dependencies: calls that succeeded count as ended; the others are decided once more.
func (r *retrier) graph(n *Node) {
	x := r.x
	g := n.template.Graph
	sh, err := x.shape(n)
	if err != nil {
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	w := n.work
	w.Needs = make([]int32, len(g.Calls))
	w.Branch = make([]Phase, len(g.Calls))
	// again holds the calls that run again: those that failed or never came to run, and all behind them, since what
	// they would be decided by may be another.
	again := make([]bool, len(g.Calls))
	for i := range g.Calls {
		c := x.s.Node(w.Nodes[i])
		if c == nil || c.Phase.Bad() || r.restart[c.ID] || (c.Phase == OmittedPhase && c.Kind != AbsentNode) {
			again[i] = true
			r.spread(sh, i, again)
		}
	}
	for i := range g.Calls {
		if !sh.wanted[i] {
			continue
		}
		if again[i] {
			w.Open++
		} else {
			w.Branch[i] = x.branch(n, &g.Calls[i], x.s.Node(w.Nodes[i]))
		}
		for _, need := range g.Calls[i].Needs {
			if again[need] {
				w.Needs[i]++
			}
		}
	}
	if w.Open == 0 {
		x.endGraph(n, sh)
		return
	}
	old := append([]NodeID(nil), w.Nodes...)
	var gone []*Node
	for i := range g.Calls {
		if !sh.wanted[i] || !again[i] {
			continue
		}
		c := x.s.Node(old[i])
		if c != nil && c.Kind != AbsentNode && !behind(g, i, again) {
			w.Needs[i] = -1 // it goes on below, without being decided
			continue
		}
		if c != nil {
			gone = append(gone, c)
		}
		w.Nodes[i] = 0
	}
	r.drop(n, gone...)
	for i := range g.Calls {
		if !sh.wanted[i] || !again[i] {
			continue
		}
		switch {
		case w.Needs[i] == -1:
			w.Needs[i] = 0
			r.again(x.s.Node(old[i]))
		case w.Needs[i] == 0:
			x.decide(n, i)
		}
	}
}

// behind says whether a call waits for another that runs again.
func behind(g *program.Graph, i int, again []bool) bool {
	for _, need := range g.Calls[i].Needs {
		if again[need] {
			return true
		}
	}
	return false
}

// spread marks all calls behind a call.
func (r *retrier) spread(sh *shape, i int, again []bool) {
	for stack := []int{i}; len(stack) > 0; {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, d := range sh.dependants[i] {
			if !again[d] {
				again[d] = true
				stack = append(stack, d)
			}
		}
	}
}

// rounds goes on with a graph of stages: its failed round runs again, the later ones follow.
func (r *retrier) rounds(n *Node) {
	x := r.x
	var round *Node
	var later []*Node
	rounds := 0
	for _, id := range n.Children {
		c := x.s.Node(id)
		switch {
		case c.Kind != Round:
		case round == nil && r.wanted(c):
			round = c
		case round != nil:
			later = append(later, c)
		default:
			rounds++
		}
	}
	r.drop(n, later...)
	if round == nil {
		x.nextRound(n, rounds)
		return
	}
	if len(round.Children) < len(n.template.Graph.Stages[round.Index]) { // it never started: its calls could not be resolved
		r.drop(n, round)
		x.nextRound(n, round.Index)
		return
	}
	todo := r.reopen(round)
	round.work.Open = len(todo)
	r.drop(round, absent(todo)...)
	for _, c := range todo {
		if c.Kind != AbsentNode {
			r.again(c)
			continue
		}
		call, index := c.call, c.site.Index
		p := x.plan(x.graphScope(n), call, site{From: fromCall, Index: index}, round.Path+"."+call.Name, call.Name)
		n.work.Nodes[index] = x.commit(round, &p).ID
	}
	if len(todo) == 0 {
		x.endRound(round)
	}
}

// drop takes children of a node and all below them out of the tree: all at once, since to take one costs as much as there
// are children. Their places in the state stay, so that IDs keep their meaning.
func (r *retrier) drop(parent *Node, children ...*Node) {
	if len(children) == 0 {
		return
	}
	for _, c := range children {
		dropTree(r.x, c)
	}
	var left []NodeID // a new list: who looked at the node has the old one
	for _, id := range parent.Children {
		if !r.x.s.Node(id).Dropped {
			left = append(left, id)
		}
	}
	parent.Children = left
	r.x.s.touch(parent)
}

func dropTree(x *step, n *Node) {
	n.Dropped = true
	x.s.touch(n)
	for _, id := range n.Children {
		dropTree(x, x.s.Node(id))
	}
}

// dropCalls takes out the lifecycle calls of a node that runs again: they will be made anew.
func (r *retrier) dropCalls(n *Node) {
	var calls []*Node
	for _, id := range n.Children {
		if c := r.x.s.Node(id); c.Hooked {
			calls = append(calls, c)
		}
	}
	r.drop(n, calls...)
}

// regenerated is the identity of an attempt in a run that was tried again: its path alone may have been used before.
func (x *step) regenerated(path string) string { return fmt.Sprintf("%s#%d", path, x.s.Generation) }
