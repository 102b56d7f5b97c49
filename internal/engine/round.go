package engine

import "fmt"

// nextRound starts a stage of a graph with stages: all its calls at once, or none when one cannot be resolved.
func (x *step) nextRound(n *Node, index int) {
	stages := n.template.Graph.Stages
	if index >= len(stages) {
		x.finishGraph(n, SucceededPhase, "")
		return
	}
	if why := x.refused(n, n.Exit); why != "" {
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
		if err := plans[k].err; err != nil {
			round.Message = err.Error()
			round.Phase = ErrorPhase
			x.done(round)
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

func (x *step) endRound(round *Node) {
	round.Phase = SucceededPhase
	if c := x.s.Node(round.work.Culprit); c != nil {
		round.Phase = FailedPhase
		round.Message = fmt.Sprintf("child '%s' failed", c.Path)
		if g := x.s.Node(round.Parent); g != nil && g.template.Graph.FailFast {
			round.Message = failedFast
		}
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
