package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// shape is what the engine derives from a graph once: who depends on whom and which calls count.
type shape struct {
	dependants [][]int
	// wanted says which calls some target needs, target which decide the result.
	wanted, target []bool
	count          int
	byName         map[string]int
}

// shapeKey names a shape: a graph, and its resolved targets.
type shapeKey struct {
	graph   *program.Graph
	targets string
}

func (m *Machine) shapeOf(g *program.Graph, targets string) *shape {
	key := shapeKey{g, targets}
	if sh, ok := m.graphs[key]; ok {
		return sh
	}
	n := len(g.Calls)
	sh := &shape{
		dependants: make([][]int, n), wanted: make([]bool, n), target: make([]bool, n), byName: make(map[string]int, n),
	}
	for i := range g.Calls {
		sh.byName[g.Calls[i].Name] = i
		for _, need := range g.Calls[i].Needs {
			sh.dependants[need] = append(sh.dependants[need], i)
		}
	}
	want := func(i int) {
		for stack := []int{i}; len(stack) > 0; {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if sh.wanted[i] {
				continue
			}
			sh.wanted[i] = true
			sh.count++
			stack = append(stack, g.Calls[i].Needs...)
		}
	}
	m.graphs[key] = sh
	if names := strings.Fields(targets); len(names) > 0 {
		for _, t := range names {
			if i, ok := sh.byName[t]; ok {
				sh.target[i] = true
				want(i)
			}
		}
	} else {
		for i := range g.Calls {
			sh.target[i] = len(sh.dependants[i]) == 0 || g.Calls[i].Decisive
			want(i)
		}
	}
	return sh
}

// shape gives the shape of a graph node, with its own targets where the graph names them.
func (x *step) shape(n *Node) (*shape, error) {
	g := n.template.Graph
	if g.Targets == "" {
		return x.m.shapeOf(g, ""), nil
	}
	text, err := x.m.lang.Text(g.Targets, x.env(x.graphScope(n)))
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	sh := x.m.shapeOf(g, text)
	for t := range strings.FieldsSeq(text) {
		if _, ok := sh.byName[t]; !ok {
			return nil, fmt.Errorf("target %q is no task of the graph", t)
		}
	}
	return sh, nil
}

