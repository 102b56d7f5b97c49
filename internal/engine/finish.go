package engine

import "strings"

// conclude ends a node's own work with a result; its Post hooks and lifecycle calls follow.
func (x *step) conclude(n *Node, r Result) {
	if n.Stage == StageDone || n.Stage == StagePost || n.Stage == StageCalls {
		return
	}
	w := n.work
	if w.Asking { // a Pre hook is not waited for any more
		w.Asking = false
		hc := &n.Hooks[w.Review]
		x.emit(CancelHook{Node: n.ID, Point: hc.Point, Hook: hc.Hook, UID: x.reviewUID(n, w.Review)})
	}
	x.cancelTimers(n)
	x.freePlace(n)
	n.Stage = StagePost
	w.Result, w.Ended = &r, x.now
	n.Message, n.ExitCode, n.Reused, n.Outputs = r.Message, r.ExitCode, r.Reused, r.Outputs
	if n.endedDaemon() && w.Stopping != "" {
		n.ExitCode = nil // it says only that the daemon was told to end; Argo shows none either
	}
	if r.Host != "" {
		n.Host = r.Host
	}
	if r.Resources != nil {
		n.Resources = r.Resources
	}
	if r.Containers != nil {
		n.Containers = r.Containers
	}
	x.s.touch(n)
	x.decideRetry(n)
	// Post goes through the order of hooks backwards, from the end.
	w.Hook = 2 * len(x.s.Run.Hooks)
	x.postNext(n)
}

// decideRetry settles for an attempt, once, whether another follows its result.
func (x *step) decideRetry(n *Node) {
	parent := x.s.Node(n.Parent)
	if n.endedDaemon() { // what depends on it runs already
		n.work.Again, n.work.Why = false, ""
		return
	}
	if n.site.From != fromParent || parent == nil || parent.Kind != RetryNode {
		n.work.Again = n.work.Granted && n.work.Result.Phase.Bad()
		return
	}
	if n.work.Granted && n.work.Result.Phase.Bad() {
		n.work.Again = true
		return
	}
	var err error
	w := n.work
	w.Again, w.Wait, w.Why, err = x.again(parent, n, w.Result)
	if w.Undecided = err != nil; w.Undecided {
		w.Why = err.Error()
	}
}

// closed gives a node its phase, once its Post hooks have answered, and starts the calls that subscribe to it.
func (x *step) closed(n *Node) {
	r := n.work.Result
	parent := x.s.Node(n.Parent)
	attempt := n.site.From == fromParent && parent != nil && parent.Kind == RetryNode
	if n.work.Again && !attempt && x.s.Shutdown != "Terminate" {
		x.asAttempt(n)
		return
	}
	n.Phase, n.Message = r.Phase, r.Message
	if note := n.ignored(); note != "" {
		n.Message = strings.TrimPrefix(n.Message+"; "+note, "; ")
	}
	x.s.touch(n)
	if n.endedDaemon() { // whoever called it was told when it was ready
		x.done(n)
		return
	}
	if !attempt {
		x.publish(n)
		x.watch(n, string(n.Phase))
		x.runExitCalls(n)
		if n.work.Calls > 0 {
			n.Stage = StageCalls
			return
		}
	}
	x.done(n)
}

// publish makes outputs with a global name the workflow's.
func (x *step) publish(n *Node) {
	if n.template == nil {
		return
	}
	out := &n.template.Outputs
	for i := range out.Parameters {
		if g := out.Parameters[i].GlobalName; g != "" {
			if v, ok := n.Outputs.Parameters[out.Parameters[i].Name]; ok {
				if x.s.Outputs.Parameters == nil {
					x.s.Outputs.Parameters = map[string]any{}
				}
				x.s.Outputs.Parameters[x.name(g, n)] = v
				x.s.touchRun()
			}
		}
	}
	for i := range out.Artifacts {
		if g := out.Artifacts[i].GlobalName; g != "" {
			if v, ok := n.Outputs.Artifacts[out.Artifacts[i].Name]; ok {
				if x.s.Outputs.Artifacts == nil {
					x.s.Outputs.Artifacts = artifactMap{}
				}
				x.s.Outputs.Artifacts[x.name(g, n)] = v
				x.s.touchRun()
			}
		}
	}
}

// name resolves a global name's placeholders; one that has none is itself.
func (x *step) name(text string, n *Node) string {
	if !hasTag(text) {
		return text
	}
	if t, err := x.m.lang.Text(text, x.env(x.leafScope(n))); err == nil {
		return t
	}
	return text
}

// done ends a node for good and gives back what it holds; its parent is told when the event's handling comes to it.
func (x *step) done(n *Node) {
	if n.Stage == StageDone {
		return
	}
	n.Stage, n.Finished = StageDone, x.now
	if n.work.Locked {
		n.work.Locked = false
		x.emit(ReleaseLocks{Node: n.ID, Path: n.Path})
	}
	x.failFast(n)
	x.freeSlot(n)
	if n.Phase.Bad() && (n.Kind == Leaf || n.Kind == AbsentNode) {
		x.s.failed = append(x.s.failed, n.ID)
	}
	x.s.touch(n)
	x.ended = append(x.ended, n)
}

// childDone tells whoever waits for a node that it is done (or, for a daemon, that it is ready).
func (x *step) childDone(n *Node) {
	parent := x.s.Node(n.Parent)
	if n.endedDaemon() {
		x.daemonDone(n, parent)
		return
	}
	switch n.site.From {
	case fromEntry:
		x.rootDone(n)
	case fromExit, fromRun:
		x.exitDone()
	case fromLifecycle:
		if parent.work != nil {
			parent.work.Calls--
			if parent.Stage == StageCalls && parent.work.Calls == 0 {
				x.done(parent)
			}
		}
	case fromRound:
		x.roundDone(parent, n)
	case fromCall:
		if parent.Kind == Round {
			x.roundChild(parent, n)
		} else {
			x.callEnded(parent, n.site.Index, n)
		}
	case fromParent:
		if parent.Kind == LoopNode {
			x.loopChild(parent, n)
		} else {
			x.attemptDone(parent, n)
		}
	}
	if n.Stage == StageDone {
		n.work = n.work.rest()
	}
}

// rest is what a done node still needs: the nodes of a graph's calls and what was lost, for a run that is tried again, and
// what notices of its end say.
func (w *work) rest() *work {
	if w == nil || (w.Nodes == nil && w.Notices == nil && w.Lost == nil) {
		return nil
	}
	left := &work{Nodes: w.Nodes, Branch: w.Branch, Notices: w.Notices, Lost: w.Lost}
	if w.Notices != nil {
		left.Result, left.Ended = w.Result, w.Ended
	}
	return left
}
