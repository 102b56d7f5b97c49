package engine

import "fmt"

// nextRound starts a stage of a graph with stages: all its calls at once, or none when one cannot be resolved.
func (x *step) nextRound(n *Node, index int) {
	stages := n.template.Graph.Stages
	if index >= len(stages) {
		x.finishGraph(n, SucceededPhase, "")
		return
	}
	if why := x.refused(n, n.Exit); why != "" && !x.bornStopped() {
		x.finishGraph(n, FailedPhase, why)
		return
	}
	name := fmt.Sprintf("[%d]", index)
	round := x.add(n, &plan{
		call: n.call, template: n.template, site: site{From: fromRound, Template: keyOf(n.template)},
		path: n.Path + name, name: name, index: index, exit: n.Exit,
	}, Round)
	round.Phase, round.Stage = RunningPhase, StageRun
	round.work.Open = len(stages[index])
	plans := make([]plan, len(stages[index]))
	sc := x.graphScope(n)
	for k, i := range stages[index] {
		call := &n.template.Graph.Calls[i]
		plans[k] = x.plan(sc, call, site{From: fromCall, Index: i}, round.Path+"."+call.Name, call.Name)
		plans[k].exit = n.Exit
		if err := plans[k].err; err != nil && !plans[k].shown {
			round.Message = err.Error()
			round.Phase = ErrorPhase
			x.done(round)
			return
		}
	}
	for k, i := range stages[index] {
		if plans[k].err != nil { // it is the only one that becomes a node: the others would not be waited for
			round.work.Open = 1
			n.work.Nodes[i] = x.commit(round, &plans[k]).ID
			return
		}
	}
	if len(plans) == 0 {
		x.endRound(round)
		return
	}
	for k, i := range stages[index] {
		c := x.commit(round, &plans[k])
		n.work.Nodes[i] = c.ID
	}
}

// roundChild counts a call of a round that is done.
func (x *step) roundChild(round, c *Node) {
	if c.Phase.Bad() && !tolerated(c.call, c.Phase) {
		x.failedChild(round, c)
		x.unbegun(round, c)
	}
	round.work.Open--
	if round.work.Open == 0 && round.Stage == StageRun {
		x.endRound(round)
	}
}

// failedChild remembers the first child in order of creation whose failure counts.
func (x *step) failedChild(n, c *Node) {
	// A loop is told of in words through its first bad item.
	culprit := c
	if c.Kind == LoopNode {
		for _, id := range c.Children {
			if k := x.s.Node(id); !k.Hooked && k.Phase.Bad() {
				culprit = k
				break
			}
		}
	}
	if n.work.Culprit == 0 || culprit.ID < n.work.Culprit {
		n.work.Culprit = culprit.ID
	}
}

// unbegun remembers the first child that could not even be begun; for a loop that is an item.
func (x *step) unbegun(n, c *Node) {
	id := c.work.Unbegun
	if c.Kind != LoopNode && c.work.Broken && c.Phase == ErrorPhase {
		id = c.ID
	}
	if id != 0 && (n.work.Unbegun == 0 || id < n.work.Unbegun) {
		n.work.Unbegun = id
	}
}

func (x *step) endRound(round *Node) {
	round.Phase = SucceededPhase
	if c := x.s.Node(round.work.Culprit); c != nil {
		round.Phase = FailedPhase
		round.Message = fmt.Sprintf("child '%s' failed", c.Path)
		if g := x.s.Node(round.Parent); g != nil && g.template.Graph.FailFast {
			round.Message = failedFast
		}
	}
	if c := x.s.Node(round.work.Unbegun); c != nil {
		round.Phase = ErrorPhase
		round.Message = fmt.Sprintf("step group deemed errored due to child %s error: %s", c.Path, c.Message)
	}
	x.done(round)
}

// roundDone goes on to the next round, or ends the graph with the round's failure.
func (x *step) roundDone(n, round *Node) {
	if n.Stage != StageRun {
		return
	}
	if round.Phase.Bad() {
		x.finishGraph(n, FailedPhase, round.Message)
		return
	}
	if n.work.Stopping != "" {
		x.finishGraph(n, FailedPhase, n.work.Stopping)
		return
	}
	x.nextRound(n, round.Index+1)
}
