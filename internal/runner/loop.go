package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
)

// maxBatch bounds the events that share a transaction, so that observers and questions get their turn.
const maxBatch = 1024

// Active is a run whose state is in memory.
type Active struct {
	runner   *Runner
	job      Job
	box      *mailbox
	state    *engine.State
	position int          // events in the journal
	snapshot int          // events in the last snapshot
	open     map[any]bool // what is under way: keys as in open.go
	stop     chan bool    // true: at once
	stopping atomic.Bool
	log      *slog.Logger
	regain   *regaining

	seeds  *rand.ChaCha8
	send   *dispatcher
	timers *timers
}

// End says why a loop ended.
type End int

// The ends of a loop.
const (
	// Ended: the run has ended; its state says how.
	Ended End = iota
	// Waiting: only a person can make it go on, and the job said to stop then.
	Waiting
	// Interrupted: its tasks were stopped; a resume goes on with it and runs them again.
	Interrupted
)

// State is the run's state. It must not be touched while Run runs.
func (a *Active) State() *engine.State { return a.state }

// Close gives the run back without running it.
func (a *Active) Close() {
	a.runner.Hub.remove(a.job.UID)
	for _, it := range a.box.close() {
		if it.reply != nil {
			it.reply <- ErrEnded
		}
	}
}

// Tell gives the run an event.
func (a *Active) Tell(e engine.Event) { _ = a.box.put(item{event: e}) }

// Ask puts a question between two events: ask looks at the state and gives the events that are to happen now, and the
// answer comes when they are in the journal, or with the error that ask or the engine had.
func (a *Active) Ask(ctx context.Context, ask func(*engine.State) ([]engine.Event, error)) error {
	reply := make(chan error, 1)
	if !a.box.put(item{ask: ask, reply: reply}) {
		return ErrEnded
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Interrupt ends the loop: its tasks are stopped, at once if force is set, and forgotten, so that a resume runs them
// again. What finishes well while it is being stopped counts.
func (a *Active) Interrupt(force bool) {
	select {
	case a.stop <- force:
	default:
	}
}

// Run goes on with the run until it ends, waits for a person (where the job says so) or is interrupted. An error, the end
// of ctx included, says that something around the run broke: nothing is stopped or lost, and a resume goes on with it.
func (a *Active) Run(ctx context.Context) (End, error) {
	defer a.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.timers = newTimers(a.runner.Now, func(t engine.Timer) { a.Tell(engine.Event{Fired: &engine.Fired{Timer: t}}) })
	defer a.timers.close()
	a.send = newDispatcher(ctx, a)
	defer func() { cancel(ErrEnded); a.send.close() }()

	a.state.TakeChanged()
	var all []engine.NodeID
	for n := range a.state.Nodes() {
		all = append(all, n.ID)
	}
	a.settleEnded()
	commands := a.job.Machine.Outstanding(a.state)
	for _, c := range commands {
		a.begin(c)
	}
	a.regain.note(a.state, commands)
	a.dispatch(commands)
	a.observe(View{State: a.state, Changed: append(all, 0)})
	end, err := a.loop(ctx)
	if err != nil {
		return end, fmt.Errorf("run %s: %w", a.state.Run.Name, err)
	}
	if end == Ended {
		a.settle(ctx)
	}
	return end, nil
}

func (a *Active) loop(ctx context.Context) (End, error) {
	for more := false; ; {
		switch {
		case a.state.Phase.Ended():
			return Ended, nil
		case !more && a.waiting():
			a.observe(View{State: a.state, Waiting: true})
			if a.job.StopWhenWaiting {
				return Waiting, nil
			}
		}
		if !more {
			select {
			case <-ctx.Done():
				return Interrupted, context.Cause(ctx)
			case force := <-a.stop:
				return Interrupted, a.interrupt(ctx, force)
			case <-a.box.ready:
			}
		}
		var items []item
		items, more = a.box.take(maxBatch)
		if err := a.handle(ctx, items, a.dispatch); err != nil {
			return Interrupted, err
		}
	}
}

// handle steps the engine through a batch, puts what happened into the journal, and only then carries out what follows.
func (a *Active) handle(ctx context.Context, items []item, carry func([]engine.Command)) error {
	var events []engine.Event
	var commands []engine.Command
	type answer struct {
		to  chan error
		err error
	}
	var answers []answer
	for _, it := range items {
		if it.ask == nil {
			if c, err := a.step(&it.event); err != nil {
				a.log.Debug("event dropped", "error", err)
			} else {
				events, commands = append(events, it.event), append(commands, c...)
			}
			continue
		}
		asked, err := it.ask(a.state)
		for i := 0; err == nil && i < len(asked); i++ {
			var c []engine.Command
			if c, err = a.step(&asked[i]); err == nil {
				events, commands = append(events, asked[i]), append(commands, c...)
			}
		}
		answers = append(answers, answer{it.reply, err})
	}
	err := a.write(ctx, events)
	for _, w := range answers {
		w.to <- errors.Join(w.err, err)
	}
	if err != nil {
		return err
	}
	a.settled(items)
	carry(commands)
	a.saveSnapshot(ctx)
	if changed := a.state.TakeChanged(); len(changed) > 0 {
		a.observe(View{State: a.state, Changed: changed})
	}
	return nil
}

// step gives an event its time and seed and steps the engine. Time never goes back: the engine may count on it.
func (a *Active) step(e *engine.Event) ([]engine.Command, error) {
	if e.Time.IsZero() {
		e.Time = a.runner.Now()
	}
	e.Time = e.Time.UTC().Round(0)
	if e.Seed == 0 {
		e.Seed = a.seeds.Uint64()
	}
	commands, err := a.job.Machine.Step(a.state, *e)
	if err != nil {
		return nil, err
	}
	a.account(e, commands)
	return commands, nil
}

// tries and pause say how long a journal that refuses is asked again: it may be locked or its disk full for a moment.
const (
	tries = 6
	pause = 100 * time.Millisecond
)

func (a *Active) write(ctx context.Context, events []engine.Event) error {
	if len(events) == 0 {
		return nil
	}
	var err error
	for i := range tries {
		if i > 0 {
			a.log.Warn("the journal refused, trying again", "error", err)
			select {
			case <-ctx.Done():
				return errors.Join(context.Cause(ctx), err)
			case <-time.After(pause << i):
			}
		}
		if err = a.runner.Journal.Append(ctx, a.job.UID, a.position, events); err == nil {
			a.position += len(events)
			return nil
		}
		var p interface{ Permanent() bool }
		if errors.As(err, &p) && p.Permanent() {
			break
		}
	}
	return err
}

// saveSnapshot keeps the state now and then: when the events since the last snapshot are many, and at least half as many
// as came before it, so that all snapshots of a run together cost no more than a few times the last one.
func (a *Active) saveSnapshot(ctx context.Context) {
	since := a.position - a.snapshot
	if a.runner.SnapshotEvery < 0 || since < a.runner.SnapshotEvery || since < a.snapshot/2 {
		return
	}
	snaps, ok := a.runner.Journal.(Snapshots)
	if !ok {
		return
	}
	a.snapshot = a.position
	data, err := json.Marshal(a.state)
	if err == nil {
		err = snaps.SaveState(ctx, a.job.UID, a.position, data)
	}
	if err != nil {
		a.log.Warn("no snapshot was saved; a resume will take longer", "error", err)
	}
}

func (a *Active) observe(v View) {
	for _, o := range a.job.Observers {
		o.Changed(v)
	}
}
