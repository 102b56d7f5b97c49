package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/kube"
	"github.com/sluice-ml/sluice/internal/submission"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reconcile brings one object and its run together. It says after what time to look again, 0 for not before something
// changes.
func (c *Controller) reconcile(ctx context.Context, key string) (time.Duration, error) {
	w, there, err := c.stored(key)
	if err != nil {
		return 0, err
	}
	there = there && c.owns(w)
	r := c.find(key)
	if r != nil && (!there || w.GetUID() != r.uid || w.GetDeletionTimestamp() != nil) {
		if err := c.end(ctx, r); err != nil {
			return 0, err
		}
		r = nil
	}
	switch {
	case !there:
		c.free(key)
		return 0, nil
	case w.GetDeletionTimestamp() != nil:
		c.free(key)
		c.release(string(w.GetUID()))
		return 0, nil
	case r != nil:
		select {
		case <-r.done:
			c.drop(r)
			c.letGo(r)
			if r.final.Load() != nil {
				c.release(string(r.uid))
			}
		default:
			r.touch(w.GetResourceVersion())
			return 0, nil
		}
	}
	if w.completed() {
		c.free(key)
		return c.expire(ctx, w)
	}
	if !c.slots.take(key, w) {
		return 0, c.postpone(ctx, w)
	}
	return 0, c.takeUp(ctx, key, w)
}

// end ends the loops of a workflow that is not this controller's any more. Where its object is gone, so is all that it
// held; where only its labels changed, another controller goes on with it.
func (c *Controller) end(ctx context.Context, r *run) error {
	name, err := nameOf(r.key)
	if err != nil {
		return err
	}
	live, err := fetch(ctx, c.client, name)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the object: %w", err)
	}
	r.cancel(errDeleted)
	<-r.done
	c.drop(r)
	c.letGo(r)
	if err == nil && live.GetUID() == r.uid && live.GetDeletionTimestamp() == nil {
		return nil
	}
	c.release(string(r.uid))
	return nil
}

// drop takes an ended run out of the list and gives its place to another.
func (c *Controller) drop(r *run) {
	c.mu.Lock()
	if c.runs[r.key] == r {
		delete(c.runs, r.key)
	}
	c.mu.Unlock()
}

// takeUp begins a workflow, or goes on with one.
func (c *Controller) takeUp(ctx context.Context, key string, w workflow) error {
	if w.begun() { // the store has no nodes
		live, err := fetch(ctx, c.client, client.ObjectKeyFromObject(w))
		switch {
		case apierrors.IsNotFound(err): // the informer tells of it
			return nil
		case err != nil:
			return fmt.Errorf("read the object: %w", err)
		case live.GetUID() != w.GetUID() || live.completed(): // of that, too
			return nil
		}
		w = live
	}
	m, begun, err := c.manifest(ctx, w)
	if no := (refused{}); errors.As(err, &no) {
		return c.refuse(ctx, key, w, no)
	}
	if err != nil {
		return err
	}
	machine, err := engine.New(m.Program, m.Lang, c.conditions.Match)
	if err != nil {
		return c.refuse(ctx, key, w, refused{engine.ErrorPhase, err.Error()})
	}
	machine.Pods = true
	b, err := newBoard(c.client, w, c.StatusLimit)
	if err != nil {
		return err
	}
	r := &run{
		c: c, key: key, uid: w.GetUID(), manifest: m, machine: machine, board: b, log: c.Log.With("workflow", key),
		kick: make(chan struct{}, 1), done: make(chan struct{}), suspended: w.suspended(), events: newNodeEvents(c.recorder, w),
	}
	job := runner.Job{UID: string(w.GetUID()), Program: m.Program, Machine: machine, Observers: []runner.Observer{r}}
	if r.active, err = c.runner.Open(ctx, job); err != nil {
		return err
	}
	r.hold()
	if begun {
		err = r.catchUp(ctx, w)
	}
	if err == nil && !r.active.State().Phase.Ended() {
		err = r.makeClaims(ctx)
	}
	if err != nil {
		r.active.Close()
		return err
	}
	if rule, ok := podRuleOf(m.Spec); ok {
		r.pods = &rule
	}
	b.edited = r.edited
	return c.start(r)
}

// start begins the loops of a run.
func (c *Controller) start(r *run) error {
	// Not the worker's context: Run ends the loops itself, in its own order.
	ctx, cancel := context.WithCancelCause(context.Background())
	r.cancel = cancel
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel(nil)
		r.active.Close()
		return nil
	}
	c.runs[r.key] = r
	c.loops.Go(func() {
		r.loop(ctx)
		c.queue.Add(r.key) // to be dropped, deleted in time, or taken up again
	})
	return nil
}

