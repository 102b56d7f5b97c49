package process_test

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// The test program is its own executor, as sluice can be.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "executor" {
		os.Exit(executor.Main(os.Args[2:], os.Stderr, executor.Host{Environ: os.Environ(), Parse: kfpoutput.ParseExecutorOutput}))
	}
	os.Exit(m.Run())
}

// events collects what a backend tells.
type events chan engine.Event

func (e events) Tell(_ string, event engine.Event) { e <- event }

// finished waits for the end of an attempt.
func (e events) finished(t *testing.T) engine.Result {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case event := <-e:
			if event.Finished != nil {
				return event.Finished.Result
			}
		case <-timeout:
			t.Fatal("no Finished event")
		}
	}
}

func shell(path, script string) engine.StartTask {
	return engine.StartTask{
		Node: 1, Path: path, Pod: "pod",
		Template: &program.Template{Key: "local/main", Name: "main"},
		Body: program.Body{
			Kind: program.Containers, Result: true,
			Containers: []program.Container{{Name: "main", Image: "busybox", Command: []string{"sh", "-c"}, Args: []string{script}}},
		},
	}
}

func open(t *testing.T, change func(*process.Config)) (*process.Backend, events) {
	t.Helper()
	cfg := process.Config{Home: t.TempDir(), Executor: []string{os.Args[0], "executor"}, Sandbox: process.Off, Env: os.Environ()}
	if change != nil {
		change(&cfg)
	}
	sink := make(events, 64)
	b, err := process.New(cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, sink
}

// logTo writes a backend's log to a text.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// killExecutor kills the executor of an attempt as soon as it has told its pid.
func killExecutor(t *testing.T, home, path string) {
	t.Helper()
	file := filepath.Join(process.TaskDir(home, "uid", path), spec.StateFile)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if p := spec.ParseState(string(data)).Executor; p.PID > 0 {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no pid file")
}
