package kube

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// longestLag is how long a pod is kept whose phase does not follow its containers.
const longestLag = 5 * time.Second

// settles are the pods that are to be let go.
type settles struct {
	queue workqueue.TypedRateLimitingInterface[reference]

	mu sync.Mutex
	// open are those that are not let go yet, and their runs' UIDs; late those of them whose phase does not follow yet.
	open map[reference]string
	late map[types.UID]reference
	runs map[string]*owed
}

// owed is how many pods of a run are still to be let go; none is closed when it is none.
type owed struct {
	n    int
	none chan struct{}
}

func newSettles() *settles {
	return &settles{
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reference](firstPause, longestPause)),
		open:  map[reference]string{}, late: map[types.UID]reference{}, runs: map[string]*owed{},
	}
}

func (s *settles) close() { s.queue.ShutDown() }

// add takes note of a pod that is to be let go. It is not until it is ready, or has lagged for too long.
func (s *settles) add(run string, ref reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.open[ref]; there {
		return
	}
	s.open[ref], s.late[ref.uid] = run, ref
	o := s.runs[run]
	if o == nil {
		o = &owed{none: make(chan struct{})}
		s.runs[run] = o
	}
	o.n++
}

// ready has a pod let go now, if it is to be.
func (s *settles) ready(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ref, late := s.late[uid]; late {
		delete(s.late, uid)
		s.queue.Add(ref)
	}
}

// wait has a pod let go in a while, if it is not ready before.
func (s *settles) wait(ref reference) { s.queue.AddAfter(ref, longestLag) }

// wanted says whether a pod is still to be let go.
func (s *settles) wanted(ref reference) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.open[ref]
	return there
}

// done says that a pod was let go, or never will be.
func (s *settles) done(ref reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	run, there := s.open[ref]
	if !there {
		return
	}
	delete(s.open, ref)
	delete(s.late, ref.uid)
	o := s.runs[run]
	if o.n--; o.n == 0 {
		close(o.none)
		delete(s.runs, run)
	}
}

// none gives what is closed once no pod of a run is to be let go any more; nil where there is none.
func (s *settles) none(run string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.runs[run]; o != nil {
		return o.none
	}
	return nil
}

// AwaitSettled waits until all pods of a run that were to be let go are: their phases are those of their ends then, so that
// clients which look at the phase first read their logs.
func (b *Backend) AwaitSettled(ctx context.Context, runUID string) error {
	none := b.settles.none(runUID)
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// lags says whether a pod's phase is behind its containers: a kubelet tells of the end of containers some time before it has
// cleared the pod away, and only then says that the pod has ended. One that was fast is Pending all that time, and there
// `argo logs`, for one, looks for no log.
func lags(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil {
		return false
	}
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].State.Terminated != nil {
			return true
		}
	}
	return false
}
