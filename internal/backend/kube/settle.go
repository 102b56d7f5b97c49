package kube

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
)

// settleWorkers is how many pods are let go at the same time.
const settleWorkers = 8

// settleAll lets pods go until the backend is closed. What is left then is settled by the next backend.
func (b *Backend) settleAll() {
	for {
		ref, closed := b.settles.queue.Get()
		if closed {
			return
		}
		if !b.settles.wanted(ref) { // it lagged, and was let go meanwhile
			b.settles.queue.Done(ref)
			continue
		}
		ctx, cancel := context.WithTimeout(b.ctx, callTimeout)
		err := b.release(ctx, ref)
		cancel()
		switch {
		case err == nil:
			b.settles.queue.Forget(ref)
			b.settles.done(ref)
		case passing(err):
			b.settles.queue.AddRateLimited(ref)
		case b.ctx.Err() == nil:
			b.settles.queue.Forget(ref)
			b.settles.done(ref)
			b.cfg.Log.Warn("a pod keeps its finalizer and cannot be deleted", "pod", ref.name, "namespace", ref.namespace, "error", err)
		}
		b.settles.queue.Done(ref)
	}
}

// Settled says that an attempt's end is recorded, or wanted no more: its pod need not be kept. It returns at once.
func (b *Backend) Settled(run engine.Run, path string) {
	b.whenSynced(func() { b.settle(run, key{run.UID, path}) })
}

// whenSynced does something once all pods are known: now, if they are.
func (b *Backend) whenSynced(f func()) {
	b.mu.Lock()
	now := b.early == nil && b.pods.know()
	if !now {
		b.early = append(b.early, f)
		if len(b.early) == 1 && !b.closed {
			b.done.Go(b.catchUp)
		}
	}
	b.mu.Unlock()
	if now {
		f()
	}
}

// catchUp does what was to be done before all pods were known.
func (b *Backend) catchUp() {
	if b.pods.synced(b.ctx) != nil {
		return // the next backend does it
	}
	b.mu.Lock()
	early := b.early
	b.early = nil
	b.mu.Unlock()
	for _, f := range early {
		f()
	}
}

// settle lets go of an attempt's pod, once its phase is that of its end.
func (b *Backend) settle(run engine.Run, id key) {
	refs := b.leave(id)
	for _, p := range b.pods.of(id) {
		if p.Namespace == run.Namespace {
			refs[p.UID] = referenceOf(p)
		}
	}
	for _, ref := range refs {
		b.settles.add(id.run, ref)
	}
	late := map[types.UID]bool{}
	for _, p := range b.pods.of(id) { // again: what was told before it was added, nobody took note of
		late[p.UID] = lags(p)
	}
	for uid, ref := range refs {
		if late[uid] {
			b.settles.wait(ref)
		} else {
			b.settles.ready(uid)
		}
	}
}

// leave stops following an attempt and gives its pod.
func (b *Backend) leave(id key) map[types.UID]reference {
	refs := map[types.UID]reference{}
	b.mu.Lock()
	a := b.attempts[id]
	delete(b.attempts, id)
	if o := b.objects[id]; o != nil {
		o.cancel(errClosed)
		delete(b.objects, id)
	}
	b.mu.Unlock()
	if a == nil {
		return refs
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ending, a.left = true, true // nothing is told of it any more
	a.wake()
	if a.pod.uid != "" {
		refs[a.pod.uid] = a.pod
		b.unlink(a.pod.uid)
	}
	return refs
}

// drop forgets an attempt that never began.
func (b *Backend) drop(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.attempts[a.id] == a {
		delete(b.attempts, a.id)
	}
}

func (b *Backend) unlink(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.byPod, uid)
}

// Forget removes an attempt's pod, so that a later Start of the same path makes another.
func (b *Backend) Forget(ctx context.Context, run engine.Run, path string) error {
	if err := b.pods.synced(ctx); err != nil {
		return err
	}
	id := key{run.UID, path}
	refs := b.leave(id)
	for _, p := range b.pods.of(id) {
		if p.Namespace == run.Namespace {
			refs[p.UID] = referenceOf(p)
		}
	}
	b.mu.Lock()
	b.forgotten[id] = "" // a pod that was let go is not known here
	for uid := range refs {
		b.forgotten[id] = uid
	}
	b.mu.Unlock()
	for _, ref := range refs {
		if err := b.persist(func(ctx context.Context) error { return b.erase(ctx, ref) }); err != nil {
			return err
		}
	}
	return nil
}

// Release lets go of all pods of a run and stops following its attempts: for a run that has ended or is deleted, whose
// pods nobody will ask about.
func (b *Backend) Release(runUID string) {
	b.whenSynced(func() { b.releaseRun(runUID) })
}

func (b *Backend) releaseRun(runUID string) {
	b.mu.Lock()
	var ids []key
	for id := range b.attempts {
		if id.run == runUID {
			ids = append(ids, id)
		}
	}
	for id := range b.objects {
		if id.run == runUID {
			ids = append(ids, id)
		}
	}
	for id := range b.forgotten {
		if id.run == runUID {
			delete(b.forgotten, id)
		}
	}
	b.mu.Unlock()
	refs := map[types.UID]reference{}
	for _, id := range ids {
		maps.Copy(refs, b.leave(id))
	}
	label := pod.LabelValue(runUID)
	b.releaseAll(refs, runUID, func(p *corev1.Pod) bool { return p.Labels[pod.RunLabel] == label })
}

// ReleaseUnknown lets go of all pods whose run is not known, by its UID: what is left of runs that were deleted while
// no controller looked.
func (b *Backend) ReleaseUnknown(ctx context.Context, known func(runUID string) bool) error {
	if err := b.pods.synced(ctx); err != nil {
		return err
	}
	b.releaseAll(nil, "", func(p *corev1.Pod) bool {
		id, ok := keyOf(p)
		return ok && !known(id.run)
	})
	return nil
}

// releaseAll lets go of pods at once, whatever their phases say.
func (b *Backend) releaseAll(refs map[types.UID]reference, runUID string, which func(*corev1.Pod) bool) {
	release := func(run string, ref reference) {
		b.settles.add(run, ref)
		b.settles.ready(ref.uid)
	}
	for _, p := range b.pods.all() {
		if _, there := refs[p.UID]; there || !which(p) {
			continue
		}
		id, _ := keyOf(p)
		release(id.run, referenceOf(p))
	}
	for _, ref := range refs {
		release(runUID, ref)
	}
}
