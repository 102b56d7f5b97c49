package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// attempt is one attempt at a task that this backend follows.
type attempt struct {
	b      *Backend
	run    engine.Run
	cmd    engine.StartTask
	folder string
	ctx    context.Context
	cancel context.CancelCauseFunc
	over   chan struct{}
	// before is an attempt of the same path that may still be tidying up. told says that the end was told; the backend's
	// lock guards it.
	before *attempt
	told   bool
	// mounts are what a launcher mounts.
	mounts []spec.Mount

	mu      sync.Mutex
	proc    *process // the executor, once there is one
	stopped *engine.StopTask
}

// errStopped ends an attempt that waits for its turn.
var errStopped = errors.New("stopped before it began")

func newAttempt(b *Backend, run engine.Run, cmd engine.StartTask) *attempt {
	ctx, cancel := context.WithCancelCause(b.ctx)
	return &attempt{
		b: b, run: run, cmd: cmd, folder: TaskDir(b.cfg.Home, run.UID, cmd.Path), ctx: ctx, cancel: cancel,
		over: make(chan struct{}),
	}
}

// work takes the attempt from wherever it is to its end and tells so. It tells nothing when the backend is closed.
func (a *attempt) work() {
	defer close(a.over)
	defer a.cancel(nil)
	if a.before != nil {
		<-a.before.over
		a.before = nil
	}
	ended, err := a.carry()
	if a.b.ctx.Err() != nil {
		return
	}
	if err != nil {
		ended = &engine.Result{Phase: engine.ErrorPhase, Message: err.Error()}
		a.mu.Lock()
		if errors.Is(err, errStopped) && a.stopped != nil {
			ended.Phase, ended.Message = engine.FailedPhase, result.StopMessage(*a.stopped)
		}
		a.mu.Unlock()
	}
	ended.Host = a.b.host
	// The spec holds the values of secrets. Nothing needs it any more, also not one who comes after us before the end is told.
	if err := os.Remove(filepath.Join(a.folder, spec.SpecFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.b.cfg.Log.Warn("cannot remove what a task was started with", "task", a.cmd.Path, "error", err)
	}
	a.b.mu.Lock()
	a.told = true
	a.b.mu.Unlock()
	a.b.sink.Tell(a.run.UID, engine.Event{Finished: &engine.Finished{Node: a.cmd.Node, Result: *ended}})
	if err := errors.Join(clean(a.folder), a.b.groups.remove(a.folder, len(a.cmd.Body.Containers))); err != nil {
		a.b.cfg.Log.Warn("cannot remove what a task left", "task", a.cmd.Path, "error", err)
	}
}

// carry finds out how far the attempt is and goes on from there.
func (a *attempt) carry() (*engine.Result, error) {
	if reported, err := a.reported(); err != nil || reported != nil {
		return reported, err
	}
	if result, err := a.result(); err != nil || result != nil {
		return a.finish(result, err)
	}
	if p := a.b.watch.adopt(a.folder); p != nil {
		a.b.queue.take()
		defer a.b.queue.leave()
		return a.follow(p)
	}
	if p, err := a.rejoin(); err != nil {
		return nil, err
	} else if p != nil {
		a.b.queue.take()
		defer a.b.queue.leave()
		return a.follow(p)
	}
	if result, err := a.result(); err != nil || result != nil { // it ended just now
		return a.finish(result, err)
	}
	if !a.cmd.Daemon {
		if err := a.b.queue.enter(a.ctx); err != nil {
			return nil, err
		}
		defer a.b.queue.leave()
	}
	if err := a.prepare(); err != nil {
		return nil, err
	}
	p, err := a.spawn()
	if err != nil {
		return nil, fmt.Errorf("start the executor: %w", err)
	}
	return a.follow(p)
}

// follow waits for an executor to end.
func (a *attempt) follow(p *process) (*engine.Result, error) {
	a.mu.Lock()
	a.proc = p
	stopped := a.stopped
	a.mu.Unlock()
	if stopped != nil { // asked for while it was being started
		if err := a.stop(*stopped); err != nil {
			return nil, err
		}
	}
	a.b.sink.Tell(a.run.UID, engine.Event{Running: &engine.Running{Node: a.cmd.Node, Host: a.b.host, IP: "127.0.0.1", Ready: a.cmd.Daemon}})
	result, err := a.await(p)
	if err == nil && result == nil {
		result = a.withoutResult()
	}
	return a.finish(result, err)
}

// await waits for an executor and reads its result. One whose launching process was killed runs on: wait for it by
// other means, and give up on one that cannot be waited for.
func (a *attempt) await(p *process) (*spec.Result, error) {
	for range 5 {
		if err := a.b.watch.wait(a.b.ctx, p); err != nil {
			return nil, err
		}
		if result, err := a.result(); err != nil || result != nil {
			return result, err
		}
		var err error
		if p, err = a.rejoin(); err != nil {
			return nil, err
		}
		if p == nil { // it may have ended meanwhile
			return a.result()
		}
	}
	return nil, nil
}

// result reads the executor's result; nil where there is none.
func (a *attempt) result() (*spec.Result, error) {
	left, err := readFile[spec.Result](a.folder, spec.ResultFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	result.Whole(left)
	return left, nil
}

// reported reads what an earlier backend told of the attempt; nil where it told nothing.
func (a *attempt) reported() (*engine.Result, error) {
	result, err := readFile[engine.Result](a.folder, reportedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for name, value := range result.Outputs.Parameters {
		result.Outputs.Parameters[name] = spec.Whole(value)
	}
	spec.WholeArtifacts(result.Outputs.Artifacts)
	return result, nil
}

func readFile[T any](folder, name string) (*T, error) {
	// Most attempts are new and have no folder: look at the file before opening what leads to it.
	if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	value, err := spec.Read[T](root, name)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

// withoutResult is the result of an attempt whose executor ended without leaving one.
func (a *attempt) withoutResult() *spec.Result {
	started := a.state().Started
	a.mu.Lock()
	stopped := a.stopped != nil
	a.mu.Unlock()
	if started.IsZero() && stopped { // it was too young to catch the signal
		return &spec.Result{Phase: spec.Failed, Stopped: true, Message: "the task was stopped", Finished: time.Now().UTC()}
	}
	message := "the executor ended without a result"
	message += said(a.folder, a.b.cfg.Launcher != nil)
	if !started.IsZero() {
		message += "; the command had been started and how it ended is not known"
	}
	return &spec.Result{Phase: spec.Error, Message: message, Ran: !started.IsZero(), Started: started, Finished: time.Now().UTC()}
}

// state reads the steps of the attempt's executors.
func (a *attempt) state() spec.State {
	text, _ := os.ReadFile(filepath.Join(a.folder, spec.StateFile)) // not there: nothing has happened
	return spec.ParseState(string(text))
}

// callOut tells an executor that signals cannot reach: a launcher may not hand them on. One that does not listen yet will
// find the stop file.
func (a *attempt) callOut(how string) error {
	pipe, err := os.OpenFile(filepath.Join(a.folder, spec.StopPipe), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = pipe.WriteString(how + "\n")
	return errors.Join(err, pipe.Close())
}

// said is what an executor said last in a task's log, after a colon; empty where it said nothing. With a launcher the
// last line may be the launcher's.
func said(folder string, launched bool) string {
	f, err := os.Open(filepath.Join(folder, spec.LogFile))
	if err != nil {
		return ""
	}
	defer f.Close()
	const enough = 4096
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-enough), io.SeekStart) // else it reads nothing
	}
	end, _ := io.ReadAll(f) // what there is
	words := ""
	for line := range strings.Lines(string(end)) {
		_, after, found := strings.Cut(line, spec.Voice)
		if launched && !found {
			after, found = line, true
		}
		if found {
			words = ": " + strings.TrimSpace(after)
		}
	}
	return words
}

// stop ends the attempt: gently, or at once. It is done soon, the end is told later.
func (a *attempt) stop(cmd engine.StopTask) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped == nil || cmd.Force {
		a.stopped = &cmd
	}
	if a.proc == nil {
		a.cancel(errStopped)
		return nil
	}
	s, how := syscall.SIGTERM, "gently"
	if cmd.Force {
		s, how = syscall.SIGQUIT, spec.StopForce
	}
	if err := os.WriteFile(filepath.Join(a.folder, spec.StopFile), []byte(how), 0o600); err != nil {
		return fmt.Errorf("stop %s: %w", a.cmd.Path, err)
	}
	var err error
	if a.b.cfg.Launcher != nil {
		err = a.callOut(how)
	} else {
		err = a.proc.signal(s)
	}
	if err != nil {
		return fmt.Errorf("stop %s: %w", a.cmd.Path, err)
	}
	return nil
}

// record tells whoever comes after us which executor was started for the attempt. The executor says it again once it has
// the folder to itself.
func (a *attempt) record(p spec.Process) error {
	f, err := os.OpenFile(filepath.Join(a.folder, spec.StateFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(spec.ExecutorLine(p))
	return errors.Join(err, f.Close())
}
