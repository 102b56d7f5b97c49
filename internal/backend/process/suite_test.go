package process_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/backendtest"
	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// world is a home folder, and a folder that tasks share with the test: a sandbox would hide what they write elsewhere.
type world struct {
	home, shared string
	mode         process.Mode
}

func (w world) Open(t *testing.T, sink backendtest.Sink) backend.Backend {
	t.Helper()
	b, err := process.New(process.Config{
		Home: w.home, Executor: []string{os.Args[0], "executor"}, Sandbox: w.mode, Env: os.Environ(), Claims: map[string]string{"shared": w.shared},
	}, sink)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// file is a name in the shared folder for an attempt.
func (w world) file(path, what string) string {
	return filepath.Join(w.shared, strings.NewReplacer("/", "_", "(", "_", ")", "_", ":", "_").Replace(path)+"."+what)
}

func (w world) Runs(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(w.file(path, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

// Began reads what the attempt writes before it waits.
func (w world) Began(t *testing.T, path string) {
	t.Helper()
	pipe, err := os.Open(w.file(path, "began"))
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := bufio.NewReader(pipe).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

// Release writes to the pipe that the attempt reads from; opening it waits for the reader.
func (w world) Release(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(w.file(path, "pipe"), []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w world) Task(t *testing.T, path string, b backendtest.Behaviour) engine.StartTask {
	t.Helper()
	var script strings.Builder
	if b.Deaf {
		fmt.Fprintln(&script, "trap '' TERM")
	}
	fmt.Fprintf(&script, "echo run >> %s\nprintf %%s '%s'\n", w.file(path, "runs"), b.Print)
	out := t.TempDir()
	for name, content := range b.Files {
		fmt.Fprintf(&script, "printf %%s '%s' > %s\n", content, filepath.Join(out, name))
	}
	if b.Wait {
		pipe, began := w.file(path, "pipe"), w.file(path, "began")
		if err := errors.Join(syscall.Mkfifo(pipe, 0o600), syscall.Mkfifo(began, 0o600)); err != nil {
			t.Fatal(err)
		}
		// Both ends open, so that it does not matter when and whether the test reads.
		fmt.Fprintf(&script, "exec 3<>%s\necho began >&3\nread word < %s\n", began, pipe)
	}
	fmt.Fprintf(&script, "exit %d\n", b.Exit)
	cmd := shell(path, script.String())
	cmd.Body.Volumes = []program.Volume{{Name: "shared", Kind: "claim", Source: "shared"}}
	cmd.Body.Containers[0].Mounts = []program.Mount{{Volume: "shared", Path: w.shared}}
	store := t.TempDir()
	backendtest.Declare(&cmd, b, func(name string) string { return filepath.Join(out, name) }, func(name string) string { return filepath.Join(store, name) })
	return cmd
}

func TestBackend(t *testing.T) {
	for _, mode := range []process.Mode{process.Off, process.On} {
		t.Run("sandbox "+string(mode), func(t *testing.T) {
			if mode == process.On {
				needSandbox(t)
			}
			backendtest.Run(t, func(t *testing.T) backendtest.World {
				return world{home: t.TempDir(), shared: t.TempDir(), mode: mode}
			})
		})
	}
}

// needSandbox skips a test where the machine allows no sandbox.
func needSandbox(t *testing.T) {
	t.Helper()
	b, err := process.New(process.Config{
		Home: t.TempDir(), Executor: []string{os.Args[0], "executor"}, Sandbox: process.On,
	}, make(events, 1))
	if err != nil {
		t.Skip(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
