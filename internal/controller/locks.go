package controller

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner/locks"
)

// Locks grants mutexes and semaphores to all workflows of a controller. Who holds what is in the states of the runs, so
// that a controller which takes over first collects the holders and then grants.
type Locks struct {
	*locks.Locks
	ledger *ledger
	client client.Reader
}

// NewLocks gives locks whose semaphores have the sizes that their ConfigMaps say at the time. Close must be called.
func NewLocks(c client.Reader, sink locks.Sink, opts locks.Options) *Locks {
	l := &ledger{sizes: map[string]sized{}}
	l.look = func(ctx context.Context, name string) (int, bool) { return semaphoreSize(ctx, c, name) }
	return &Locks{Locks: locks.New(l, sink, opts), ledger: l, client: c}
}

// Acquire implements the runner's Locks: the sizes of semaphores are those of now, not of when the workflow began.
func (l *Locks) Acquire(ctx context.Context, run engine.Run, p *program.Program, cmd engine.AcquireLocks) {
	l.Locks.Acquire(ctx, run, l.live(ctx, run, p, cmd.Locks), cmd)
}

// live gives the program with the ConfigMaps of semaphores as they are now. One that cannot be read stays as it was.
func (l *Locks) live(ctx context.Context, run engine.Run, p *program.Program, wanted []program.Lock) *program.Program {
	var now map[string]map[string]string
	for _, lock := range wanted {
		if !lock.Semaphore || lock.Database {
			continue
		}
		namespace := lock.Namespace
		if namespace == "" {
			namespace = run.Namespace
		}
		var o corev1.ConfigMap
		if l.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: lock.Name}, &o) != nil {
			continue
		}
		if now == nil {
			if now = maps.Clone(p.ConfigMaps); now == nil {
				now = map[string]map[string]string{}
			}
		}
		now[lock.Name] = o.Data
	}
	if now == nil {
		return p
	}
	copied := *p
	copied.ConfigMaps = now
	return &copied
}

// hold enters the locks that a run's nodes hold according to its state, before anybody else can be given them.
func (r *run) hold() {
	l := r.c.Locks
	if l == nil {
		return
	}
	s := r.active.State()
	for _, cmd := range r.machine.Outstanding(s) {
		ask, ok := cmd.(engine.AcquireLocks)
		if !ok {
			continue
		}
		n := s.Node(ask.Node)
		if held := ask.Node == 0 && s.Root != 0 || n != nil && n.Stage != engine.StageLocks; !held {
			continue
		}
		p := l.live(context.Background(), s.Run, r.manifest.Program, ask.Locks)
		var names []string
		var sizes []int
		for _, lock := range ask.Locks {
			name, size, err := locks.Resolve(s.Run, p, lock)
			if err != nil {
				continue
			}
			names, sizes = append(names, name), append(sizes, size)
		}
		l.ledger.enter(s.Run.UID, ask.Path, names, sizes, true)
	}
}

// semaphoreSize reads the size of a semaphore by the name that the ledger knows it under.
func semaphoreSize(ctx context.Context, c client.Reader, name string) (int, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || parts[0] != "semaphore" {
		return 0, false
	}
	var o corev1.ConfigMap
	if c.Get(ctx, client.ObjectKey{Namespace: parts[1], Name: parts[2]}, &o) != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(o.Data[parts[3]]))
	return n, err == nil && n >= 0
}

// ledger keeps requests for locks in memory, in the order in which they came.
type ledger struct {
	look func(ctx context.Context, name string) (int, bool)

	mu       sync.Mutex
	open     bool // requests are granted: all holders are known
	requests []*request
	sizes    map[string]sized
}

type request struct {
	run, path string
	locks     []string
	held      bool
}

type sized struct {
	size int
	read time.Time
}

// sizeAge is how long a semaphore's size is taken as known while something waits for it.
const sizeAge = 5 * time.Second

// AskLocks implements locks.Ledger.
func (l *ledger) AskLocks(_ context.Context, _, run, path string, names []string, sizes []int) error {
	l.enter(run, path, names, sizes, false)
	return nil
}

// enter adds a request unless there is one; what holds stands before what waits. sizes are those of the locks as they are now.
func (l *ledger) enter(run, path string, names []string, sizes []int, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, name := range names {
		l.sizes[name] = sized{sizes[i], time.Now()}
	}
	for _, q := range l.requests {
		if q.run == run && q.path == path {
			return
		}
	}
	q := &request{run, path, names, held}
	if !held {
		l.requests = append(l.requests, q)
		return
	}
	at := slices.IndexFunc(l.requests, func(q *request) bool { return !q.held })
	if at < 0 {
		at = len(l.requests)
	}
	l.requests = slices.Insert(l.requests, at, q)
}

// ReleaseLocks implements locks.Ledger.
func (l *ledger) ReleaseLocks(_ context.Context, run, path string) error {
	l.remove(func(q *request) bool { return q.run == run && q.path == path })
	return nil
}

// releaseRun takes out everything that a run holds or waits for.
func (l *ledger) releaseRun(run string) {
	l.remove(func(q *request) bool { return q.run == run })
}

// remove takes requests out, and the sizes of locks that nothing asks for any more: many a lock is named for one run.
func (l *ledger) remove(which func(*request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	unused := map[string]bool{}
	l.requests = slices.DeleteFunc(l.requests, func(q *request) bool {
		if !which(q) {
			return false
		}
		for _, name := range q.locks {
			unused[name] = true
		}
		return true
	})
	if len(unused) == 0 {
		return
	}
	for _, q := range l.requests {
		for _, name := range q.locks {
			delete(unused, name)
		}
	}
	for name := range unused {
		delete(l.sizes, name)
	}
}

// GrantLocks implements locks.Ledger: there is one owner, this process.
func (l *ledger) GrantLocks(ctx context.Context, _ string, now, _ time.Time) ([][2]string, error) {
	l.renew(ctx, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return nil, nil
	}
	before := map[string]int{}
	var granted [][2]string
	for _, q := range l.requests {
		free := !slices.ContainsFunc(q.locks, func(name string) bool { return before[name] >= l.sizes[name].size })
		q.held = q.held || free
		for _, name := range q.locks {
			before[name]++
		}
		if q.held {
			granted = append(granted, [2]string{q.run, q.path})
		}
	}
	return granted, nil
}

// renew reads the sizes of semaphores that something waits for.
func (l *ledger) renew(ctx context.Context, now time.Time) {
	l.mu.Lock()
	old := map[string]bool{}
	for _, q := range l.requests {
		for _, name := range q.locks {
			if !q.held && strings.HasPrefix(name, "semaphore/") && now.Sub(l.sizes[name].read) > sizeAge {
				old[name] = true
			}
		}
	}
	l.mu.Unlock()
	for name := range old {
		size, ok := l.look(ctx, name)
		l.mu.Lock()
		if _, asked := l.sizes[name]; ok && asked {
			l.sizes[name] = sized{size, now}
		}
		l.mu.Unlock()
	}
}

// DropLocks implements locks.Ledger.
func (l *ledger) DropLocks(context.Context, string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = nil
	clear(l.sizes)
	return nil
}

// start lets requests be granted from now on.
func (l *ledger) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
}
