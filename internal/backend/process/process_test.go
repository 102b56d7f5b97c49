package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
	"github.com/sluice-ml/sluice/internal/program"
)

// The test program is its own executor, as sluice can be.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "executor" {
		if err := executor.Run(os.Args[2], kfpoutput.ParseExecutorOutput); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
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

func TestPlain(t *testing.T) {
	b, sink := open(t, nil)
	store := filepath.Join(t.TempDir(), "store", "out.tgz")
	out := filepath.Join(t.TempDir(), "out")
	cmd := shell("run.a", fmt.Sprintf("cat %[1]s.in; echo hello; mkdir %[1]s; echo data > %[1]s/f; echo 7 > %[1]s.p", out))
	cmd.Inputs.Artifacts = map[string][]program.Artifact{"in": {{Name: "in", Store: program.JSON(`{"raw":{"data":"raw bytes\n"}}`)}}}
	cmd.ArtifactPaths = map[string][]string{"in": {out + ".in"}}
	cmd.Outputs.Parameters = []program.Output{{Name: "p", Path: out + ".p"}}
	cmd.Outputs.Artifacts = []program.OutputArtifact{{Name: "d", Path: out, Archive: "tar"}}
	cmd.OutputArtifacts = map[string]program.Artifact{"d": {Store: program.JSON(`{"folder":{"path":"` + store + `"}}`), URI: store, Archive: "tar"}}
	run := engine.Run{Name: "run", UID: "uid"}
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	r := sink.finished(t)
	t.Logf("%+v", r)
	if r.Phase != engine.SucceededPhase || r.Outputs.Parameters["p"] != "7" || *r.Outputs.Result != "raw bytes\nhello" {
		t.Fatalf("%+v", r)
	}
	if !strings.HasPrefix(r.Outputs.Artifacts["d"][0].Digest, "sha256:") {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Stat(store); err != nil {
		t.Fatal(err)
	}
}

func TestSandbox(t *testing.T) {
	b, sink := open(t, func(c *process.Config) { c.Sandbox = process.On })
	cmd := shell("run.a", "id -u; echo x > /tmp/sluice-sandbox-test; ls /proc | grep -c '^[0-9]'; cat /tmp/sluice-sandbox-test; pwd; touch /usr/xx; mount | head -5; echo $HOME; echo y > $HOME/f")
	cmd.Outputs.Parameters = []program.Output{{Name: "p", Path: "/tmp/sluice-sandbox-test"}}
	if err := b.Start(t.Context(), engine.Run{Name: "run", UID: "uid"}, cmd); err != nil {
		t.Fatal(err)
	}
	r := sink.finished(t)
	t.Logf("%+v", r)
	if r.Outputs.Result != nil {
		t.Log(*r.Outputs.Result)
	}
	if _, err := os.Stat("/tmp/sluice-sandbox-test"); err == nil {
		t.Fatal("leaked")
	}
}
