package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// refused says why nothing new may start below a node, "" if it may. Exit handlers still run after a stop, not after a
// termination.
func (x *step) refused(n *Node, exit bool) string {
	if why := x.s.own.Stopping; why != "" && (!exit || x.s.Shutdown == "Terminate") {
		return why
	}
	if exit {
		return ""
	}
	for ; n != nil; n = x.s.Node(n.Parent) {
		if n.work != nil && n.work.Stopping != "" {
			return n.work.Stopping
		}
	}
	return ""
}

// stopped is what Argo says of a run that was stopped.
func stopped(strategy string) string { return fmt.Sprintf("Stopped with strategy '%s'", strategy) }

// bornStopped says whether the entry is being entered in a run that is to end: its groups become nodes then, as upstream's do,
// and its tasks are nodes that have failed.
func (x *step) bornStopped() bool { return x.s.Root == 0 && x.s.own.Stopping != "" }

// shutdown stops the run, or single nodes of it.
func (x *step) shutdown(e Shutdown) {
	s := x.s
	if s.Phase.Ended() {
		return
	}
	strategy := "Stop"
	if e.Terminate {
		strategy = "Terminate"
	}
	why := or(e.Message, stopped(strategy))
	if len(e.Nodes) > 0 {
		for _, id := range e.Nodes {
			if n := x.live(id); n != nil {
				x.stopTree(n, why, e.Terminate)
			}
		}
		return
	}
	if s.Shutdown == "" || e.Terminate {
		s.Shutdown = strategy
	}
	s.Suspended = false
	x.stopRun(why, e.Terminate)
}

// stopRun ends everything that is going on, exit handlers aside unless force is set.
func (x *step) stopRun(why string, force bool) {
	s := x.s
	if s.own.Stopping == "" || force {
		s.own.Stopping = why
	}
	s.touchRun()
	if s.Root == 0 {
		x.endRun(FailedPhase, why)
		return
	}
	for _, n := range s.nodes[1:] {
		if n != nil && n.Stage != StageDone && n.work != nil && (force || !x.inExit(n)) {
			x.stopNode(n, why, force)
		}
	}
}

// inExit says whether a node belongs to an exit handler.
func (x *step) inExit(n *Node) bool {
	for ; n != nil; n = x.s.Node(n.Parent) {
		if n.Exit {
			return true
		}
	}
	return false
}

// stopTree ends a node and all below it.
func (x *step) stopTree(n *Node, why string, force bool) {
	for stack := []*Node{n}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, id := range slices.Backward(n.Children) {
			if c := x.s.Node(id); c.Stage != StageDone && !(c.Hooked && c.Exit) {
				stack = append(stack, c)
			}
		}
		if n.Stage != StageDone && n.work != nil {
			x.stopNode(n, why, force)
		}
	}
}

// stopNode ends one node: what has not started never will; what runs is told to stop and gives its result later.
func (x *step) stopNode(n *Node, why string, force bool) {
	w := n.work
	if w.Stopping == "" {
		w.Stopping = why
	}
	w.Forced = w.Forced || force
	x.s.touch(n)
	switch n.Stage {
	case StageLocks, StageSlot, StagePre:
		x.conclude(n, Result{Phase: FailedPhase, Message: why})
	case StageBackoff:
		n.Stage = StageRun
		x.conclude(n, Result{Phase: FailedPhase, Message: why})
	case StageRun:
		if n.Kind != Leaf {
			return // it ends when what is in it has
		}
		if n.template.Suspend != nil {
			x.conclude(n, Result{Phase: FailedPhase, Message: why})
			return
		}
		x.emit(StopTask{Node: n.ID, Path: n.identity(), Message: why, Force: force})
	case StagePost:
		if force && w.Asking {
			x.giveUpPost(n)
		}
	}
}

// giveUpPost goes on without the answer of a Post hook, which is told all the same.
func (x *step) giveUpPost(n *Node) {
	w := n.work
	w.Asking = false
	hc := &n.Hooks[w.Review]
	hc.Failure = "not waited for: the run was terminated"
	x.emit(CancelHook{Node: n.ID, Point: hc.Point, Hook: hc.Hook, UID: x.reviewUID(n, w.Review)})
	x.notify(n, w.Review)
	n.Message = w.Result.Message
	w.Hook--
	x.postNext(n)
}

