package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// Store implements [store.Store] on a [DB].
type Store struct{ db *DB }

var _ store.Store = (*Store)(nil)

// Open opens or creates the file at path and brings its tables up to date.
func Open(ctx context.Context, path string) (*Store, error) {
	db, err := OpenDB(ctx, path)
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err == nil {
		err = db.Migrate(ctx, "schema_versions", files)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), db.Close())
	}
	return &Store{db}, nil
}

// DB is the file that the store is in; other parts of the program keep tables of their own there.
func (s *Store) DB() *DB { return s.db }

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, r store.Run, events ...engine.Event) error {
	labels, err1 := json.Marshal(nonNil(r.Labels))
	summary, err2 := json.Marshal(r.Summary)
	submission, err3 := json.Marshal(r.Submission)
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("create run %s: %w", r.Name, err)
	}
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `INSERT INTO runs
			(uid, name, namespace, language, phase, message, created, started, finished, labels, file, summary, submission)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			r.UID, r.Name, r.Namespace, r.Language, r.Phase, r.Message, nanos(r.Created), nanos(r.Started), nanos(r.Finished),
			string(labels), r.File, string(summary), submission)
		if err != nil {
			return err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return err
		}
		return insertEvents(ctx, tx, id, 0, events)
	})
	if err != nil {
		return fmt.Errorf("create run %s: %w", r.Name, err)
	}
	return nil
}

const runColumns = "id, uid, name, namespace, language, phase, message, created, started, finished, labels, file, summary"

type scanner interface{ Scan(...any) error }

func scanRun(row scanner, more ...any) (store.Run, int64, error) {
	var r store.Run
	var id, created, started, finished int64
	var labels, summary string
	to := append([]any{
		&id, &r.UID, &r.Name, &r.Namespace, &r.Language, &r.Phase, &r.Message, &created, &started, &finished,
		&labels, &r.File, &summary,
	}, more...)
	if err := row.Scan(to...); err != nil {
		return store.Run{}, 0, err
	}
	r.Created, r.Started, r.Finished = fromNanos(created), fromNanos(started), fromNanos(finished)
	err := errors.Join(json.Unmarshal([]byte(labels), &r.Labels), json.Unmarshal([]byte(summary), &r.Summary))
	return r, id, err
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, uid string) (store.Run, error) {
	var submission []byte
	row := s.db.Read.QueryRowContext(ctx, "SELECT "+runColumns+", submission FROM runs WHERE uid = ?", uid)
	r, _, err := scanRun(row, &submission)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Run{}, fmt.Errorf("%w: %s", store.ErrNotFound, uid)
	}
	if err == nil {
		err = json.Unmarshal(submission, &r.Submission)
	}
	if err != nil {
		return store.Run{}, fmt.Errorf("read run %s: %w", uid, err)
	}
	return r, nil
}

// Find implements [store.Store].
func (s *Store) Find(ctx context.Context, ref string) (string, error) {
	var uid string
	var err error
	if ref == "@latest" {
		err = s.db.Read.QueryRowContext(ctx, "SELECT uid FROM runs ORDER BY created DESC, id DESC LIMIT 1").Scan(&uid)
	} else {
		err = s.db.Read.QueryRowContext(ctx,
			"SELECT uid FROM runs WHERE name = ?1 OR uid = ?1 ORDER BY uid = ?1 DESC, id DESC LIMIT 1", ref).Scan(&uid)
		if errors.Is(err, sql.ErrNoRows) && len(ref) >= 4 {
			return s.findPrefix(ctx, ref)
		}
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("%w: %s", store.ErrNotFound, ref)
	case err != nil:
		return "", fmt.Errorf("find run %s: %w", ref, err)
	}
	return uid, nil
}

func (s *Store) findPrefix(ctx context.Context, prefix string) (string, error) {
	var uid string
	var n int
	err := s.db.Read.QueryRowContext(ctx,
		"SELECT COALESCE(MIN(uid), ''), COUNT(*) FROM runs WHERE substr(uid, 1, ?) = ?", len(prefix), prefix).Scan(&uid, &n)
	switch {
	case err != nil:
		return "", fmt.Errorf("find run %s: %w", prefix, err)
	case n == 0:
		return "", fmt.Errorf("%w: %s", store.ErrNotFound, prefix)
	case n > 1:
		return "", fmt.Errorf("%w: %d UIDs begin with %s; give more of it", store.ErrAmbiguous, n, prefix)
	}
	return uid, nil
}

// SetStatus implements [store.Store].
func (s *Store) SetStatus(ctx context.Context, uid string, st store.Status) error {
	summary, err := json.Marshal(st.Summary)
	if err != nil {
		return fmt.Errorf("set status of run %s: %w", uid, err)
	}
	return s.one(ctx, "set status of run", uid,
		"UPDATE runs SET phase = ?, message = ?, started = ?, finished = ?, summary = ? WHERE uid = ?",
		st.Phase, st.Message, nanos(st.Started), nanos(st.Finished), string(summary), uid)
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, uid string) error {
	return s.one(ctx, "delete run", uid, "DELETE FROM runs WHERE uid = ?", uid)
}

// one runs a statement that must change exactly one run.
func (s *Store) one(ctx context.Context, what, uid, query string, args ...any) error {
	res, err := s.db.Write.ExecContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, uid, err)
	}
	if n, err := res.RowsAffected(); err == nil && n == 0 {
		return fmt.Errorf("%w: %s", store.ErrNotFound, uid)
	}
	return nil
}

func (s *Store) inTx(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) && !strings.Contains(e.Error(), "no transaction") {
			return errors.Join(err, e)
		}
		return err
	}
	return tx.Commit()
}

func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
