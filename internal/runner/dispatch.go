package runner

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/sluice-ml/sluice/internal/engine"
)

// lanes is how many goroutines of a run call its backend and locks. Commands about one node share a lane, so that they
// keep their order; a slow start holds up only its lane.
const lanes = 4

// dispatcher carries commands out.
type dispatcher struct {
	a     *Active
	ctx   context.Context //nolint:containedctx // the lanes' lifetime
	lanes [lanes]*lane
	seed  maphash.Seed
	wg    sync.WaitGroup
}

// lane is a queue without bound that one goroutine works off.
type lane struct {
	mu     sync.Mutex
	queue  []func()
	ready  chan struct{}
	closed bool
}

func newDispatcher(ctx context.Context, a *Active) *dispatcher {
	d := &dispatcher{a: a, ctx: ctx, seed: maphash.MakeSeed()}
	for i := range d.lanes {
		l := &lane{ready: make(chan struct{}, 1)}
		d.lanes[i] = l
		d.wg.Go(l.work)
	}
	return d
}

func (l *lane) put(f func()) {
	l.mu.Lock()
	l.queue = append(l.queue, f)
	l.mu.Unlock()
	l.wake()
}

func (l *lane) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

func (l *lane) work() {
	for range l.ready {
		for {
			l.mu.Lock()
			if len(l.queue) == 0 {
				closed := l.closed
				l.mu.Unlock()
				if closed {
					return
				}
				break
			}
			f := l.queue[0]
			l.queue = l.queue[1:]
			l.mu.Unlock()
			f()
		}
	}
}

// close waits until everything that was put is done.
func (d *dispatcher) close() {
	for _, l := range d.lanes {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.wake()
	}
	d.wg.Wait()
}

// lane puts a call in the lane of a node.
func (d *dispatcher) lane(path string, f func()) {
	d.lanes[maphash.String(d.seed, path)%lanes].put(f)
}

// dispatch carries out commands, in their order.
func (a *Active) dispatch(commands []engine.Command) {
	for _, c := range commands {
		a.carry(c)
	}
}

func (a *Active) dispatchStarts(starts []engine.StartTask) {
	for _, c := range starts {
		a.carry(c)
	}
}

func (a *Active) carry(c engine.Command) {
	r, d, run := a.runner, a.send, a.state.Run
	switch c := c.(type) {
	case engine.StartTask:
		if a.regain.hold(a.state, c) {
			return
		}
		d.lane(c.Path, func() {
			err := errInterrupted // what an interrupt finds still waiting in its lane need not be started
			if !a.stopping.Load() {
				err = r.Backend.Start(d.ctx, run, c)
			}
			if err != nil && d.ctx.Err() == nil {
				a.Tell(engine.Event{Finished: &engine.Finished{Node: c.Node, Result: engine.Result{
					Phase: engine.ErrorPhase, Message: err.Error(), Transient: transient(err),
				}}})
			}
		})
	case engine.StopTask:
		if a.regain.drop(c.Node) { // it never began
			a.Tell(engine.Event{Finished: &engine.Finished{Node: c.Node, Result: engine.Result{Phase: engine.FailedPhase, Message: c.Message}}})
			return
		}
		d.lane(c.Path, func() {
			if err := r.Backend.Stop(d.ctx, run, c); err != nil && d.ctx.Err() == nil {
				a.log.Warn("a task could not be stopped", "task", c.Path, "error", err)
			}
		})
	case engine.AskHook:
		if r.Hooks == nil {
			a.Tell(engine.Event{Answered: &engine.Answered{Node: c.Node, Point: c.Point, Hook: c.Hook, Failure: "no hooks are configured here"}})
			return
		}
		ctx := d.ctx
		if c.Notify { // nothing waits for it, not even the end of the run
			ctx = context.WithoutCancel(ctx)
		}
		r.Hooks.Ask(ctx, run, a.job.Program, c)
	case engine.CancelHook:
		if r.Hooks != nil {
			r.Hooks.Cancel(run, c)
		}
	case engine.AcquireLocks:
		if r.Locks == nil {
			a.Tell(engine.Event{Acquired: &engine.Acquired{Node: c.Node, Failure: "locks are not available here"}})
			return
		}
		d.lane(c.Path, func() { r.Locks.Acquire(d.ctx, run, a.job.Program, c) })
	case engine.ReleaseLocks:
		if r.Locks != nil {
			d.lane(c.Path, func() { r.Locks.Release(run, c) })
		}
	case engine.SetTimer:
		a.timers.set(c.Timer, c.At)
	case engine.CancelTimer:
		a.timers.cancel(c.Timer)
	}
}

var errInterrupted = errors.New("interrupted")

// transient says whether an error calls itself so.
func transient(err error) bool {
	var t interface{ Transient() bool }
	return errors.As(err, &t) && t.Transient()
}