// enterGraph starts the calls that need no other, or the first round.
func (x *step) enterGraph(n *Node) {
	g := n.template.Graph
	n.Phase, n.Stage = RunningPhase, StageRun
	x.s.touch(n)
	x.watch(n, string(RunningPhase))
	if err := x.startDeadline(n); err != nil {
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	n.work.Nodes = make([]NodeID, len(g.Calls))
	if g.Stages != nil {
		x.nextRound(n, 0)
		return
	}
	sh, err := x.shape(n)
	if err != nil {
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	n.work.Needs = make([]int32, len(g.Calls))
	n.work.Branch = make([]Phase, len(g.Calls))
	n.work.Open = sh.count
	if sh.count == 0 {
		x.endGraph(n, sh)
		return
	}
	for i := range g.Calls {
		n.work.Needs[i] = int32(len(g.Calls[i].Needs))
	}
	for i := range g.Calls {
		if sh.wanted[i] && len(g.Calls[i].Needs) == 0 {
			x.decide(n, i)
		}
	}
}

// decide runs or omits a call all of whose needs have ended.
func (x *step) decide(n *Node, i int) {
	call := &n.template.Graph.Calls[i]
	if why := x.refused(n, n.Exit); why != "" && !x.bornStopped() {
		// Nothing new starts: the call gets no node, as upstream's does not.
		x.callEnded(n, i, nil)
		return
	}
	at := site{From: fromCall, Index: i}
	path := n.Path + "." + call.Name
	if !x.depends(n, call) {
		p := plan{call: call, site: at, path: path, name: call.Name, exit: n.Exit}
		if t, err := x.bindTemplate(call, x.graphScope(n)); err == nil {
			p.template, p.site.Template = t, keyOf(t)
		}
		n.work.Nodes[i] = x.absent(n, &p, OmittedPhase, "omitted: depends condition not met").ID
		return
	}
	p := x.plan(x.graphScope(n), call, at, path, call.Name)
	p.exit = n.Exit
	n.work.Nodes[i] = x.commit(n, &p).ID
}

// depends evaluates a call's Depends over the ended calls that it needs.
func (x *step) depends(n *Node, call *program.Call) bool {
	if call.Depends != nil {
		return x.dependsTree(n, call.Depends)
	}
	for _, need := range call.Needs {
		if !x.is(n, need, program.Succeeded) && !x.is(n, need, program.Skipped) && !x.is(n, need, program.Daemoned) {
			return false
		}
	}
	return true
}

func (x *step) dependsTree(n *Node, d *program.Depends) bool {
	switch d.Op {
	case program.And:
		for _, a := range d.Args {
			if !x.dependsTree(n, a) {
				return false
			}
		}
		return true
	case program.Or:
		for _, a := range d.Args {
			if x.dependsTree(n, a) {
				return true
			}
		}
		return false
	case program.Not:
		return len(d.Args) == 1 && !x.dependsTree(n, d.Args[0])
	default:
		return x.is(n, d.Call, d.Result)
	}
}

// is asks how a call of the graph ended.
func (x *step) is(n *Node, call int, r program.Result) bool {
	c := x.s.Node(n.work.Nodes[call])
	if c == nil {
		return false
	}
	switch r {
	case program.Succeeded:
		return c.Phase == SucceededPhase
	case program.Failed:
		return c.Phase == FailedPhase
	case program.Errored:
		return c.Phase == ErrorPhase
	case program.Skipped:
		return c.Phase == SkippedPhase
	case program.Omitted:
		return c.Phase == OmittedPhase
	case program.Daemoned:
		return c.Daemoned && c.Phase != Pending
	case program.AnySucceeded:
		if c.Kind != LoopNode {
			return c.Phase == SucceededPhase
		}
		return slices.ContainsFunc(c.Children, func(id NodeID) bool {
			item := x.s.Node(id)
			return !item.Hooked && item.Phase == SucceededPhase
		})
	case program.AllFailed:
		if c.Kind != LoopNode {
			return c.Phase.Bad()
		}
		items := 0
		for _, id := range c.Children {
			item := x.s.Node(id)
			if item.Hooked {
				continue
			}
			if !item.Phase.Bad() {
				return false
			}
			items++
		}
		return items > 0
	case program.Ended:
		return c.Phase.Ended() || c.Daemoned
	}
	return false
}

// callEnded is called when a call of a graph without stages is done; c is nil where it never became a node.
func (x *step) callEnded(n *Node, i int, c *Node) {
	if n.Stage != StageRun {
		return
	}
	sh, err := x.shape(n)
	if err != nil { // it was read before, so it can be read again
		return
	}
	call := &n.template.Graph.Calls[i]
	n.work.Branch[i] = x.branch(n, call, c)
	if c != nil && c.Phase.Bad() && !tolerated(call, c.Phase) {
		if n.work.Culprit == 0 {
			n.work.Culprit = c.ID
		}
	}
	n.work.Open--
	for _, d := range sh.dependants[i] {
		n.work.Needs[d]--
		if n.work.Needs[d] == 0 && sh.wanted[d] {
			x.decide(n, d)
		}
	}
	if n.work != nil && n.Stage == StageRun && n.work.Open == 0 {
		x.endGraph(n, sh)
	}
}

// tolerated says whether a bad result of a call does not count.
func tolerated(call *program.Call, p Phase) bool {
	return (p == FailedPhase && call.ContinueOn.Failed) || (p == ErrorPhase && call.ContinueOn.Error)
}

// branch is the phase that a call hands down: its own once it has completed, else the worst of those it needs. So a
// failure reaches a target through calls that were omitted behind it, and ends at one that ran on it and succeeded.
func (x *step) branch(n *Node, call *program.Call, c *Node) Phase {
	if c != nil {
		switch c.Phase {
		case SucceededPhase, RunningPhase:
			return SucceededPhase
		case FailedPhase, ErrorPhase:
			if tolerated(call, c.Phase) {
				return SucceededPhase
			}
			return c.Phase
		}
	}
	worst := SucceededPhase
	if c == nil {
		worst = FailedPhase
	}
	for _, need := range call.Needs {
		if b := n.work.Branch[need]; b.Bad() && worst != ErrorPhase {
			worst = b
		}
	}
	return worst
}

// failedFast is what Argo says of a template with failFast that failed.
const failedFast = "template has failed or errored children and failFast enabled"

// endGraph settles a graph all of whose calls have ended.
func (x *step) endGraph(n *Node, sh *shape) {
	phase := SucceededPhase
	for i, target := range sh.target {
		if target && n.work.Branch[i].Bad() {
			phase = n.work.Branch[i]
			if !n.template.Graph.LastFailure {
				break
			}
		}
	}
	if n.work.Stopping != "" {
		phase = FailedPhase
	}
	message := n.work.Stopping
	if phase.Bad() && message == "" && n.template.Graph.FailFast {
		phase, message = FailedPhase, failedFast
	}
	x.finishGraph(n, phase, message)
}

// finishGraph stops the graph's daemons, gathers its outputs and concludes it.
func (x *step) finishGraph(n *Node, phase Phase, message string) {
	x.stopDaemons(n.work)
	r := Result{Phase: phase, Message: message}
	if phase == SucceededPhase {
		out, err := x.graphOutputs(n)
		if err != nil {
			r.Phase, r.Message = ErrorPhase, err.Error()
		}
		r.Outputs = out
	}
	x.conclude(n, r)
}
