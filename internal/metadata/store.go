package metadata

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"
	"time"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations are the store's tables for SQLite, as goose migrations at the root.
func Migrations() fs.FS {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return migrations // cannot be: the folder is embedded above
	}
	return files
}

// MigrationTable is the name for the table of schema versions.
const MigrationTable = "md_schema"

// ErrNotFound says that there is nothing of that name.
var ErrNotFound = errors.New("not found")

// Store keeps metadata in SQLite. It is safe for concurrent use.
type Store struct {
	write, read *sql.DB

	mu    sync.Mutex
	types map[typeKey]int64 // ids of types never change
	ctxs  map[typeKey]int64 // nor do those of contexts; bounded
}

type typeKey struct {
	kind typeKind
	name string
}

type typeKind int

const (
	executionKind typeKind = iota
	artifactKind
	contextKind
)

// maxContexts bounds how many ids of contexts are remembered.
const maxContexts = 4096

// NewStore makes a store over an open database whose tables are up to date. Transactions on write must begin
// immediate; read may be the same handle.
func NewStore(write, read *sql.DB) *Store {
	return &Store{write: write, read: read, types: map[typeKey]int64{}, ctxs: map[typeKey]int64{}}
}

// PutExecution writes an execution with its artifacts, events and contexts, all or nothing. To write the same record
// again changes nothing but times.
func (s *Store) PutExecution(ctx context.Context, record Record, now time.Time) (Recorded, error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return Recorded{}, fmt.Errorf("metadata: %w", err)
	}
	w := &writer{ctx: ctx, tx: tx, store: s, now: now.UnixMilli()}
	recorded, err := w.put(record)
	if err != nil {
		return Recorded{}, errors.Join(fmt.Errorf("metadata: put execution %s: %w", record.Execution.Name, err), tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return Recorded{}, fmt.Errorf("metadata: put execution %s: %w", record.Execution.Name, err)
	}
	s.remember(w)
	return recorded, nil
}

// remember keeps the ids that a committed writer has made or found.
func (s *Store) remember(w *writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.Copy(s.types, w.types)
	if len(s.ctxs)+len(w.contexts) > maxContexts {
		clear(s.ctxs)
	}
	maps.Copy(s.ctxs, w.contexts)
}

// known gives a remembered id.
func (s *Store) known(key typeKey) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.types[key]
	return id, ok
}

func (s *Store) knownContext(key typeKey) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.ctxs[key]
	return id, ok
}
