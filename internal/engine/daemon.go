package engine

// endedDaemon says whether a node is a daemon whose task has ended after it was ready: whoever called it was told then,
// and does not hear of its end.
func (n *Node) endedDaemon() bool {
	return n.Kind == Leaf && n.Daemoned && (n.Stage == StagePost || n.Stage == StageDone)
}

// stopDaemons ends the daemons of a graph, or of the run itself, that has ended.
func (x *step) stopDaemons(owner *work) {
	for _, id := range owner.Daemons {
		if d := x.live(id); d != nil && d.Stage == StageRun {
			d.work.Stopping = "the graph that called the daemon has ended"
			x.emit(StopTask{Node: id, Path: d.identity(), Message: d.work.Stopping})
		}
	}
}

// daemonDone is called when a daemon has ended and its Post hooks have answered, which the run's end waits for.
func (x *step) daemonDone(n, parent *Node) {
	if parent != nil && parent.Kind == RetryNode && parent.Stage == StageDone && parent.Phase == RunningPhase {
		parent.Phase = n.Phase
		x.s.touch(parent)
	}
	n.work = n.work.rest()
	x.s.own.Open = max(0, x.s.own.Open-1) // one that an abandoned run left behind was not counted
	x.maybeEndRun()
}
