package cli

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
)

// recorder keeps a run's row in the store up to date: at once when its phase or what it waits for changes, else at most
// every second, and not later than a second after a change. The journal is what counts; the row is for lists.
type recorder struct {
	ctx   context.Context //nolint:containedctx // of the command
	store store.Store
	log   *slog.Logger

	mu    sync.Mutex
	model *model
	last  store.Status
	at    time.Time
	later *time.Timer // saves what came too soon after the last; nil for nothing
}

// recordEvery is how old the row may be.
const recordEvery = time.Second

// Changed implements [runner.Observer].
func (r *recorder) Changed(v runner.View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model.update(v)
	now := r.model.status()
	since := time.Since(r.at)
	if now.Phase != r.last.Phase || now.Summary.Suspended != r.last.Summary.Suspended || since >= recordEvery {
		r.save(now)
		return
	}
	if r.later == nil {
		r.later = time.AfterFunc(recordEvery-since, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.later != nil {
				r.save(r.model.status())
			}
		})
	}
}

// end saves the run as it is at its end. Nothing is saved after that.
func (r *recorder) end(interrupted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.model.status()
	s.Summary.Interrupted = interrupted && !s.Phase.Ended()
	r.save(s)
}

func (r *recorder) save(s store.Status) {
	if r.later != nil {
		r.later.Stop()
		r.later = nil
	}
	if err := r.store.SetStatus(r.ctx, r.model.uid, s); err != nil {
		r.log.Warn("the list of runs could not be brought up to date", "error", err)
		return
	}
	r.last, r.at = s, time.Now()
}

// status is the model as the store's list shows it.
func (m *model) status() store.Status {
	s := store.Status{Phase: m.phase, Message: m.message, Started: m.started, Finished: m.finished, Summary: m.counts}
	if s.Phase == "" {
		s.Phase = engine.Pending
	}
	s.Summary.Suspended = !m.phase.Ended() && (m.waiting || m.held)
	return s
}
