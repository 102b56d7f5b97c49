// Package dummy is a backend that runs nothing: a script says how each attempt goes. It plays every failure that a task
// can have, for the tests of whatever uses a backend.
package dummy

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/engine"
)

// Sink takes events.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Act is how one attempt goes. The zero value succeeds at once.
type Act struct {
	// Refuse makes Start itself fail.
	Refuse error
	// Result is how it ends; its phase is Succeeded where empty.
	Result engine.Result
	// Until holds the end back until it is closed; Hang until the attempt is stopped.
	Until <-chan struct{}
	Hang  bool
	// Deaf attempts end only when stopped by force.
	Deaf bool
	// Silent attempts tell nothing at all: the machine under them is gone.
	Silent bool
	// Unseen attempts end without having been seen to run.
	Unseen bool
	// Twice tells the end two times, as an impatient backend might.
	Twice bool
}

// Script decides how an attempt goes.
type Script func(run engine.Run, cmd engine.StartTask) Act

// Lost is the result of an attempt whose executor died; started says whether its command had begun.
func Lost(started bool) engine.Result {
	return engine.Result{Phase: engine.ErrorPhase, Message: "the task was lost", Transient: !started}
}

// Killed is the result of a command that used too much memory.
func Killed() engine.Result {
	code := 137
	return engine.Result{Phase: engine.FailedPhase, ExitCode: &code, Message: "main: OOMKilled (exit code 137)"}
}

// Failed is the result of a command that exited with a code other than 0.
func Failed(code int, message string) engine.Result {
	return engine.Result{Phase: engine.FailedPhase, ExitCode: &code, Message: message}
}

// World holds the attempts; they outlive the backends that are opened on it.
type World struct {
	script Script

	mu       sync.Mutex
	attempts map[key]*attempt
	runs     map[key]int
}

type key struct{ run, path string }

type attempt struct {
	act    Act
	done   chan struct{} // closed at the end
	stop   chan engine.StopTask
	result engine.Result
}

// NewWorld makes a world whose attempts go as the script says.
func NewWorld(script Script) *World {
	return &World{script: script, attempts: map[key]*attempt{}, runs: map[key]int{}}
}

// Runs is how often an attempt's command was started.
func (w *World) Runs(runUID, path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runs[key{runUID, path}]
}

// Open gives a backend of this world.
func (w *World) Open(sink Sink) backend.Backend {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &dummy{world: w, sink: sink, ctx: ctx, cancel: cancel, following: map[key]bool{}}
}

var errClosed = errors.New("closed")

type dummy struct {
	world  *World
	sink   Sink
	ctx    context.Context //nolint:containedctx // the backend's own lifetime
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	following map[key]bool
}

func (d *dummy) Start(_ context.Context, run engine.Run, cmd engine.StartTask) error {
	id := key{run.UID, cmd.Path}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ctx.Err() != nil {
		return errClosed
	}
	a, err := d.world.start(run, cmd)
	if err != nil || d.following[id] {
		return err
	}
	d.following[id] = true
	d.wg.Go(func() { d.follow(run, cmd, a) })
	return nil
}

// start finds an attempt or begins it.
func (w *World) start(run engine.Run, cmd engine.StartTask) (*attempt, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := key{run.UID, cmd.Path}
	if a := w.attempts[id]; a != nil {
		return a, nil
	}
	act := w.script(run, cmd)
	if act.Refuse != nil {
		return nil, act.Refuse
	}
	a := &attempt{act: act, done: make(chan struct{}), stop: make(chan engine.StopTask, 16)}
	w.attempts[id] = a
	w.runs[id]++
	go a.live(cmd)
	return a, nil
}

// live takes an attempt to its end.
func (a *attempt) live(cmd engine.StartTask) {
	defer close(a.done)
	started := time.Now().UTC()
	a.result = a.act.Result
	if a.result.Phase == "" {
		a.result.Phase = engine.SucceededPhase
	}
	var timeout <-chan time.Time
	if cmd.Timeout > 0 {
		timer := time.NewTimer(cmd.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	until := a.act.Until
	if until == nil && !a.act.Hang {
		closed := make(chan struct{})
		close(closed)
		until = closed
	}
	select {
	case <-until:
	case <-timeout:
		a.result = Failed(143, "the task took longer than its timeout of "+cmd.Timeout.String())
	case s := <-a.stopped():
		a.result = stopResult(s)
	}
	a.result.Started = started
}

// stopped gives the request that ends the attempt.
func (a *attempt) stopped() <-chan engine.StopTask {
	if !a.act.Deaf {
		return a.stop
	}
	forced := make(chan engine.StopTask, 1)
	go func() {
		for {
			select {
			case s := <-a.stop:
				if s.Force {
					forced <- s
					return
				}
			case <-a.done:
				return
			}
		}
	}()
	return forced
}

func stopResult(s engine.StopTask) engine.Result {
	message, code := s.Message, 143
	if message == "" {
		message = "the task was stopped"
	}
	if s.Force {
		code = 137
	}
	return Failed(code, message)
}

// follow tells what becomes of an attempt.
func (d *dummy) follow(run engine.Run, cmd engine.StartTask, a *attempt) {
	if !a.act.Unseen && !a.act.Silent {
		d.sink.Tell(run.UID, engine.Event{Running: &engine.Running{Node: cmd.Node, Host: "dummy", IP: "127.0.0.1", Ready: cmd.Daemon}})
	}
	select {
	case <-a.done:
	case <-d.ctx.Done():
		return
	}
	d.mu.Lock()
	delete(d.following, key{run.UID, cmd.Path})
	d.mu.Unlock()
	if a.act.Silent {
		return
	}
	d.sink.Tell(run.UID, engine.Event{Finished: &engine.Finished{Node: cmd.Node, Result: a.result}})
	if a.act.Twice {
		d.sink.Tell(run.UID, engine.Event{Finished: &engine.Finished{Node: cmd.Node, Result: a.result}})
	}
}

func (d *dummy) Stop(_ context.Context, run engine.Run, cmd engine.StopTask) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if a := d.world.attempts[key{run.UID, cmd.Path}]; a != nil {
		select {
		case a.stop <- cmd:
		default: // asked often enough
		}
	}
	return nil
}

func (d *dummy) Forget(_ context.Context, run engine.Run, path string) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	delete(d.world.attempts, key{run.UID, path})
	return nil
}

func (d *dummy) Close() error {
	d.mu.Lock()
	d.cancel(errClosed)
	d.mu.Unlock()
	d.wg.Wait()
	return nil
}
