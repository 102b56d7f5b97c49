package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/sluice-ml/sluice/internal/engine"
)

// Backend runs tasks as processes. It implements the runner's Backend and Forgetter.
type Backend struct {
	cfg   Config
	sink  Sink
	queue *queue
	watch *watcher
	host  string
	boot  string
	view  *sandbox // nil for plain processes
	// pythons are the Python environments, userBase is where this user's own packages are.
	pythons  *environments
	groups   *cgroups // nil where limits are not enforced
	userBase string

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	attempts map[key]*attempt
	closed   bool
}

// key identifies an attempt.
type key struct{ run, path string }

// errClosed ends the goroutines of a backend that is closed; tasks run on.
var errClosed = errors.New("the process backend is closed")

// New makes a backend. It looks at once whether a sandbox is possible here and warns where it is not; with Sandbox On
// that is an error.
func New(cfg Config, sink Sink) (*Backend, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	view, err := openSandbox(cfg)
	if err != nil {
		return nil, err
	}
	var groups *cgroups
	if cfg.Limits {
		groups = openCgroups(cfg.Log)
	}
	watch, err := newWatcher()
	if err != nil {
		return nil, fmt.Errorf("process backend: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Backend{
		cfg: cfg, sink: sink, queue: newQueue(cfg.MaxParallel), watch: watch, host: host, boot: bootID(), view: view,
		groups: groups, pythons: newEnvironments(), userBase: userBase(cfg),
		ctx: ctx, cancel: cancel, attempts: map[key]*attempt{},
	}, nil
}

// Sandboxed says whether tasks get a private view of the machine.
func (b *Backend) Sandboxed() bool { return b.view != nil }

// Start begins an attempt, or takes up one that an earlier backend began.
func (b *Backend) Start(_ context.Context, run engine.Run, cmd engine.StartTask) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed
	}
	id := key{run.UID, cmd.Path}
	before := b.attempts[id]
	if before != nil && !before.told {
		return nil
	}
	a := newAttempt(b, run, cmd)
	a.before = before
	b.attempts[id] = a
	b.done.Go(func() {
		a.work()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.attempts[id] == a {
			delete(b.attempts, id)
		}
	})
	return nil
}

// Stop ends an attempt.
func (b *Backend) Stop(_ context.Context, run engine.Run, cmd engine.StopTask) error {
	b.mu.Lock()
	a := b.attempts[key{run.UID, cmd.Path}]
	b.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.stop(cmd)
}

// Forget removes an attempt that has ended, but for its log.
func (b *Backend) Forget(_ context.Context, run engine.Run, path string) error {
	b.mu.Lock()
	a := b.attempts[key{run.UID, path}]
	b.mu.Unlock()
	if a != nil {
		<-a.over
	}
	return forget(TaskDir(b.cfg.Home, run.UID, path))
}

// Close stops following tasks; they run on, and a later Start adopts them.
func (b *Backend) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.cancel(errClosed)
	b.done.Wait()
	return b.watch.close()
}
