package engine

// Outstanding gives the commands that have had no answer yet: what a runner must carry out (again) after it has loaded
// a state. Carrying out one that was carried out before does no harm.
func (m *Machine) Outstanding(s *State) []Command {
	x := &step{m: m, s: s, now: s.Started}
	if s.Phase == "" {
		return nil
	}
	if s.Phase.Ended() { // what was put without being waited for may not have been heard
		for _, n := range s.nodes[1:] {
			x.repeatNotices(n)
		}
		return x.commands
	}
	if !s.own.Deadline.IsZero() {
		x.emit(SetTimer{Timer: Timer{Kind: DeadlineTimer}, At: s.own.Deadline})
	}
	if s.own.Locked {
		x.emit(AcquireLocks{Path: s.Run.Name, Locks: s.own.Locks})
	}
	for _, n := range s.nodes[1:] {
		x.repeatNotices(n)
		if n.Stage != StageDone && n.work != nil {
			x.repeat(n)
		}
	}
	return x.commands
}

// repeat gives a node's unanswered commands once more. The task's is rendered with the time and seed that it was first
// rendered with, so it is the same.
func (x *step) repeat(n *Node) {
	w := n.work
	if w.Locked {
		x.emit(AcquireLocks{Node: n.ID, Path: n.Path, Locks: w.Locks})
	}
	if !w.Deadline.IsZero() {
		x.emit(SetTimer{Timer: Timer{n.ID, DeadlineTimer}, At: w.Deadline})
	}
	if !w.Timer.IsZero() {
		kind := BackoffTimer
		if n.Kind == Leaf {
			kind = SuspendTimer
		}
		x.emit(SetTimer{Timer: Timer{n.ID, kind}, At: w.Timer})
	}
	if w.Asking {
		x.emit(x.review(n, w.Review))
	}
	if n.Stage != StageRun || n.Kind != Leaf || n.template.Suspend != nil {
		return
	}
	if cmd, err := x.startTask(n); err == nil {
		if !w.Deadline.IsZero() {
			cmd.Timeout = w.Deadline.Sub(w.At)
		}
		x.emit(cmd)
	}
	if w.Stopping != "" {
		x.emit(StopTask{Node: n.ID, Path: n.identity(), Message: w.Stopping, Force: w.Forced})
	}
}

func (x *step) repeatNotices(n *Node) {
	if n.work == nil {
		return
	}
	for _, i := range n.work.Notices {
		x.emit(x.review(n, i))
	}
}
