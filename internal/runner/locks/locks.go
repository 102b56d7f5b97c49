// Package locks grants the mutexes and semaphores of runs, in the order in which they were asked for. The order is kept
// in a [Ledger] that all processes of a home folder share; one that stops renewing its lease loses what it asked for.
package locks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes events; the runner's Sink is one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Ledger keeps who asked for which locks, and who holds them. Every method is one transaction. A node of a run, named by
// its path, has at most one request.
type Ledger interface {
	// AskLocks adds a request for locks, of which each admits size holders at once, at the end of the queues, unless
	// the node has one already, which then changes its owner.
	AskLocks(ctx context.Context, owner, run, path string, locks []string, sizes []int) error
	// ReleaseLocks removes a request, held or not.
	ReleaseLocks(ctx context.Context, run, path string) error
	// GrantLocks renews the owner's lease until expires, drops the requests of owners whose lease had ended before now,
	// then grants all requests that can be: those that, in every queue they are in, have fewer than size requests
	// before them. It gives the run and path of each request that the owner holds.
	GrantLocks(ctx context.Context, owner string, now, expires time.Time) ([][2]string, error)
	// DropLocks removes an owner's lease and its requests.
	DropLocks(ctx context.Context, owner string) error
}

// holders is a [Ledger] that tells who holds what.
type holders interface {
	// LockHolders gives the paths of those that hold each lock.
	LockHolders(ctx context.Context) (map[string][]string, error)
}

// mostNoted is how many requests of this process may wait and still be told who holds what they wait for: with more, the
// changes of each would be too much news.
const mostNoted = 20

// request is one that has not been granted.
type request struct {
	node  engine.NodeID
	names []string
	sizes []int
	noted string // what was told of it last
}

// waits says which of its locks are full, in Argo's words, and who holds them.
func (r *request) waits(held map[string][]string) string {
	var parts []string
	for i, name := range r.names {
		by := held[name]
		if len(by) < r.sizes[i] {
			continue
		}
		parts = append(parts, fmt.Sprintf("Waiting for %s lock. Lock status: %d/%d; held by %s", shown(name), r.sizes[i]-len(by), r.sizes[i], strings.Join(by, ", ")))
	}
	return strings.Join(parts, "; ")
}

// shown is a ledger's name of a lock as Argo writes it: namespace, kind, name.
func shown(name string) string {
	what, rest, _ := strings.Cut(name, "/")
	namespace, rest, _ := strings.Cut(rest, "/")
	kind := "Mutex"
	if what == "semaphore" {
		kind = "ConfigMap"
	}
	return namespace + "/" + kind + "/" + rest
}

var errClosed = errors.New("the locks are closed")

// Options have defaults for all that is zero.
type Options struct {
	// Lease is how long a process that has died keeps its locks: 15 s. Poll is how often the ledger is asked while
	// something waits: 200 ms. What is released in this process is granted at once.
	Lease, Poll time.Duration
	// Owner names this process; it must be unique.
	Owner string
	Log   *slog.Logger
}

// Locks implements the runner's Locks.
type Locks struct {
	ledger Ledger
	sink   Sink
	opts   Options

	mu      sync.Mutex
	asked   map[[2]string]*request // requests that have not been granted, by run and path
	wake    chan struct{}
	stop    func()
	done    chan struct{}
	started bool
}

