package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// Append implements [store.Store].
func (s *Store) Append(ctx context.Context, uid string, from int, events []engine.Event) error {
	if len(events) == 0 {
		return nil
	}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		var id, next int64
		err := tx.QueryRowContext(ctx, `SELECT id, COALESCE((SELECT MAX(position) + 1 FROM events WHERE run = runs.id), 0)
			FROM runs WHERE uid = ?`, uid).Scan(&id, &next)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: %s", store.ErrNotFound, uid)
		}
		if err != nil {
			return err
		}
		if next != int64(from) {
			return fmt.Errorf("%w: it has %d events, not %d", store.ErrConflict, next, from)
		}
		return insertEvents(ctx, tx, id, from, events)
	})
	if err != nil {
		return fmt.Errorf("append to the journal of run %s: %w", uid, err)
	}
	return nil
}

// rowsPerInsert bounds the parameters of one statement; larger ones gain nothing.
const rowsPerInsert = 64

func insertEvents(ctx context.Context, tx *sql.Tx, id int64, from int, events []engine.Event) error {
	args := make([]any, 0, 3*min(len(events), rowsPerInsert))
	for len(events) > 0 {
		n := min(len(events), rowsPerInsert)
		args = args[:0]
		for i, e := range events[:n] {
			b, err := json.Marshal(e)
			if err != nil {
				return err
			}
			args = append(args, id, from+i, string(b))
		}
		query := "INSERT INTO events (run, position, json) VALUES (?, ?, ?)" + strings.Repeat(", (?, ?, ?)", n-1)
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return err
		}
		events, from = events[n:], from+n
	}
	return nil
}

// Events implements [store.Store].
func (s *Store) Events(ctx context.Context, uid string) ([]engine.Event, error) {
	return s.EventsFrom(ctx, uid, 0)
}

// EventsFrom implements [store.Store].
func (s *Store) EventsFrom(ctx context.Context, uid string, from int) (_ []engine.Event, err error) {
	rows, err := s.db.Read.QueryContext(ctx, `SELECT position, json FROM events
		WHERE run = (SELECT id FROM runs WHERE uid = ?) AND position >= ? ORDER BY position`, uid, from)
	if err != nil {
		return nil, fmt.Errorf("read the journal of run %s: %w", uid, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var events []engine.Event
	var text sql.RawBytes
	for rows.Next() {
		var position int
		if err := rows.Scan(&position, &text); err != nil {
			return nil, fmt.Errorf("read the journal of run %s: %w", uid, err)
		}
		var e engine.Event
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("read event %d of run %s: %w", position, uid, err)
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the journal of run %s: %w", uid, err)
	}
	return events, nil
}

// SaveState implements [store.Store].
func (s *Store) SaveState(ctx context.Context, uid string, n int, state []byte) error {
	return s.one(ctx, "save the state of run", uid, `INSERT INTO snapshots (run, position, state)
		SELECT id, ?, ? FROM runs WHERE uid = ?
		ON CONFLICT (run) DO UPDATE SET position = excluded.position, state = excluded.state`, n, state, uid)
}

// LoadState implements [store.Store].
func (s *Store) LoadState(ctx context.Context, uid string) (n int, state []byte, err error) {
	err = s.db.Read.QueryRowContext(ctx,
		"SELECT position, state FROM snapshots WHERE run = (SELECT id FROM runs WHERE uid = ?)", uid).Scan(&n, &state)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, nil, fmt.Errorf("load the state of run %s: %w", uid, err)
	}
	return n, state, nil
}
