package runner

import (
	"context"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
)

// forced is how long a task that was killed may take to be gone; settling how long the tasks of an ended run may.
const (
	forced   = 10 * time.Second
	settling = 30 * time.Second
)

// interrupt stops the tasks that are under way and waits for them. What ended well is put into the journal; what did
// not is forgotten, so that a resume runs it again. Nothing new is started.
func (a *Active) interrupt(ctx context.Context, force bool) error {
	a.stopping.Store(true)
	for node := range a.regain.held { // they have not begun
		delete(a.open, openTask{node})
		a.regain.drop(node)
	}
	stop := func() {
		for _, id := range a.tasks() {
			if n := a.state.Node(id); n != nil {
				a.carry(engine.StopTask{Node: id, Path: identity(n), Message: "interrupted", Force: force})
			}
		}
	}
	stop()
	a.observe(View{State: a.state, Stopping: true})
	var limit <-chan time.Time
	if force {
		limit = time.After(forced)
	}
	for len(a.tasks()) > 0 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit:
			a.log.Warn("tasks are still being stopped", "tasks", len(a.tasks()))
			return nil
		case again := <-a.stop:
			if again && !force {
				force, limit = true, time.After(forced)
				stop()
			}
			continue
		case <-a.box.ready:
		}
		items, _ := a.box.take(1 << 20)
		if err := a.handle(ctx, a.keep(ctx, items), a.hold); err != nil {
			return err
		}
	}
	return nil
}

// keep filters what happened during an interrupt: the end of a task that was stopped is not an end.
func (a *Active) keep(ctx context.Context, items []item) []item {
	var kept []item
	for _, it := range items {
		f := it.event.Finished
		if f == nil || f.Result.Phase == engine.SucceededPhase {
			kept = append(kept, it)
			continue
		}
		delete(a.open, openTask{f.Node})
		n := a.state.Node(f.Node)
		if forgetter, ok := a.runner.Backend.(Forgetter); ok && n != nil {
			if err := forgetter.Forget(ctx, a.state.Run, identity(n)); err != nil {
				a.log.Warn("an interrupted task could not be forgotten; a resume may count it as failed", "task", n.Path, "error", err)
			}
		}
	}
	return kept
}

// hold carries out only what ends something. The rest is outstanding for the resume.
func (a *Active) hold(commands []engine.Command) {
	for _, c := range commands {
		switch c := c.(type) {
		case engine.StopTask, engine.CancelHook, engine.ReleaseLocks, engine.CancelTimer:
			a.carry(c)
		case engine.StartTask:
			delete(a.open, openTask{c.Node})
		}
	}
}

// settle waits, after the run's end, until tasks that were told to stop are gone.
func (a *Active) settle(ctx context.Context) {
	limit := time.After(settling)
	for len(a.tasks()) > 0 {
		select {
		case <-ctx.Done():
			return
		case force := <-a.stop:
			for _, id := range a.tasks() {
				if n := a.state.Node(id); n != nil && force {
					a.carry(engine.StopTask{Node: id, Path: identity(n), Message: "interrupted", Force: true})
				}
			}
		case <-limit:
			a.log.Warn("tasks of the ended run are still there", "tasks", len(a.tasks()))
			return
		case <-a.box.ready:
		}
		items, _ := a.box.take(1 << 20)
		a.settled(items)
		for _, it := range items {
			if it.event.Finished != nil {
				delete(a.open, openTask{it.event.Finished.Node})
			}
			if it.reply != nil {
				it.reply <- ErrEnded
			}
		}
	}
}

// identity is the path under which the backend knows a node's attempt.
func identity(n *engine.Node) string {
	if n.Identity != "" {
		return n.Identity
	}
	return n.Path
}
