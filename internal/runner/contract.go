// Package runner is the loop that connects the engine with a store, hooks, locks and a backend, and the only place
// where they meet. Local mode and the controller use the same runner.
package runner

import (
	"context"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes what backends, hooks, locks and people have to tell. Tell never blocks for long and may be called from any
// goroutine, also from inside a call that the runner made. An event without a time gets the present one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Backend carries tasks out. Each method is about one attempt, identified by the run's UID and the command's Path.
// Implementations are safe for concurrent use.
type Backend interface {
	// Start begins an attempt and returns soon; Running and exactly one Finished event are told to the sink later.
	// It is idempotent: an attempt that already runs is adopted, one that has ended is reported again, and its command
	// is not run a second time. An error means that nothing was started; the runner tells it as a result of phase Error.
	Start(ctx context.Context, run engine.Run, cmd engine.StartTask) error
	// Stop ends an attempt, first gently unless Force is set; its Finished event is told as for any other end. To
	// stop what is not there is no error.
	Stop(ctx context.Context, run engine.Run, cmd engine.StopTask) error
	// Close releases what the backend holds without ending its tasks: a later Start adopts them.
	Close() error
}

// Hooks puts reviews to task hooks.
type Hooks interface {
	// Select gives the hooks whose selector matches the labels, as the engine needs them, in Pre order.
	Select(labels map[string]string) ([]engine.Hook, error)
	// Ask puts a review and returns at once; exactly one Answered event follows unless it is cancelled, and Noted
	// events on the way. Asking again for the same UID is the same review.
	Ask(ctx context.Context, run engine.Run, p *program.Program, cmd engine.AskHook)
	// Cancel forgets a review.
	Cancel(run engine.Run, cmd engine.CancelHook)
}

// Locks grants mutexes and semaphores in the order in which they were asked for, across all runs that share it.
type Locks interface {
	// Acquire asks for all locks at once; one Acquired event follows. Sizes of semaphores come from p.ConfigMaps.
	Acquire(ctx context.Context, run engine.Run, p *program.Program, cmd engine.AcquireLocks)
	// Release gives back what a node holds, or its place in the queue. To release nothing is no error.
	Release(run engine.Run, cmd engine.ReleaseLocks)
}

// Journal keeps a run's events. It is what a crash must not lose.
type Journal interface {
	// Append adds events at position from (the number of events already there) in one transaction. It is refused
	// when the position is taken: someone else runs this run.
	Append(ctx context.Context, runUID string, from int, events []engine.Event) error
	// Events gives all events of a run in order.
	Events(ctx context.Context, runUID string) ([]engine.Event, error)
}

// Forgetter is a [Backend] that remembers attempts which have ended. Forget makes it forget one, so that a later Start of
// the same path runs its command anew; logs may stay. The runner calls it before a run is retried and after an
// interrupt stopped an attempt: in both cases the attempt has ended. To forget what is not there is no error.
type Forgetter interface {
	Forget(ctx context.Context, run engine.Run, path string) error
}

// Settler is a [Backend] that keeps what an attempt left until it is told that it need not. The runner calls Settled once
// the attempt's end is in the journal, and again for every attempt that has ended when it takes up a run; it must return
// quickly, and to settle what is not there does nothing.
type Settler interface {
	Settled(run engine.Run, path string)
}
