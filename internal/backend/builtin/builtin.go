// Package builtin carries out the kinds of tasks that need no process: HTTP requests, listings of artifact paths, and
// importers. For resource and plugin tasks it says what would be needed.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes events; the runner's Sink is one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Eval evaluates an expression over variables: a path in vars, such as response.statusCode, is what the expression
// names. It gives a JSON value.
type Eval func(source string, vars map[string]any) (any, error)

// Config is what the built-in kinds need.
type Config struct {
	// Home is the absolute path of SLUICE_HOME, where results are kept; empty keeps them in memory only.
	Home string
	// Eval evaluates success conditions and transformations; without it tasks that have one end as an Error.
	Eval Eval
	// Transport does HTTP requests; nil is [http.DefaultTransport]. It says who may be reached.
	Transport *http.Transport
	// Artifacts gives the options for the stores that data tasks of a run list, and with them the Secrets of headers; nil
	// knows no Secrets.
	Artifacts func(run engine.Run) artifact.Options
}

// Backend carries out built-in kinds. A task that was running when its program died is begun again by the next Start; the
// result of one that had ended is reported again, where there is a Home.
type Backend struct {
	cfg  Config
	sink Sink

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	tasks  map[key]*task
	closed bool
}

type key struct{ run, path string }

// task is one attempt; result is set once it has ended.
type task struct {
	cancel context.CancelCauseFunc
	result *engine.Result
}

// Errors that end tasks.
var (
	errClosed  = errors.New("the built-in backend is closed")
	errStopped = errors.New("the task was stopped")
)

// New makes a backend.
func New(cfg Config, sink Sink) *Backend {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Backend{cfg: cfg, sink: sink, ctx: ctx, cancel: cancel, tasks: map[key]*task{}}
}

// Start begins an attempt; one that has ended here is reported again.
func (b *Backend) Start(_ context.Context, run engine.Run, cmd engine.StartTask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	id := key{run.UID, cmd.Path}
	if b.tasks[id] == nil {
		known, err := b.recall(id)
		if err != nil {
			return err
		}
		if known != nil {
			b.tasks[id] = &task{cancel: func(error) {}, result: known}
		}
	}
	if t := b.tasks[id]; t != nil {
		if t.result != nil {
			b.tell(run, cmd, *t.result)
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	t := &task{cancel: cancel}
	b.tasks[id] = t
	b.done.Go(func() {
		defer cancel(nil)
		b.sink.Tell(run.UID, engine.Event{Running: &engine.Running{Node: cmd.Node}})
		result := b.carry(ctx, run, cmd)
		b.mu.Lock()
		wanted := b.tasks[id] == t
		b.mu.Unlock()
		if b.ctx.Err() != nil || !wanted {
			return
		}
		if err := b.remember(id, result); err != nil {
			result = broken(fmt.Errorf("keep the result: %w", err))
		}
		b.mu.Lock()
		t.result = &result
		b.mu.Unlock()
		b.tell(run, cmd, result)
	})
	return nil
}

func (b *Backend) tell(run engine.Run, cmd engine.StartTask, result engine.Result) {
	b.sink.Tell(run.UID, engine.Event{Finished: &engine.Finished{Node: cmd.Node, Result: result}})
}

// carry does the work of one task.
func (b *Backend) carry(ctx context.Context, run engine.Run, cmd engine.StartTask) engine.Result {
	if cmd.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cmd.Timeout, fmt.Errorf("the task took longer than its timeout of %v", cmd.Timeout))
		defer cancel()
	}
	var result engine.Result
	switch cmd.Body.Kind {
	case program.HTTP:
		result = b.request(ctx, cmd, b.options(run))
	case program.Data:
		result = b.data(ctx, cmd, b.options(run))
	case program.Importer:
		result = importer(cmd)
	case program.Resource:
		result = broken(errors.New("resource templates act on Kubernetes objects: run this workflow with the Kubernetes backend"))
	case program.Plugin:
		result = broken(noPlugin(cmd.Body.Plugin))
	default:
		result = broken(fmt.Errorf("the built-in backend cannot run a task of kind %q", cmd.Body.Kind))
	}
	if cause := context.Cause(ctx); cause != nil && result.Phase != engine.SucceededPhase {
		result.Phase, result.Message, result.Transient = engine.FailedPhase, cause.Error(), false
	}
	return result
}

func (b *Backend) options(run engine.Run) artifact.Options {
	if b.cfg.Artifacts == nil {
		return artifact.Options{}
	}
	return b.cfg.Artifacts(run)
}

// broken is the result of a task that could not be carried out.
func broken(err error) engine.Result {
	return engine.Result{Phase: engine.ErrorPhase, Message: err.Error()}
}

// noPlugin names the plugin that a task asks for.
func noPlugin(block program.JSON) error {
	name, _, err := artifact.Kind(block)
	if err != nil {
		name = "(unnamed)"
	}
	return fmt.Errorf("no hook plugin answered for plugin %s: register a TaskHook whose Pre hook decides Reuse for it and gives the outputs", name)
}

// Stop ends an attempt.
func (b *Backend) Stop(_ context.Context, run engine.Run, cmd engine.StopTask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tasks[key{run.UID, cmd.Path}]; t != nil {
		cause := errStopped
		if cmd.Message != "" {
			cause = errors.New(cmd.Message)
		}
		t.cancel(cause)
	}
	return nil
}

// Forget makes the backend forget an attempt that has ended.
func (b *Backend) Forget(_ context.Context, run engine.Run, path string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := key{run.UID, path}
	delete(b.tasks, id)
	return b.forgetRecord(id)
}

// Close ends all requests.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel(errClosed)
	b.done.Wait()
	return nil
}
