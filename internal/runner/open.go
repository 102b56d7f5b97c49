package runner

import "github.com/sluice-ml/sluice/internal/engine"

// The keys of what is under way. A deadline is not: a run that only waits for its deadline waits for a person.
type (
	openTask  struct{ node engine.NodeID }
	openLocks struct{ node engine.NodeID }
	openTimer struct{ timer engine.Timer }
	openHook  struct {
		node  engine.NodeID
		point engine.Point
		hook  string
	}
)

// account keeps track of what is under way, from the event that ends it and the commands that begin it.
func (a *Active) account(e *engine.Event, commands []engine.Command) {
	switch {
	case e.Finished != nil:
		delete(a.open, openTask{e.Finished.Node})
	case e.Answered != nil:
		delete(a.open, openHook{e.Answered.Node, e.Answered.Point, e.Answered.Hook})
	case e.Acquired != nil:
		delete(a.open, openLocks{e.Acquired.Node})
		a.dispatchStarts(a.regain.regained(e.Acquired.Node))
	case e.Fired != nil:
		delete(a.open, openTimer{e.Fired.Timer})
	}
	for _, c := range commands {
		a.begin(c)
	}
}

func (a *Active) begin(c engine.Command) {
	switch c := c.(type) {
	case engine.StartTask:
		a.open[openTask{c.Node}] = true
	case engine.AskHook:
		if !c.Notify {
			a.open[openHook{c.Node, c.Point, c.Hook}] = true
		}
	case engine.CancelHook:
		delete(a.open, openHook{c.Node, c.Point, c.Hook})
	case engine.AcquireLocks:
		a.open[openLocks{c.Node}] = true
	case engine.ReleaseLocks:
		delete(a.open, openLocks{c.Node})
	case engine.SetTimer:
		if c.Timer.Kind != engine.DeadlineTimer {
			a.open[openTimer{c.Timer}] = true
		}
	case engine.CancelTimer:
		delete(a.open, openTimer{c.Timer})
	}
}

// waiting says that nothing is under way although the run has not ended.
func (a *Active) waiting() bool { return len(a.open) == 0 }

// tasks are the attempts that are under way.
func (a *Active) tasks() []engine.NodeID {
	var out []engine.NodeID
	for k := range a.open {
		if t, ok := k.(openTask); ok {
			out = append(out, t.node)
		}
	}
	return out
}
