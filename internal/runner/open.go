package runner

import (
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
)

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
		a.regained(e.Acquired.Node)
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

// regain takes note, after a resume, of locks that nodes hold according to their state but that this process must first
// ask for again: what is below such a node is not started before.
func (a *Active) regain(commands []engine.Command) {
	for _, c := range commands {
		lock, ok := c.(engine.AcquireLocks)
		if !ok {
			continue
		}
		if n := a.state.Node(lock.Node); lock.Node == 0 && a.state.Root != 0 || n != nil && n.Stage != engine.StageLocks {
			a.lost[lock.Node] = lock.Path
		}
	}
}

func (a *Active) regained(node engine.NodeID) {
	if _, ok := a.lost[node]; !ok {
		return
	}
	delete(a.lost, node)
	held := a.heldBack
	a.heldBack = nil
	for _, c := range held {
		a.carry(c)
	}
}

// holdBack keeps a start for later where it is below a node whose locks are still to be regained.
func (a *Active) holdBack(c engine.StartTask) bool {
	for _, path := range a.lost {
		if below(c.Path, path) {
			a.heldBack = append(a.heldBack, c)
			return true
		}
	}
	return false
}

// dropHeld takes back a start that is held back and is to be stopped: it never began.
func (a *Active) dropHeld(c engine.StopTask) bool {
	for i, held := range a.heldBack {
		if held.Path == c.Path {
			a.heldBack = slices.Delete(a.heldBack, i, i+1)
			a.Tell(engine.Event{Finished: &engine.Finished{Node: c.Node, Result: engine.Result{Phase: engine.FailedPhase, Message: c.Message}}})
			return true
		}
	}
	return false
}

// below says whether a node's path is that of another or of something in it.
func below(path, of string) bool {
	rest, ok := strings.CutPrefix(path, of)
	return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[(#"))
}
