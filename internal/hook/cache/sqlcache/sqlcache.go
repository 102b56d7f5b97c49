// Package sqlcache keeps cache entries in SQLite.
package sqlcache

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/hook/cache"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the tables, as goose migrations at the root.
func Migrations() fs.FS {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return migrations // cannot be: the folder is embedded above
	}
	return files
}

// MigrationTable is the name for the table of schema versions.
const MigrationTable = "cache_schema"

// Entries implements cache.Entries, and lists and clears for people.
type Entries struct{ write, read *sql.DB }

// New works on an open database whose tables are up to date; read may be the same handle as write.
func New(write, read *sql.DB) *Entries { return &Entries{write: write, read: read} }

const columns = `scope, key, outputs, created, workflow, workflow_uid, task, hits, last_hit`

// Get gives an entry; nil where there is none.
func (s *Entries) Get(ctx context.Context, scope, key string) (*cache.Entry, error) {
	e, err := scan(s.read.QueryRowContext(ctx, `SELECT `+columns+` FROM cache_entry WHERE scope = ? AND key = ?`, scope, key))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // no entry is no error
	}
	if err != nil {
		return nil, fmt.Errorf("cache: read an entry: %w", err)
	}
	return e, nil
}

// Put writes an entry in place of an earlier one.
func (s *Entries) Put(ctx context.Context, e cache.Entry) error {
	outputs, err := json.Marshal(e.Outputs)
	if err != nil {
		return fmt.Errorf("cache: write an entry: %w", err)
	}
	_, err = s.write.ExecContext(ctx, `INSERT OR REPLACE INTO cache_entry (`+columns+`) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0)`,
		e.Scope, e.Key, string(outputs), e.Created.UnixMilli(), e.Workflow, e.WorkflowUID, e.Task)
	if err != nil {
		return fmt.Errorf("cache: write an entry: %w", err)
	}
	return nil
}

// Hit notes that an entry was used.
func (s *Entries) Hit(ctx context.Context, scope, key string, at time.Time) error {
	_, err := s.write.ExecContext(ctx, `UPDATE cache_entry SET hits = hits + 1, last_hit = ? WHERE scope = ? AND key = ?`, at.UnixMilli(), scope, key)
	if err != nil {
		return fmt.Errorf("cache: note a hit: %w", err)
	}
	return nil
}

// Delete takes an entry away.
func (s *Entries) Delete(ctx context.Context, scope, key string) error {
	if _, err := s.write.ExecContext(ctx, `DELETE FROM cache_entry WHERE scope = ? AND key = ?`, scope, key); err != nil {
		return fmt.Errorf("cache: delete an entry: %w", err)
	}
	return nil
}

// Filter chooses entries; its zero value is all.
type Filter struct {
	// Key is an entry's key or the beginning of it.
	Key string
	// Before chooses those that were made earlier.
	Before time.Time
	// WorkflowUID chooses those that a workflow made.
	WorkflowUID string
	// Limit bounds a list; 0 is 1000.
	Limit int
}

func (f Filter) where() (string, []any) {
	where, args := "1 = 1", []any{}
	if f.Key != "" {
		where += " AND substr(key, 1, length(?)) = ?"
		args = append(args, f.Key, f.Key)
	}
	if !f.Before.IsZero() {
		where += " AND created < ?"
		args = append(args, f.Before.UnixMilli())
	}
	if f.WorkflowUID != "" {
		where += " AND workflow_uid = ?"
		args = append(args, f.WorkflowUID)
	}
	return where, args
}

// List gives entries, newest first.
func (s *Entries) List(ctx context.Context, f Filter) ([]cache.Entry, error) {
	where, args := f.where()
	limit := f.Limit
	if limit <= 0 {
		limit = 1000
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+columns+` FROM cache_entry WHERE `+where+` ORDER BY created DESC, key LIMIT ?`, append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("cache: list entries: %w", err)
	}
	defer rows.Close()
	var list []cache.Entry
	for rows.Next() {
		e, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("cache: list entries: %w", err)
		}
		list = append(list, *e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("cache: list entries: %w", err)
	}
	return list, nil
}

// Clear deletes entries and says how many there were.
func (s *Entries) Clear(ctx context.Context, f Filter) (int64, error) {
	where, args := f.where()
	result, err := s.write.ExecContext(ctx, `DELETE FROM cache_entry WHERE `+where, args...)
	if err != nil {
		return 0, fmt.Errorf("cache: clear entries: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("cache: clear entries: %w", err)
	}
	return n, nil
}

func scan(row interface{ Scan(into ...any) error }) (*cache.Entry, error) {
	var (
		e                cache.Entry
		outputs          string
		created, lastHit int64
	)
	if err := row.Scan(&e.Scope, &e.Key, &outputs, &created, &e.Workflow, &e.WorkflowUID, &e.Task, &e.Hits, &lastHit); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(strings.NewReader(outputs))
	dec.UseNumber() // whole numbers stay exact
	if err := dec.Decode(&e.Outputs); err != nil {
		return nil, fmt.Errorf("outputs: %w", err)
	}
	normal(e.Outputs.Parameters)
	for _, list := range e.Outputs.Artifacts {
		for _, a := range list {
			normal(a.Metadata)
		}
	}
	e.Created = time.UnixMilli(created).UTC()
	if lastHit > 0 {
		e.LastHit = time.UnixMilli(lastHit).UTC()
	}
	return &e, nil
}

func normal(values map[string]any) {
	for name, value := range values {
		values[name] = v1alpha1.NormalizeValue(value)
	}
}
