package sqlite_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
	"github.com/sluice-ml/sluice/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "a b?#%20", "sluice.db")) })
}

func TestFileIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	s := open(t, path)
	defer func() { _ = s.Close() }()
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != fs.FileMode(0o600) {
			t.Errorf("%s has mode %v, want 0600", name, info.Mode())
		}
	}
}

func TestManyOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice.db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := sqlite.Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if _, _, err := s.List(t.Context(), store.Filter{}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	db, err := sqlite.OpenDB(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	one := &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE x (a TEXT);\n")}
	two := &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE y (a TEXT);\n")}
	if err := db.Migrate(t.Context(), "v", fstest.MapFS{"00001_x.sql": one, "00002_y.sql": two}); err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context(), "v", fstest.MapFS{"00001_x.sql": one}); err == nil {
		t.Error("a database of a newer version was accepted")
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, size := range map[string]int{"one": 1, "batch of 64": 64} {
		b.Run(name, func(b *testing.B) {
			s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "sluice.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if err := s.Create(b.Context(), store.Run{UID: "u", Created: time.Unix(1, 0)}); err != nil {
				b.Fatal(err)
			}
			batch := make([]engine.Event, size)
			for i := range batch {
				batch[i] = engine.Event{Time: time.Unix(1, 0), Finished: &engine.Finished{Node: 1, Result: engine.Result{Phase: engine.SucceededPhase}}}
			}
			n := 0
			for b.Loop() {
				if err := s.Append(b.Context(), "u", n, batch); err != nil {
					b.Fatal(err)
				}
				n += size
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
