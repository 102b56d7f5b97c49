package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/submission"
)

// run is a workflow that this process goes on with: the runner's loop, and a second one that shows it in the object.
type run struct {
	c        *Controller
	key      string
	uid      types.UID
	manifest *submission.Manifest
	machine  *engine.Machine
	active   *runner.Active
	board    *board
	log      *slog.Logger
	cancel   context.CancelCauseFunc
	done     chan struct{} // closed when both loops have ended

	// suspended is spec.suspend as it was seen last.
	suspended bool
	// seen is the version of the object in the informer's store.
	seen    atomic.Pointer[string]
	kick    chan struct{}
	changed atomic.Int64
	nodes   atomic.Int64
	final   atomic.Pointer[status.Content]
	events  *nodeEvents
	counted counted
	pods    *podRule // nil: they are kept
}

// errDeleted ends the loops of a workflow whose object was deleted.
var errDeleted = errors.New("the Workflow object was deleted")

// project gives what is to be seen of a state.
func (r *run) project(s *engine.State) (status.Content, error) {
	object, err := r.manifest.Project(s)
	if err != nil {
		return status.Content{}, err
	}
	w, ok := object.(*argo.Workflow)
	if !ok { // a pipeline is shown as the workflow that it is
		w = argo.Project(r.manifest.Program, s, argo.ProjectOptions{})
		w.Status.StoredWorkflowTemplateSpec = r.manifest.Spec
	}
	if notes := r.c.notes(r.manifest); len(notes) > 0 {
		w.Status.Conditions = append(w.Status.Conditions, notes...)
	}
	return status.Of(w)
}

// Changed implements [runner.Observer]: it only takes note, but for the end, after which nobody could ask any more.
func (r *run) Changed(v runner.View) {
	r.events.observe(v)
	r.c.metrics.observe(r, v)
	r.collect(v)
	r.changed.Add(int64(len(v.Changed)))
	r.nodes.Store(int64(v.State.Len()))
	if v.State.Phase.Ended() && r.final.Load() == nil {
		c, err := r.project(v.State)
		if err != nil {
			r.log.Error("the end of a workflow cannot be shown", "error", err)
			return
		}
		r.final.Store(&c)
	}
	r.wake()
}

func (r *run) wake() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// touch says that the informer has seen a version of the object.
func (r *run) touch(version string) {
	r.seen.Store(&version)
	r.wake()
}

// loop runs both loops to their ends.
func (r *run) loop(ctx context.Context) {
	defer close(r.done)
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		if err := r.show(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errGone) {
			r.log.Error("the status of a workflow is not shown any more", "error", err)
		}
	}()
	end, err := r.active.Run(ctx)
	if err != nil && ctx.Err() == nil {
		r.log.Error("a workflow cannot be gone on with; it will be taken up again", "error", err)
	}
	if end != runner.Ended || err != nil || r.final.Load() == nil {
		r.cancel(err) // nothing more is to be shown
	}
	<-shown
	if s := r.active.State(); ctx.Err() == nil && s.Phase.Ended() {
		r.deleteClaims(ctx, s)
	}
	r.cancel(nil)
	r.c.metrics.leave(&r.counted)
}

// show keeps the object up to date until the run's end has been written.
func (r *run) show(ctx context.Context) error {
	var rate status.Rate
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.kick:
		case <-timer.C:
		}
		if v := r.seen.Load(); v != nil && r.board.newer(*v) {
			if err := r.board.refresh(ctx); errors.Is(err, errGone) {
				return err
			} else if err != nil {
				r.log.Warn("a changed object could not be read", "error", err)
			}
		}
		if c := r.final.Load(); c != nil {
			r.awaitPods(ctx)
			err := r.board.insist(ctx, *c, func(err error) {
				r.c.metrics.wrote(err)
				r.log.Warn("the end of a workflow could not be written, trying again", "error", err)
			})
			r.c.metrics.wrote(err)
			return err
		}
		rate.Changed(int(r.changed.Swap(0)))
		if wait := time.Until(rate.Due(int(r.nodes.Load()))); wait > 0 {
			timer.Reset(wait)
			continue
		}
		if !rate.Any() {
			continue
		}
		if err := r.write(ctx, &rate); err != nil {
			return err
		}
	}
}

// endPatience is how long the end of a workflow is kept back for its pods.
const endPatience = 10 * time.Second

// awaitPods waits until the pods of a run that has ended are let go: clients stop to look for logs once they see the end, and
// who deletes the workflow then deletes its pods, too.
func (r *run) awaitPods(ctx context.Context) {
	b, ok := r.c.Backend.(interface {
		AwaitSettled(ctx context.Context, runUID string) error
	})
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	if err := b.AwaitSettled(ctx, string(r.uid)); err != nil {
		r.log.Info("the end of a workflow is shown before its pods could be let go", "error", err)
	}
}

// write shows the run as it is now.
func (r *run) write(ctx context.Context, rate *status.Rate) error {
	var c status.Content
	began := time.Now()
	var cost time.Duration
	err := r.active.Ask(ctx, func(s *engine.State) ([]engine.Event, error) {
		var err error
		t := time.Now()
		c, err = r.project(s)
		cost = time.Since(t)
		return nil, err
	})
	if errors.Is(err, runner.ErrEnded) {
		return nil // the end is being told
	}
	if err != nil {
		return err
	}
	err = r.board.show(ctx, c)
	if errors.Is(err, errGone) {
		return err
	}
	rate.Written(began, cost, len(c.Nodes), r.board.page.Packed())
	r.c.metrics.wrote(err)
	if err != nil {
		r.log.Warn("a status could not be written, trying again", "error", err)
		rate.Changed(1)
		r.wake()
	}
	return nil
}
