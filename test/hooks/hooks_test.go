//go:build whole

package hooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/plugin"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

func TestTasksReadPlaceholders(t *testing.T) {
	t.Parallel()
	p := sluicerun.Find(t)
	plug := plugin.Start(t, filepath.Join(t.TempDir(), "record"), "--placeholder", "greeting=hello", "--placeholder", `tags=["a","b"]`)
	r := workflow(t, p, document("example", plug.Address, ""), "watched: 'yes'", `
  - name: main
    dag:
      tasks:
      - {name: first, template: first}
      - {name: second, template: second, dependencies: [first], arguments: {parameters: [{name: before, value: '{{tasks.first.hooks.example.task}}'}]}}
      - {name: each, template: second, dependencies: [first], withParam: '{{tasks.first.hooks.example.tags}}', arguments: {parameters: [{name: before, value: '{{item}}'}]}}
      - {name: last, template: second, dependencies: [second, each], arguments: {parameters: [{name: before, value: '{{tasks.second.outputs.result}}'}]}}
  - name: first
    container: {image: busybox, command: [echo, '{{hooks.example.greeting}} from {{hooks.example.task}}']}
  - name: second
    inputs: {parameters: [{name: before}]}
    script: {image: busybox, command: [sh], source: 'echo "{{hooks.example.greeting}} after {{inputs.parameters.before}}"'}
`)
	r.succeeded(t)
	want := map[string]string{
		"first": "hello from first", "second": "hello after first", "each(0:a)": "hello after a", "each(1:b)": "hello after b", "last": "hello after hello after first",
	}
	logs, err := p.Run(t.Context(), time.Minute, "logs", r.name)
	if err != nil {
		t.Fatal(err)
	}
	for task, text := range want {
		if line := task + ": " + text + "\n"; !strings.Contains(string(logs.Stdout), line) {
			t.Errorf("the logs lack %q:\n%s", line, logs.Stdout)
		}
	}
}

func TestReusedTaskIsNotStarted(t *testing.T) {
	t.Parallel()
	p := sluicerun.Find(t)
	dir := t.TempDir()
	ledger := filepath.Join(dir, "ledger")
	plug := plugin.Start(t, filepath.Join(dir, "record"), "--remember", filepath.Join(dir, "memory.json"))
	body := fmt.Sprintf(`
  - name: main
    dag:
      tasks:
      - {name: train, template: train, arguments: {parameters: [{name: rate, value: "0.1"}]}}
      - {name: use, template: use, dependencies: [train], arguments: {parameters: [{name: loss, value: '{{tasks.train.outputs.result}}'}]}}
  - name: train
    inputs: {parameters: [{name: rate}]}
    script: {image: busybox, command: [sh], source: 'echo trained >>%s; echo "loss for {{inputs.parameters.rate}}"'}
  - name: use
    inputs: {parameters: [{name: loss}]}
    script: {image: busybox, command: [sh], source: 'echo "used {{inputs.parameters.loss}}" # {{workflow.uid}}'}
`, ledger)
	for range 2 {
		r := workflow(t, p, document("example", plug.Address, ""), "watched: 'yes'", body)
		r.succeeded(t)
		if r.result["train"] != "loss for 0.1" {
			t.Errorf("train gave %q", r.result["train"])
		}
	}
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != "trained\n" {
		t.Errorf("train's command ran %d times, want once", strings.Count(string(text), "trained"))
	}
	var points []string
	for _, r := range plug.Reviews() {
		if r.Task == "train" {
			points = append(points, fmt.Sprintf("%s %s %v", r.Point, r.Decision, r.Reused))
		}
	}
	if want := []string{"Pre Run false", "Post Done false", "Pre Reuse false", "Post Done true"}; !slices.Equal(points, want) {
		t.Errorf("train's reviews are %q, want %q", points, want)
	}
}

func TestDependantWaitsForPendingPost(t *testing.T) {
	t.Parallel()
	for name, flag := range map[string]string{"polls": "", "callback": "--callback"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sluicerun.Find(t)
			args := []string{"--pending", "Post:first=5"}
			if flag != "" {
				args = append(args, flag)
			}
			plug := plugin.Start(t, filepath.Join(t.TempDir(), "record"), args...)
			r := workflow(t, p, document("example", plug.Address, ""), "watched: 'yes'", `
  - name: main
    dag:
      tasks:
      - {name: first, template: now}
      - {name: second, template: now, dependencies: [first]}
      - {name: show, template: show, dependencies: [first, second], arguments: {parameters: [{name: times, value: '{{tasks.first.outputs.result}} {{tasks.second.outputs.result}}'}]}}
  - name: now
    script: {image: busybox, command: [sh], source: 'date +%s.%N'}
  - name: show
    inputs: {parameters: [{name: times}]}
    script: {image: busybox, command: [sh], source: 'echo {{inputs.parameters.times}}'}
`)
			r.succeeded(t)
			between := seconds(t, r.result["second"]) - seconds(t, r.result["first"])
			if between < 5 || between > 20 {
				t.Errorf("the dependant started %.1f s after the task, want a little more than 5", between)
			}
		})
	}
}

func seconds(t *testing.T, text string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPluginThatIsKilledMidway(t *testing.T) {
	t.Parallel()
	p := sluicerun.Find(t)
	record := filepath.Join(t.TempDir(), "record")
	plug := plugin.Start(t, record)
	var tasks strings.Builder
	const count = 8
	for i := range count {
		fmt.Fprintf(&tasks, "      - {name: t%d, template: nap, dependencies: [%s]}\n", i, map[bool]string{true: "", false: fmt.Sprintf("t%d", i-1)}[i == 0])
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	restarted := make(chan struct{})
	go func() { // kills it when it has seen a few reviews, and brings it back later at the same address
		defer close(restarted)
		for len(plug.Reviews()) < 5 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
		port := plug.Port()
		plug.Kill()
		time.Sleep(time.Second) // the outage
		plugin.Start(t, record, "--port", port)
	}()
	r := workflow(t, p, document("example", plug.Address, ""), "watched: 'yes'", `
  - name: main
    dag:
      tasks:
`+tasks.String()+`
  - name: nap
    container: {image: busybox, command: [sleep, "0.2"]}
`)
	cancel()
	<-restarted
	r.succeeded(t)
	points := map[string][]string{}
	for _, review := range plug.Reviews() {
		points[review.Task] = append(points[review.Task], review.Point)
	}
	if len(points) != count {
		t.Errorf("the plugin saw %d tasks, want %d", len(points), count)
	}
	for task, got := range points {
		if !slices.Equal(got, []string{"Pre", "Post"}) {
			t.Errorf("%s was recorded at %v, want Pre and Post, once each", task, got)
		}
	}
}

func TestOnlyLabelledWorkflowsAreSent(t *testing.T) {
	t.Parallel()
	p := sluicerun.Find(t)
	plug := plugin.Start(t, filepath.Join(t.TempDir(), "record"))
	body := `
  - name: main
    container: {image: busybox, command: ["true"]}
`
	workflow(t, p, document("example", plug.Address, ""), "watched: 'no'", body).succeeded(t)
	if got := plug.Reviews(); len(got) > 0 {
		t.Errorf("a workflow without the label was sent: %v", got)
	}
	workflow(t, p, document("example", plug.Address, ""), "watched: 'yes'", body).succeeded(t)
	if got := plug.Reviews(); len(got) != 2 {
		t.Errorf("the labelled workflow had %d reviews, want 2: %v", len(got), got)
	}
}
