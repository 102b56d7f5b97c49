package kube

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Backend carries tasks out as pods. It implements the runner's Backend, Forgetter and Settler.
type Backend struct {
	cfg     Config
	sink    Sink
	pods    *pods
	settles *settles

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   sync.WaitGroup
	// slots bounds the calls that are made again after they failed.
	slots chan struct{}

	mu       sync.Mutex
	attempts map[key]*attempt
	byPod    map[types.UID]*attempt
	objects  map[key]*objectTask
	// forgotten are attempts that are to run anew, and the pod of theirs that was known; "" stands for any.
	forgotten map[key]types.UID
	// early is what is to be done once all pods are known.
	early  []func()
	closed bool
}

// errClosed ends what a backend does that is closed; pods run on.
var errClosed = errors.New("the kube backend is closed")

// retrySlots is how many calls that failed are made again at the same time.
const retrySlots = 16

// New makes a backend and begins to watch pods. It does not wait for the cluster.
func New(cfg Config, sink Sink) (*Backend, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	b := &Backend{
		cfg: cfg, sink: sink, settles: newSettles(), ctx: ctx, cancel: cancel, slots: make(chan struct{}, retrySlots),
		attempts: map[key]*attempt{}, byPod: map[types.UID]*attempt{}, objects: map[key]*objectTask{}, forgotten: map[key]types.UID{},
	}
	if b.pods, err = watchPods(ctx, cfg, b.seen, b.done.Go); err != nil {
		cancel(err)
		return nil, err
	}
	for range settleWorkers {
		b.done.Go(b.settleAll)
	}
	return b, nil
}

// Handles says whether tasks of a kind are this backend's.
func (b *Backend) Handles(kind program.Kind) bool {
	return kind == program.Containers || kind == program.Script || kind == program.Resource
}

// Start begins an attempt, or takes up what there is of it.
func (b *Backend) Start(ctx context.Context, run engine.Run, cmd engine.StartTask) error {
	if err := b.pods.synced(ctx); err != nil {
		return err
	}
	id := key{run.UID, cmd.Path}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed
	}
	if cmd.Body.Kind == program.Resource {
		defer b.mu.Unlock()
		b.startObject(id, run, cmd)
		return nil
	}
	a := b.attempts[id]
	if a != nil {
		b.mu.Unlock()
		a.repeat()
		return nil
	}
	a = &attempt{b: b, id: id, run: run, cmd: cmd, discarded: map[types.UID]bool{}, changed: make(chan struct{}, 1)}
	if uid, ok := b.forgotten[id]; ok {
		delete(b.forgotten, id)
		a.discarded[uid] = true
	}
	b.attempts[id] = a
	b.mu.Unlock()
	for _, p := range b.pods.of(id) {
		if a.observe(p, false) {
			return nil
		}
	}
	return a.begin(ctx)
}

// seen takes what the informer tells.
func (b *Backend) seen(p *corev1.Pod, gone bool) {
	id, ok := keyOf(p)
	if !ok {
		return
	}
	b.mu.Lock()
	a := b.attempts[id]
	b.mu.Unlock()
	if a != nil {
		a.observe(p, gone)
	}
	if gone || !lags(p) {
		b.settles.ready(p.UID)
	}
}

// Stop ends an attempt: its pod is deleted, and the executor still reports.
func (b *Backend) Stop(ctx context.Context, run engine.Run, cmd engine.StopTask) error {
	id := key{run.UID, cmd.Path}
	b.mu.Lock()
	a, o := b.attempts[id], b.objects[id]
	b.mu.Unlock()
	switch {
	case a != nil:
		return a.stop(ctx, cmd)
	case o != nil:
		o.stop(cmd)
	}
	return nil
}

// Close stops watching. Pods run on; a later Start adopts them.
func (b *Backend) Close() error {
	b.mu.Lock()
	closed := b.closed
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.cancel(errClosed)
	b.settles.close()
	b.done.Wait()
	return nil
}

// later does something in the background, unless the backend is closed.
func (b *Backend) later(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.done.Go(f)
	}
}
