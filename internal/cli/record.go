package cli

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
)

// recorder keeps a run's row in the store up to date: at once when its phase or what it waits for changes, else at most
// every second. The journal is what counts; the row is for lists.
type recorder struct {
	ctx   context.Context //nolint:containedctx // of the command
	store store.Store
	log   *slog.Logger
	model *model
	last  store.Status
	at    time.Time
}

// Changed implements [runner.Observer].
func (r *recorder) Changed(v runner.View) {
	r.model.update(v)
	now := r.model.status()
	if now.Phase == r.last.Phase && now.Summary.Suspended == r.last.Summary.Suspended && time.Since(r.at) < time.Second {
		return
	}
	r.save(now)
}

func (r *recorder) save(s store.Status) {
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
