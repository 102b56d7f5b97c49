package builtin

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// What is in the journal is not kept beside it, in memory or in a file: a controller runs for months.
func TestSettledAttemptsLeaveNothing(t *testing.T) {
	server := echo(t)
	b, sink := start(t, Config{Home: t.TempDir()}, request(program.Request{URL: server.URL}))
	if r := sink.finished(t); r.Phase != engine.SucceededPhase {
		t.Fatalf("result: %+v", r)
	}
	id := key{run.UID, "run.t"}
	if _, err := os.Stat(b.record(id)); err != nil {
		t.Fatal(err)
	}
	b.Settled(run, id.path)
	b.Settled(run, id.path)
	if _, err := os.Stat(b.record(id)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the record: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.tasks) > 0 {
		t.Errorf("%d tasks are kept", len(b.tasks))
	}
}
