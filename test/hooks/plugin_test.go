//go:build whole

package hooks

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// plugin is the Python plugin as a process.
type plugin struct {
	t       *testing.T
	cmd     *exec.Cmd
	address string
	record  string
}

// startPlugin starts the plugin of examples/hooks with a record file. Without a port it takes a free one.
func startPlugin(t *testing.T, record string, args ...string) *plugin {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	script := filepath.Join(sluicerun.Root(t), "examples", "hooks", "plugin.py")
	args = append([]string{"-B", script, "--port", "0", "--record", record}, args...)
	p := &plugin{t: t, record: record, cmd: exec.Command(python, args...)}
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("the plugin said %q: %v", line, err)
	}
	p.address = address
	return p
}

// kill ends the plugin by signal 9.
func (p *plugin) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// port is the number at the end of the address.
func (p *plugin) port() string {
	return p.address[strings.LastIndex(p.address, ":")+1:]
}

// review is a line of the plugin's record.
type review struct {
	UID, Point, Workflow, Task, Path, Decision, Phase string
	Time                                              time.Time
	Reused                                            bool
}

// reviews reads the record so far.
func (p *plugin) reviews() []review {
	p.t.Helper()
	text, err := os.ReadFile(p.record)
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	var all []review
	for line := range strings.Lines(string(text)) {
		var r review
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			p.t.Fatalf("record line %q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

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