// startDeadline sets the timer for a template's timeout or activeDeadlineSeconds, whichever is sooner.
func (x *step) startDeadline(n *Node) error {
	t := n.template
	if t.Timeout == "" && t.Deadline == "" {
		return nil
	}
	sc := x.leafScope(n)
	var at time.Time
	set := func(name, src string) error {
		if src == "" {
			return nil
		}
		text, err := x.m.lang.Text(src, x.env(sc))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		d, err := parseDuration(text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if end := x.now.Add(d); d > 0 && (at.IsZero() || end.Before(at)) {
			at = end
		}
		return nil
	}
	if err := set("timeout", t.Timeout); err != nil {
		return err
	}
	if err := set("activeDeadlineSeconds", t.Deadline); err != nil {
		return err
	}
	if !at.IsZero() {
		n.work.Deadline = at
		x.emit(SetTimer{Timer: Timer{n.ID, DeadlineTimer}, At: at})
	}
	return nil
}

func (x *step) cancelTimers(n *Node) {
	if !n.work.Deadline.IsZero() {
		n.work.Deadline = time.Time{}
		x.emit(CancelTimer{Timer{n.ID, DeadlineTimer}})
	}
	if !n.work.Timer.IsZero() {
		kind := BackoffTimer
		if n.Kind == Leaf {
			kind = SuspendTimer
		}
		n.work.Timer = time.Time{}
		x.emit(CancelTimer{Timer{n.ID, kind}})
	}
}

// fired acts on a timer. One that was cancelled meanwhile, or is early, changes nothing.
func (x *step) fired(t Timer) {
	if t.Node == 0 {
		own := x.s.own
		if t.Kind == DeadlineTimer && !own.Deadline.IsZero() && !x.now.Before(own.Deadline) && !x.s.Phase.Ended() {
			own.Deadline = time.Time{}
			own.Expired = true
			x.s.Suspended = false // the exit handler is to run
			x.stopRun("Max duration limit exceeded", false)
		}
		return
	}
	n := x.live(t.Node)
	if n == nil {
		return
	}
	w := n.work
	switch {
	case t.Kind == DeadlineTimer && !w.Deadline.IsZero() && !x.now.Before(w.Deadline):
		w.Deadline = time.Time{}
		w.Expired = true
		why := "timeout"
		if n.template.Timeout == "" {
			why = "Pod was active on the node longer than the specified deadline"
			if n.Kind == GraphNode {
				why = "Max duration limit exceeded"
			}
		}
		x.stopTree(n, why, false)
	case t.Kind == SuspendTimer && !w.Timer.IsZero() && !x.now.Before(w.Timer) && n.Stage == StageRun:
		w.Timer = time.Time{}
		x.suspendOver(n)
	case t.Kind == BackoffTimer && n.Stage == StageBackoff && !x.now.Before(w.Timer):
		w.Timer = time.Time{}
		n.Message = ""
		x.nextAttempt(n)
	}
}

// resume ends suspended nodes and a suspended run. Where a value that was to be supplied is missing, or none waits for one
// that was, it is refused and everything stays as it is.
func (x *step) resume(e Resume) error {
	s := x.s
	if s.Phase.Ended() {
		return nil
	}
	waiting := func(n *Node) bool {
		return n != nil && n.Kind == Leaf && n.Stage == StageRun && n.template.Suspend != nil
	}
	var nodes []*Node
	for _, n := range s.nodes[1:] {
		if waiting(n) && (len(e.Nodes) == 0 || slices.Contains(e.Nodes, n.ID)) {
			nodes = append(nodes, n)
		}
	}
	if err := checkSupplied(nodes, e); err != nil {
		return err
	}
	if len(e.Nodes) == 0 && s.Suspended {
		s.Suspended = false
		s.touchRun()
	}
	for _, n := range nodes {
		x.resumeNode(n, e)
	}
	x.fillPlaces()
	return nil
}

// checkSupplied holds the values that a person gives against those that the nodes wait for.
func checkSupplied(nodes []*Node, e Resume) error {
	known := map[string]bool{}
	var names []string
	for _, n := range nodes {
		for i := range n.template.Outputs.Parameters {
			o := &n.template.Outputs.Parameters[i]
			if !o.Supplied {
				continue
			}
			if !known[o.Name] {
				known[o.Name] = true
				names = append(names, o.Name)
			}
			if _, given := e.Outputs[o.Name]; !given && o.Default == nil && (e.Phase == "" || e.Phase == SucceededPhase) {
				return fmt.Errorf("task %s waits for the output parameter %q: supply it", n.Path, o.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Outputs)) {
		if !known[name] {
			return fmt.Errorf("nothing waits for an output parameter %q; waited for: %s", name, or(strings.Join(names, ", "), "none"))
		}
	}
	return nil
}

// suspendOver ends a suspend task whose time is up: nobody has given the values that were to be supplied.
func (x *step) suspendOver(n *Node) {
	r := Result{Phase: SucceededPhase}
	x.leafOutputs(n, &r)
	for i := range n.template.Outputs.Parameters {
		o := &n.template.Outputs.Parameters[i]
		if _, ok := r.Outputs.Parameters[o.Name]; !ok && o.Supplied && r.Phase == SucceededPhase {
			r.Phase = ErrorPhase
			r.Message = fmt.Sprintf("output parameter %q was not supplied in time, and has no default", o.Name)
		}
	}
	x.conclude(n, r)
}

func (x *step) resumeNode(n *Node, e Resume) {
	r := Result{Phase: SucceededPhase, Message: e.Message}
	if e.Phase != "" && e.Phase.Ended() {
		r.Phase = e.Phase
	}
	for i := range n.template.Outputs.Parameters {
		o := &n.template.Outputs.Parameters[i]
		if v, ok := e.Outputs[o.Name]; ok && o.Supplied {
			if r.Outputs.Parameters == nil {
				r.Outputs.Parameters = map[string]any{}
			}
			r.Outputs.Parameters[o.Name] = v
		}
	}
	x.leafOutputs(n, &r)
	x.conclude(n, r)
}
