//go:build whole

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

const tasks = 60

// manifest is a chain of six layers of ten tasks. Each task appends its name to a file of the machine as its last
// action, so that a line is there exactly when the command has exited; the last one adds up what all of them gave.
func manifest(ledger string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: crash-}
spec:
  entrypoint: main
  parallelism: 4
  templates:
  - name: append
    inputs: {parameters: [{name: number}]}
    container:
      image: busybox
      command: [sh, -c, 'sleep 0.7; echo $(({{inputs.parameters.number}} * 2)); echo {{inputs.parameters.number}} >>%s']
  - name: sum
    inputs: {parameters: [{name: numbers}]}
    script:
      image: python:3
      command: [python3]
      source: print(sum(int(n) for n in "{{inputs.parameters.numbers}}".split()))
  - name: main
    outputs: {parameters: [{name: sum, valueFrom: {parameter: '{{tasks.sum.outputs.result}}'}}]}
    dag:
      tasks:
`, ledger)
	var all []string
	for i := range tasks {
		var needs []string
		if i >= 10 {
			needs = []string{fmt.Sprintf("t%d", i-10), fmt.Sprintf("t%d", (i-10)/10*10+(i+3)%10)}
			if needs[0] == needs[1] {
				needs = needs[:1]
			}
		}
		fmt.Fprintf(&b, "      - {name: t%d, template: append, dependencies: [%s], arguments: {parameters: [{name: number, value: %d}]}}\n", i, strings.Join(needs, ", "), i)
		all = append(all, fmt.Sprintf("{{tasks.t%d.outputs.result}}", i))
	}
	fmt.Fprintf(&b, "      - name: sum\n        template: sum\n        dependencies: [t%d", 0)
	for i := 1; i < tasks; i++ {
		fmt.Fprintf(&b, ", t%d", i)
	}
	fmt.Fprintf(&b, "]\n        arguments: {parameters: [{name: numbers, value: \"%s\"}]}\n", strings.Join(all, " "))
	return b.String()
}

func TestKillAtRandomMoments(t *testing.T) {
	kills := 30
	if text := os.Getenv("SLUICE_CRASH_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("SLUICE_CRASH_KILLS: %v", err)
		}
		kills = n
	}
	seed := rand.Uint64()
	if text := os.Getenv("SLUICE_CRASH_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SLUICE_CRASH_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("SLUICE_CRASH_SEED=%d", seed)
	draw := rand.New(rand.NewPCG(seed, 0))

	p := sluicerun.Find(t)
	work := t.TempDir()
	ledger := filepath.Join(work, "ledger")
	plugin := newPlugin(t)
	write(t, filepath.Join(work, "workflow.yaml"), manifest(ledger))
	write(t, filepath.Join(work, "hooks.yaml"), plugin.document())

	args := []string{"run", "-o", "json", "--no-progress", "--name", "crash", "--sandbox", "off", "--hooks", filepath.Join(work, "hooks.yaml"), filepath.Join(work, "workflow.yaml")}
	killed := 0
	var out sluicerun.Output
	for {
		window := time.Duration(0)
		if killed < kills {
			window = time.Duration(20+draw.IntN(380)) * time.Millisecond
		}
		var done bool
		out, done = start(t, p, window, args)
		if done {
			break
		}
		killed++
		if exists(t, p) {
			args = []string{"resume", "-o", "json", "--no-progress", "crash"}
		}
	}
	t.Logf("killed %d times", killed)
	if killed < kills {
		t.Errorf("the run ended after %d of %d kills", killed, kills)
	}
	if out.Exit != 0 {
		t.Fatalf("exit code %d\n%s", out.Exit, out.Last(20))
	}
	checkLedger(t, ledger)
	checkWorkflow(t, out.Stdout)
	plugin.check(t)
}

// start runs sluice and kills it after a while, it alone and not what it started; without a while it waits for the end.
func start(t *testing.T, p sluicerun.Program, window time.Duration, args []string) (sluicerun.Output, bool) {
	t.Helper()
	if window == 0 {
		out, err := p.Run(context.Background(), 3*time.Minute, args...)
		if err != nil {
			t.Fatal(err)
		}
		if out.TimedOut {
			t.Fatalf("sluice %v hangs\n%s", args, out.Last(20))
		}
		return out, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), window)
	defer cancel()
	cmd := p.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Kill() }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() == nil {
		out := sluicerun.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: cmd.ProcessState.ExitCode()}
		if out.Exit != 0 {
			t.Fatalf("sluice %v ended by itself: %v\n%s", args, err, out.Last(20))
		}
		return out, true
	}
	return sluicerun.Output{}, false
}

// exists says whether the first call got as far as recording the run.
func exists(t *testing.T, p sluicerun.Program) bool {
	t.Helper()
	out, err := p.Run(context.Background(), time.Minute, "get", "crash", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	return out.Exit == 0
}

func checkLedger(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[strings.TrimSpace(line)]++
	}
	for i := range tasks {
		if n := times[strconv.Itoa(i)]; n != 1 {
			t.Errorf("task t%d appended its line %d times, want once", i, n)
		}
	}
}

func checkWorkflow(t *testing.T, text []byte) {
	t.Helper()
	var w struct {
		Status struct {
			Phase string
			Nodes map[string]struct {
				Name, Phase string
				Outputs     struct {
					Parameters []struct{ Name, Value string }
				}
			}
		}
	}
	if err := json.Unmarshal(text, &w); err != nil {
		t.Fatalf("the output is no Workflow: %v\n%s", err, text)
	}
	if w.Status.Phase != "Succeeded" {
		t.Errorf("the workflow is %s", w.Status.Phase)
	}
	want := strconv.Itoa(tasks * (tasks - 1))
	for _, n := range w.Status.Nodes {
		if n.Phase != "Succeeded" {
			t.Errorf("%s is %s", n.Name, n.Phase)
		}
		if n.Name == "crash" && (len(n.Outputs.Parameters) != 1 || n.Outputs.Parameters[0].Value != want) {
			t.Errorf("the workflow's outputs are %v, want the sum %s", n.Outputs.Parameters, want)
		}
	}
	if len(w.Status.Nodes) != tasks+2 {
		t.Errorf("there are %d nodes, want %d", len(w.Status.Nodes), tasks+2)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