// manifest gives what an object runs: as it was kept when it was begun, else from the object. begun says that it was
// kept before.
func (c *Controller) manifest(ctx context.Context, w workflow) (_ *submission.Manifest, begun bool, _ error) {
	if !w.begun() {
		m, err := c.begin(ctx, w)
		if !errors.Is(err, kube.ErrExists) {
			return m, false, err
		}
	}
	run, err := c.Journal.Get(ctx, w.GetNamespace(), string(w.GetUID()))
	if errors.Is(err, store.ErrNotFound) && w.begun() {
		if w.phase() == string(engine.RunningPhase) {
			return nil, true, refused{engine.ErrorPhase, "the journal of this workflow is gone, and with it what has run already: submit it anew"}
		}
		m, err := c.begin(ctx, w)
		return m, false, err
	}
	if err != nil {
		return nil, true, err
	}
	m, err := recall(run)
	if err != nil {
		return nil, true, refused{engine.ErrorPhase, "the workflow cannot be loaded again: " + err.Error()}
	}
	return m, true, nil
}

// catchUp looks at what happened to the object while nobody went on with it. A run that has ended is gone on with as well:
// its end is shown, and what it left behind is let go of.
func (r *run) catchUp(ctx context.Context, w workflow) error {
	s := r.active.State()
	there, _, err := w.content()
	if err != nil {
		return err
	}
	now, err := r.project(s)
	if err != nil {
		return err
	}
	if !s.Phase.Ended() {
		e := editsOf(w, there)
		r.suspended = e.suspended
		for _, event := range steer(s, e, idsOf(now), s.Suspended) {
			if err := r.active.Apply(ctx, func(*engine.State) ([]engine.Event, error) { return []engine.Event{event}, nil }); err != nil {
				r.log.Warn("an edit cannot be followed", "error", err)
				r.c.recorder.warn(w, "WorkflowEditRefused", err.Error())
			}
		}
		return nil
	}
	if w.phase() == "" && len(there.Nodes) > 0 { // as argo retry leaves it
		err := r.active.Retry(ctx, func(s *engine.State) (engine.RetryRun, error) {
			return retryOf(s, w, there, idsOf(now)), nil
		})
		if err != nil {
			r.log.Warn("a workflow cannot be tried again", "error", err)
			r.c.recorder.warn(w, "WorkflowRetryRefused", err.Error())
		}
	}
	return nil
}

// edited turns what others wrote into the object into events.
func (r *run) edited(ctx context.Context, w workflow) {
	there, _, err := w.content()
	if err != nil {
		r.log.Warn("an edited object cannot be read", "error", err)
		return
	}
	e, before := editsOf(w, there), r.suspended
	r.suspended = e.suspended
	var events []engine.Event
	err = r.active.Ask(ctx, func(s *engine.State) ([]engine.Event, error) {
		now, err := r.project(s)
		if err == nil {
			events = steer(s, e, idsOf(now), before)
		}
		return nil, err
	})
	for _, event := range events {
		if err == nil {
			err = r.active.Ask(ctx, func(*engine.State) ([]engine.Event, error) { return []engine.Event{event}, nil })
		}
		if err != nil && !errors.Is(err, runner.ErrEnded) && ctx.Err() == nil {
			r.log.Warn("an edit cannot be followed", "error", err)
			r.c.recorder.warn(w, "WorkflowEditRefused", err.Error())
			err = nil
		}
	}
}

// refuse ends an object that can never be run.
func (c *Controller) refuse(ctx context.Context, key string, w workflow, no refused) error {
	now := metav1.NewTime(c.Now().UTC().Truncate(time.Second))
	content, err := status.Of(&argo.Workflow{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{status.LabelPhase: string(no.phase), status.LabelCompleted: "true"}},
		Status: &argo.WorkflowStatus{
			Phase: string(no.phase), Message: no.message, StartedAt: now, FinishedAt: now,
			Conditions: []argo.Condition{{Type: "Completed", Status: "True"}},
		},
	})
	if err != nil {
		return err
	}
	b, err := newBoard(c.client, w, c.StatusLimit)
	if err != nil {
		return err
	}
	c.free(key)
	c.Journal.Release(string(w.GetUID()))
	c.release(string(w.GetUID())) // it may have had pods before
	c.Log.Info("a workflow cannot be run", slog.String("workflow", key), slog.String("reason", no.message))
	c.recorder.warn(w, "WorkflowFailed", no.message)
	if err := b.show(ctx, content); err != nil && !errors.Is(err, errGone) {
		return err
	}
	return nil
}

// postpone says in a new object that others go first.
func (c *Controller) postpone(ctx context.Context, w workflow) error {
	if w.phase() != "" {
		return nil
	}
	content, err := status.Of(&argo.Workflow{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{status.LabelPhase: string(engine.Pending)}},
		Status: &argo.WorkflowStatus{
			Phase: string(engine.Pending), Message: "Workflow processing has been postponed because too many workflows are already running",
		},
	})
	if err != nil {
		return err
	}
	b, err := newBoard(c.client, w, c.StatusLimit)
	if err != nil {
		return err
	}
	if err := b.show(ctx, content); err != nil && !errors.Is(err, errGone) {
		return err
	}
	return nil
}
