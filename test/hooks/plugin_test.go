//go:build whole

package hooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// document registers a hook for workflows with the label watched=yes.
func document(name, address, more string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: %s}
spec:
  points: [Pre, Post]
  scope: [Task]
  selector: {matchLabels: {watched: "yes"}}
  retry: {limit: 40, backoff: {duration: 100ms, factor: 1.2, cap: 500ms}}
  http: {url: %q}
%s`, name, address, more)
}

// run is a workflow that has ended, with what its tasks printed.
type run struct {
	out    sluicerun.Output
	name   string
	phase  string
	result map[string]string // standard output by task
	status map[string]string // phase by task
	note   map[string]string // message by task
}

// workflow runs a DAG of tasks with a hook document. The tasks are YAML text below "tasks:", the templates below
// "templates:".
func workflow(t *testing.T, p sluicerun.Program, hook, labels, body string) run {
	t.Helper()
	dir := t.TempDir()
	manifest := filepath.Join(dir, "workflow.yaml")
	hooks := filepath.Join(dir, "hooks.yaml")
	text := "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: w-, labels: {" + labels + "}}\nspec:\n  entrypoint: main\n  templates:\n" + body
	for path, text := range map[string]string{manifest: text, hooks: hook} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.Run(t.Context(), 2*time.Minute, "run", "-o", "json", "--no-progress", "--sandbox", "off", "--hooks", hooks, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if out.TimedOut || out.Panicked() {
		t.Fatalf("hangs or panics: %s", out.Last(30))
	}
	return read(t, out)
}

func read(t *testing.T, out sluicerun.Output) run {
	t.Helper()
	var w struct {
		Metadata struct{ Name string }
		Status   struct {
			Phase string
			Nodes map[string]struct {
				DisplayName, Phase, Message string
				Outputs                     struct{ Result *string }
			}
		}
	}
	if err := json.Unmarshal(out.Stdout, &w); err != nil {
		t.Fatalf("the output is no Workflow: %v\n%s\n%s", err, out.Stdout, out.Stderr)
	}
	r := run{out: out, name: w.Metadata.Name, phase: w.Status.Phase, result: map[string]string{}, status: map[string]string{}, note: map[string]string{}}
	for _, n := range w.Status.Nodes {
		r.status[n.DisplayName], r.note[n.DisplayName] = n.Phase, n.Message
		if n.Outputs.Result != nil {
			r.result[n.DisplayName] = *n.Outputs.Result
		}
	}
	return r
}

// succeeded fails the test when the workflow did not.
func (r run) succeeded(t *testing.T) {
	t.Helper()
	if r.phase != "Succeeded" || r.out.Exit != 0 {
		t.Fatalf("the workflow is %s, exit code %d; tasks %v, messages %v\n%s", r.phase, r.out.Exit, r.status, r.note, r.out.Last(10))
	}
}