// New gives locks on a ledger. Nothing happens before the first request. Close must be called.
func New(ledger Ledger, sink Sink, opts Options) *Locks {
	if opts.Lease == 0 {
		opts.Lease = 15 * time.Second
	}
	if opts.Poll == 0 {
		opts.Poll = 200 * time.Millisecond
	}
	if opts.Owner == "" {
		opts.Owner = strconv.Itoa(os.Getpid()) + "-" + uuid.NewString()
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Locks{
		ledger: ledger, sink: sink, opts: opts, asked: map[[2]string]*request{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Acquire asks for all locks of a node at once.
func (l *Locks) Acquire(ctx context.Context, run engine.Run, p *program.Program, cmd engine.AcquireLocks) {
	names := make([]string, len(cmd.Locks))
	sizes := make([]int, len(cmd.Locks))
	for i, lock := range cmd.Locks {
		var err error
		if names[i], sizes[i], err = Resolve(run, p, lock); err != nil {
			l.sink.Tell(run.UID, engine.Event{Acquired: &engine.Acquired{Node: cmd.Node, Failure: err.Error()}})
			return
		}
	}
	id := [2]string{run.UID, cmd.Path}
	l.mu.Lock()
	l.asked[id] = &request{node: cmd.Node, names: names, sizes: sizes}
	l.mu.Unlock()
	if err := l.ledger.AskLocks(ctx, l.opts.Owner, run.UID, cmd.Path, names, sizes); err != nil {
		l.mu.Lock()
		delete(l.asked, id)
		l.mu.Unlock()
		if ctx.Err() == nil {
			l.sink.Tell(run.UID, engine.Event{Acquired: &engine.Acquired{Node: cmd.Node, Failure: "the locks could not be asked for: " + err.Error()}})
		}
		return
	}
	l.begin()
	l.kick()
}

// Resolve names a lock for a [Ledger] and gives its size.
func Resolve(run engine.Run, p *program.Program, lock program.Lock) (string, int, error) {
	namespace := lock.Namespace
	if namespace == "" {
		namespace = run.Namespace
	}
	if !lock.Semaphore {
		return strings.Join([]string{"mutex", namespace, lock.Name}, "/"), 1, nil
	}
	if lock.Database {
		return "", 0, fmt.Errorf("semaphore %s is kept in a controller's database, which there is none of here; use a ConfigMap", lock.Name)
	}
	keys, ok := p.ConfigMaps[lock.Name]
	if !ok {
		return "", 0, fmt.Errorf("semaphore: there is no ConfigMap %q; give it with -f FILE", lock.Name)
	}
	text, ok := keys[lock.Key]
	if !ok {
		return "", 0, fmt.Errorf("semaphore: ConfigMap %q has no key %q", lock.Name, lock.Key)
	}
	size, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || size < 1 {
		return "", 0, fmt.Errorf("semaphore: key %q of ConfigMap %q must be a number of at least 1, not %q", lock.Key, lock.Name, text)
	}
	return strings.Join([]string{"semaphore", namespace, lock.Name, lock.Key}, "/"), size, nil
}

// Release gives back what a node holds, or its place in the queue.
func (l *Locks) Release(run engine.Run, cmd engine.ReleaseLocks) {
	id := [2]string{run.UID, cmd.Path}
	l.mu.Lock()
	delete(l.asked, id)
	l.mu.Unlock()
	// Not the run's context: what is held must be given back also while the run is being ended.
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.Lease)
	defer cancel()
	if err := l.ledger.ReleaseLocks(ctx, run.UID, cmd.Path); err != nil {
		l.opts.Log.Warn("locks could not be released; they are free once this process has ended", "task", cmd.Path, "error", err)
	}
	l.kick()
}

func (l *Locks) kick() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// begin starts the loop that asks the ledger.
func (l *Locks) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return
	}
	l.started = true
	ctx, cancel := context.WithCancelCause(context.Background())
	l.stop = func() { cancel(errClosed) }
	go l.loop(ctx)
}

func (l *Locks) loop(ctx context.Context) {
	defer close(l.done)
	for {
		l.grant(ctx)
		l.mu.Lock()
		wait := l.opts.Lease / 3 // only to renew the lease
		if len(l.asked) > 0 {
			wait = min(wait, l.opts.Poll)
		}
		l.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (l *Locks) grant(ctx context.Context) {
	now := time.Now()
	held, err := l.ledger.GrantLocks(ctx, l.opts.Owner, now, now.Add(l.opts.Lease))
	if err != nil {
		if ctx.Err() == nil {
			l.opts.Log.Warn("the locks could not be looked at", "error", err)
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range held {
		r, ok := l.asked[id]
		if !ok {
			continue
		}
		delete(l.asked, id)
		l.sink.Tell(id[0], engine.Event{Acquired: &engine.Acquired{Node: r.node}})
	}
	if book, ok := l.ledger.(holders); ok && len(l.asked) > 0 && len(l.asked) <= mostNoted {
		l.note(ctx, book)
	}
}

// note tells those that wait who holds what they wait for, when that has changed.
func (l *Locks) note(ctx context.Context, book holders) {
	held, err := book.LockHolders(ctx)
	if err != nil {
		return // it is asked again
	}
	for id, r := range l.asked {
		if text := r.waits(held); text != "" && text != r.noted {
			r.noted = text
			l.sink.Tell(id[0], engine.Event{Noted: &engine.Noted{Node: r.node, Message: text}})
		}
	}
}

// Close ends the loop and gives up all that this process holds or waits for. Runs that go on elsewhere, or later, ask
// again.
func (l *Locks) Close() error {
	l.mu.Lock()
	started := l.started
	l.started = true
	l.mu.Unlock()
	if !started {
		return nil
	}
	l.stop()
	<-l.done
	ctx, cancel := context.WithTimeout(context.Background(), l.opts.Lease)
	defer cancel()
	if err := l.ledger.DropLocks(ctx, l.opts.Owner); err != nil {
		return fmt.Errorf("give up the locks: %w", err)
	}
	return nil
}
