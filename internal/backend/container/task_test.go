package container

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/backend/backendtest"
	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// events collects what the backend tells.
type events chan engine.Event

func (e events) Tell(_ string, event engine.Event) { e <- event }

func (e events) finished(t *testing.T) engine.Result {
	t.Helper()
	timeout := time.After(60 * time.Second)
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

func testTask(t *testing.T, w world) {
	sink := make(events, 16)
	b := w.Open(t, sink)
	defer b.Close()
	for name, test := range map[string]struct {
		change func(*engine.StartTask)
		phase  engine.Phase
		result string
	}{
		"the image's entrypoint": {func(c *engine.StartTask) {
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = nil, []string{"x"}
		}, engine.SucceededPhase, "entry x"},
		"the image's environment and folder": {func(c *engine.StartTask) {
			c.Body.Containers[0].Args = []string{"echo $FROM_IMAGE $A $SLUICE_TASK; pwd"}
			c.Body.Containers[0].Env = []program.EnvVar{{Name: "A", Value: "a"}}
		}, engine.SucceededPhase, "yes a run.x\n/work"},
		"a script": {func(c *engine.StartTask) {
			c.Body.Kind, c.Body.Script = program.Script, "echo from a script"
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = []string{"sh"}, nil
		}, engine.SucceededPhase, "from a script"},
		"an input": {func(c *engine.StartTask) {
			c.Body.Containers[0].Args = []string{"cat /deep/in"}
			c.Inputs.Artifacts = map[string][]program.Artifact{"a": {{Store: program.JSON(`{"raw":{"data":"raw"}}`)}}}
			c.ArtifactPaths = map[string][]string{"a": {"/deep/in"}}
		}, engine.SucceededPhase, "raw"},
		"an image that is not there": {func(c *engine.StartTask) {
			c.Body.Containers[0].Image = "localhost/none-such:1"
			c.Body.Containers[0].Raw = program.JSON(`{"imagePullPolicy":"Never"}`)
		}, engine.ErrorPhase, "image localhost/none-such:1 is not on this machine"},
		"an image without a name": {func(c *engine.StartTask) {
			c.Body.Containers[0].Image = ""
		}, engine.ErrorPhase, "container main: it names no image"},
		"another user, who has the inputs, the folders of outputs and a home": {func(c *engine.StartTask) {
			c.Body.Containers[0].Raw = program.JSON(`{"securityContext":{"runAsUser":1000}}`)
			c.Body.Containers[0].Args = []string{"id -u; id -g; echo $HOME; cat /deep/in; echo more >> /deep/in; echo out > /made/for/it/out"}
			c.Inputs.Artifacts = map[string][]program.Artifact{"a": {{Store: program.JSON(`{"raw":{"data":"raw\n"}}`)}}}
			c.ArtifactPaths = map[string][]string{"a": {"/deep/in"}}
			c.Outputs.Parameters = []program.Output{{Name: "p", Path: "/made/for/it/out", Type: program.String}}
		}, engine.SucceededPhase, "1000\n0\n/\nraw"},
		"a user by name": {func(c *engine.StartTask) {
			c.Body.Pod = program.JSON(`{"securityContext":{"runAsUser":7}}`)
			c.Body.Containers[0].Args = []string{"id -u; id -g; echo $HOME"}
		}, engine.SucceededPhase, "7\n70\n/home/seven"},
		"a program that is not there": {func(c *engine.StartTask) {
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = []string{"no-such-program"}, nil
		}, engine.FailedPhase, "exit code 64"},
		"images that differ": {func(c *engine.StartTask) {
			c.Body.Containers = append(c.Body.Containers, program.Container{
				Name: "b", Image: "localhost/none-such:1", Command: []string{"true"}, Raw: program.JSON(`{"imagePullPolicy":"Never"}`),
			})
		}, engine.ErrorPhase, "container b: image localhost/none-such:1"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := w.shell("run.x", "")
			test.change(&cmd)
			run := engine.Run{UID: strings.ReplaceAll(name, " ", "-")}
			if err := b.Start(t.Context(), run, cmd); err != nil {
				t.Fatal(err)
			}
			r := sink.finished(t)
			if r.Phase != test.phase {
				t.Fatalf("%+v", r)
			}
			if test.phase == engine.SucceededPhase {
				if diff := cmp.Diff(test.result, *r.Outputs.Result); diff != "" {
					t.Error(diff)
				}
				return
			}
			if !strings.Contains(r.Message, test.result) {
				t.Errorf("message %q lacks %q", r.Message, test.result)
			}
		})
	}
}

// Whoever is killed for want of memory is told so.
func testMemory(t *testing.T, w world) {
	try := exec.Command("podman", append(append([]string{"run", "--rm", "--memory", "30m", "--network", "host", "--log-driver", "none"}, machineOptions("podman")...), w.image)...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("podman cannot limit memory here: %v: %s", err, out)
	}
	sink := make(events, 16)
	b := w.Open(t, sink)
	defer b.Close()
	cmd := w.shell("run.x", `x=$(cat /dev/zero | tr '\0' x | head -c 100000000); echo no`)
	cmd.Body.Containers[0].MemoryLimit = "30Mi"
	if err := b.Start(t.Context(), engine.Run{UID: "memory"}, cmd); err != nil {
		t.Fatal(err)
	}
	if r := sink.finished(t); r.Phase != engine.FailedPhase || !strings.Contains(r.Message, "OOMKilled") {
		t.Errorf("%+v", r)
	}
}

// A container does not end with the podman that started it: the task goes on, whether this program looks on or not.
func testKilled(t *testing.T, w world) {
	sink := make(events, 16)
	run := engine.Run{UID: "killed"}
	for name, open := range map[string]bool{"while it is followed": true, "while nobody looks": false} {
		t.Run(name, func(t *testing.T) {
			b := w.Open(t, sink)
			defer func() { _ = b.Close() }()
			path := "run." + strings.ReplaceAll(name, " ", "-")
			cmd := w.Task(t, path, backendtest.Behaviour{Wait: true, Print: "x"})
			if err := b.Start(t.Context(), run, cmd); err != nil {
				t.Fatal(err)
			}
			w.Began(t, path)
			state, err := os.ReadFile(filepath.Join(process.TaskDir(w.home, run.UID, path), spec.StateFile))
			if err != nil {
				t.Fatal(err)
			}
			if !open {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(spec.ParseState(string(state)).Executor.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !open {
				b = w.Open(t, sink)
				if err := b.Start(t.Context(), run, cmd); err != nil {
					t.Fatal(err)
				}
			}
			w.Release(t, path)
			if r := sink.finished(t); r.Phase != engine.SucceededPhase || *r.Outputs.Result != "x" {
				t.Errorf("%+v", r)
			}
			if runs := w.Runs(t, path); runs != 1 {
				t.Errorf("it ran %d times", runs)
			}
		})
	}
}
