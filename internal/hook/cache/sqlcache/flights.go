package sqlcache

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/internal/hook/cache"
)

// Begin gives the work to w's review where nobody does it, or only what stands in instead; it gives what is under way then.
// Entries implements cache.Flights.
func (s *Entries) Begin(ctx context.Context, w cache.Work, instead *cache.Work) (cache.Work, error) {
	stale := w.UID
	if instead != nil {
		stale = instead.UID
	}
	var out cache.Work
	var since int64
	// One statement, so that of two processes only one gets it: the row is always given back, changed or not.
	err := s.write.QueryRowContext(ctx, `INSERT INTO cache_flight (scope, key, uid, task, workflow_uid, since) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, key) DO UPDATE SET
			task = CASE WHEN uid IN (?, ?) THEN excluded.task ELSE task END,
			workflow_uid = CASE WHEN uid IN (?, ?) THEN excluded.workflow_uid ELSE workflow_uid END,
			since = CASE WHEN uid = ? THEN excluded.since ELSE since END,
			uid = CASE WHEN uid IN (?, ?) THEN excluded.uid ELSE uid END
		RETURNING scope, key, uid, task, workflow_uid, since`,
		w.Scope, w.Key, w.UID, w.Task, w.WorkflowUID, w.Since.UnixMilli(),
		w.UID, stale, w.UID, stale, stale, w.UID, stale,
	).Scan(&out.Scope, &out.Key, &out.UID, &out.Task, &out.WorkflowUID, &since)
	if err != nil {
		return cache.Work{}, fmt.Errorf("cache: begin work: %w", err)
	}
	out.Since = time.UnixMilli(since)
	return out, nil
}

// End ends the work of a review.
func (s *Entries) End(ctx context.Context, scope, key, uid string) error {
	if _, err := s.write.ExecContext(ctx, `DELETE FROM cache_flight WHERE scope = ? AND key = ? AND uid = ?`, scope, key, uid); err != nil {
		return fmt.Errorf("cache: end work: %w", err)
	}
	return nil
}
