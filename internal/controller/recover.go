package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/engine"
)

// mine selects the objects that this controller looks after.
func (c *Controller) mine() []client.ListOption {
	var opts []client.ListOption
	if c.Namespace != "" {
		opts = append(opts, client.InNamespace(c.Namespace))
	}
	op, values := selection.DoesNotExist, []string(nil)
	if c.InstanceID != "" {
		op, values = selection.Equals, []string{c.InstanceID}
	}
	if r, err := labels.NewRequirement(LabelInstance, op, values); err == nil {
		opts = append(opts, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*r)})
	}
	return opts
}

// owns says whether an object is this controller's.
func (c *Controller) owns(w workflow) bool {
	instance, labelled := w.GetLabels()[LabelInstance]
	return instance == c.InstanceID && labelled == (c.InstanceID != "") && (c.Namespace == "" || w.GetNamespace() == c.Namespace)
}

// recover takes up everything that goes on already before anything new begins: it has its places under limits, and its
// locks.
func (c *Controller) recover(ctx context.Context) {
	keys := make(chan string)
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() {
			for key := range keys {
				c.takeBack(ctx, key)
			}
		})
	}
	for _, o := range c.workflows.GetStore().List() {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		w := workflow{u}
		if w.completed() || !w.begun() || w.phase() == string(engine.Pending) {
			continue
		}
		key := client.ObjectKeyFromObject(w).String()
		c.slots.occupy(key, w.GetNamespace())
		keys <- key
	}
	close(keys)
	workers.Wait()
	if c.Locks != nil {
		c.Locks.ledger.start()
	}
	c.releaseUnknown(ctx)
}

// takeBack takes up a workflow that goes on, and tries again for half a minute where it cannot: what it holds must be known
// before anybody else is given it. After that it is tried like any other.
func (c *Controller) takeBack(ctx context.Context, key string) {
	const tries, first = 9, 50 * time.Millisecond
	for n := range tries {
		_, err := c.reconcile(ctx, key)
		if err == nil {
			return
		}
		c.Log.Warn("a workflow that goes on could not be taken up, trying again", "workflow", key, "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(first << n):
		}
	}
	c.queue.AddRateLimited(key)
}

// sweep lets go of pods that nobody waits for, again and again: a workflow may be deleted while it could not be taken up, and
// a pod be made by a call that was given up.
func (c *Controller) sweep(ctx context.Context) {
	ticker := time.NewTicker(c.SweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.releaseUnknown(ctx)
		}
	}
}

// free gives the place of a workflow back, and calls who is next.
func (c *Controller) free(key string) {
	for _, next := range c.slots.release(key) {
		c.queue.Add(next)
	}
}

// letGo gives back what a run holds in this process.
func (c *Controller) letGo(r *run) {
	uid := string(r.uid)
	if c.Locks != nil {
		c.Locks.ledger.releaseRun(uid)
	}
	c.Journal.Release(uid)
}

// release says that nothing waits for the pods of a workflow any more.
func (c *Controller) release(uid string) {
	if c.Release != nil {
		c.Release(uid)
	}
}

// releaseUnknown lets go of pods of workflows that were deleted, or that ended, while no controller looked.
func (c *Controller) releaseUnknown(ctx context.Context) {
	if c.ReleaseUnknown == nil {
		return
	}
	goesOn := map[string]bool{}
	for _, o := range c.workflows.GetStore().List() {
		if u, ok := o.(*unstructured.Unstructured); ok && !(workflow{u}).completed() && u.GetDeletionTimestamp() == nil {
			goesOn[string(u.GetUID())] = true
		}
	}
	known := func(uid string) bool {
		if goesOn[uid] {
			return true
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, r := range c.runs {
			if string(r.uid) == uid {
				return true
			}
		}
		return false
	}
	if err := c.ReleaseUnknown(ctx, known); err != nil && ctx.Err() == nil {
		c.Log.Warn("pods of workflows that are gone could not be let go", "error", err)
	}
}

// expire deletes a completed workflow when its time has come, and gives how long that is.
func (c *Controller) expire(ctx context.Context, w workflow) (time.Duration, error) {
	ttl, ok := w.ttl()
	if !ok {
		return 0, nil
	}
	finished, ok := w.finishedAt()
	if !ok {
		return 0, nil
	}
	if left := finished.Add(ttl).Sub(c.Now()); left > 0 {
		return left, nil
	}
	uid := w.GetUID()
	err := c.client.Delete(ctx, w, client.PropagationPolicy("Background"), client.Preconditions{UID: &uid})
	return 0, client.IgnoreNotFound(err)
}
