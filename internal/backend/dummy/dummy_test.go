package dummy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/backendtest"
	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// world plays the behaviours of the suite.
type world struct {
	*dummy.World
	mu    sync.Mutex
	acts  map[string]dummy.Act
	until map[string]chan struct{}
}

func newWorld(*testing.T) backendtest.World {
	w := &world{acts: map[string]dummy.Act{}, until: map[string]chan struct{}{}}
	w.World = dummy.NewWorld(func(_ engine.Run, cmd engine.StartTask) dummy.Act {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.acts[cmd.Path]
	})
	return w
}

func (w *world) Open(_ *testing.T, sink backendtest.Sink) backend.Backend { return w.World.Open(sink) }

func (w *world) Runs(_ *testing.T, path string) int { return w.World.Runs("uid-1", path) }

func (w *world) Began(*testing.T, string) {}

func (w *world) Release(_ *testing.T, path string) { close(w.until[path]) }

func (w *world) Task(t *testing.T, path string, b backendtest.Behaviour) engine.StartTask {
	t.Helper()
	cmd := engine.StartTask{Template: &program.Template{}, Body: program.Body{Kind: program.Containers, Result: true}}
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	backendtest.Declare(&cmd, b, in, in)
	act := dummy.Act{Deaf: b.Deaf, Result: result(t, cmd, b)}
	if b.Wait {
		until := make(chan struct{})
		w.until[path], act.Until = until, until
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[path] = act
	return cmd
}

// result is what the attempt would end with.
func result(t *testing.T, cmd engine.StartTask, b backendtest.Behaviour) engine.Result {
	t.Helper()
	text := strings.TrimSuffix(b.Print, "\n")
	r := engine.Result{Phase: engine.SucceededPhase, ExitCode: &b.Exit, Outputs: engine.Outputs{Result: &text, Parameters: map[string]any{}}}
	if b.Exit != 0 {
		r.Phase, r.Message = engine.FailedPhase, fmt.Sprintf("main: Error (exit code %d)", b.Exit)
	}
	missing := func(name string) {
		if r.Phase == engine.SucceededPhase {
			r.Phase, r.Message = engine.ErrorPhase, name+": no such file"
		}
	}
	for _, name := range b.Parameters {
		value, there := b.Files[name]
		if !there {
			value, there = b.Defaults[name]
		}
		if !there {
			missing(name)
			continue
		}
		r.Outputs.Parameters[name] = strings.TrimSuffix(value, "\n")
	}
	for _, name := range b.Artifacts {
		data, there := b.Files[name]
		if !there {
			missing(name)
			continue
		}
		a := cmd.OutputArtifacts[name]
		if err := os.WriteFile(a.URI, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(data))
		a.Size, a.Digest = int64(len(data)), "sha256:"+hex.EncodeToString(sum[:])
		r.Outputs.Artifacts = map[string][]program.Artifact{name: {a}}
	}
	return r
}

func TestBackend(t *testing.T) { backendtest.Run(t, newWorld) }

// events keeps what is told.
type events chan engine.Event

func (e events) Tell(_ string, event engine.Event) { e <- event }

func TestFailures(t *testing.T) {
	run := engine.Run{UID: "u"}
	cmd := engine.StartTask{Node: 1, Path: "run.t"}
	for name, test := range map[string]struct {
		act                   dummy.Act
		refused               bool
		running, ended, phase int
	}{
		"refuses":           {act: dummy.Act{Refuse: errors.New("no")}, refused: true},
		"says nothing":      {act: dummy.Act{Silent: true}},
		"ends unseen":       {act: dummy.Act{Unseen: true}, ended: 1},
		"ends twice":        {act: dummy.Act{Twice: true}, running: 1, ended: 2},
		"is lost":           {act: dummy.Act{Result: dummy.Lost(false)}, running: 1, ended: 1},
		"is out of memory":  {act: dummy.Act{Result: dummy.Killed()}, running: 1, ended: 1},
		"hangs":             {act: dummy.Act{Hang: true}, running: 1},
		"succeeds at once":  {running: 1, ended: 1},
		"fails with a code": {act: dummy.Act{Result: dummy.Failed(2, "x")}, running: 1, ended: 1},
	} {
		t.Run(name, func(t *testing.T) {
			sink := make(events, 8)
			w := dummy.NewWorld(func(engine.Run, engine.StartTask) dummy.Act { return test.act })
			b := w.Open(sink)
			if err := b.Start(t.Context(), run, cmd); (err != nil) != test.refused {
				t.Fatal(err)
			}
			var running, ended int
			for running+ended < test.running+test.ended {
				if e := <-sink; e.Running != nil {
					running++
				} else {
					ended++
					if got := e.Finished.Result; got.Transient != test.act.Result.Transient {
						t.Errorf("%+v", got)
					}
				}
			}
			if err := b.Stop(t.Context(), run, engine.StopTask{Node: 1, Path: "run.t"}); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if running != test.running || ended != test.ended {
				t.Errorf("running %d, ended %d", running, ended)
			}
		})
	}
}
