// Package sqlite keeps runs in one SQLite file, which several processes may share.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/pressly/goose/v3"
	driver "modernc.org/sqlite" // the driver "sqlite"; nothing else in the project imports it
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/sluice-ml/sluice/internal/store/filelock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// ErrNewer says that the file was written by a newer version of the program.
var ErrNewer = errors.New("the database was written by a newer version of sluice")

// Damaged says whether an error of this package means that the file is no database, or no longer a sound one.
func Damaged(err error) bool {
	e, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return false
	}
	primary := e.Code() & 0xff
	return primary == sqlite3.SQLITE_NOTADB || primary == sqlite3.SQLITE_CORRUPT
}

// DB is an open SQLite file: one connection that writes, so that writers of this process queue in memory instead of
// polling the file's lock, and several that read.
type DB struct {
	Write, Read *sql.DB
	path        string
}

// OpenDB opens or creates the file, readable by its owner only, in WAL mode with synchronous NORMAL: a commit survives
// the end of the process at any moment; a power cut may lose the last commits, never the file.
func OpenDB(ctx context.Context, path string) (*DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	// SQLite would create the file with the process's umask; it holds what the user submitted.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	write, err := sql.Open("sqlite", dsn(path, "immediate"))
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := connect(ctx, write, path); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), write.Close())
	}
	read, err := sql.Open("sqlite", dsn(path, "deferred")+"&_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", path, err), write.Close())
	}
	read.SetMaxOpenConns(4)
	return &DB{Write: write, Read: read, path: path}, nil
}

// connect makes the first connection. Processes that start at once take turns: SQLite does not wait when a new file
// changes to WAL, it says at once that the file is locked.
func connect(ctx context.Context, db *sql.DB, path string) error {
	turn, err := filelock.Wait(path+".migrate", "another process to open the database")
	if err != nil {
		return err
	}
	return errors.Join(db.PingContext(ctx), turn.Release())
}

func dsn(path, lock string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	return u.String() + "?_txlock=" + lock +
		"&_pragma=busy_timeout(15000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)"
}

// Close closes all connections.
func (d *DB) Close() error { return errors.Join(d.Read.Close(), d.Write.Close()) }

// Migrate brings a set of tables up to date. Each set has its own table of versions and its migrations in files named
// NNNNN_what.sql at the root of files. Processes that start at once wait for each other.
func (d *DB) Migrate(ctx context.Context, versions string, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil || len(names) == 0 {
		return fmt.Errorf("migrate %s: no migration files", versions)
	}
	// The usual case costs one query: goose is only asked where something is missing.
	var have int
	row := d.Write.QueryRowContext(ctx, "SELECT COALESCE(MAX(version_id), 0) FROM "+versions)
	if err := row.Scan(&have); err == nil && have == len(names) {
		return nil
	}
	lock, err := filelock.Wait(d.path+".migrate", "a migration")
	if err != nil {
		return fmt.Errorf("migrate %s: %w", versions, err)
	}
	defer func() { _ = lock.Release() }()
	p, err := goose.NewProvider(goose.DialectSQLite3, d.Write, files,
		goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return fmt.Errorf("migrate %s: %w", versions, err)
	}
	if have > len(names) {
		return fmt.Errorf("migrate %s: %w (schema %d, this one knows %d)", versions, ErrNewer, have, len(names))
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s: %w", versions, err)
	}
	return nil
}
