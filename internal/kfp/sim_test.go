package kfp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// answer says how a task ends: its outputs, or a failure.
type answer func(cmd engine.StartTask) engine.Result

// simulate runs a program; each task ends as answer says, in the order in which they were started.
func simulate(t *testing.T, p *program.Program, parameters map[string]any, artifacts map[string][]program.Artifact, a answer) *engine.State {
	t.Helper()
	m, err := engine.New(p, kfpexpr.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Pods = true
	s := engine.NewState()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	queue := []engine.Event{{Start: &engine.Start{Run: engine.Run{
		Name: "run-1", UID: "uid-1", Title: "My run", Created: now, Parameters: parameters, Artifacts: artifacts, ArtifactRoot: "/artifacts",
	}}}}
	timers := []engine.SetTimer{}
	for n := 0; len(queue) > 0 || len(timers) > 0; n++ {
		if n > 10_000 {
			t.Fatal("the run does not end")
		}
		if len(queue) == 0 {
			now = timers[0].At
			queue = append(queue, engine.Event{Fired: &engine.Fired{Timer: timers[0].Timer}})
			timers = timers[1:]
		}
		e := queue[0]
		queue = queue[1:]
		now = now.Add(time.Second)
		e.Time, e.Seed = now, uint64(n)
		commands, err := m.Step(s, e)
		if err != nil {
			t.Fatalf("step: %v", err)
		}
		for _, c := range commands {
			switch c := c.(type) {
			case engine.StartTask:
				queue = append(queue, engine.Event{Finished: &engine.Finished{Node: c.Node, Result: a(c)}})
			case engine.SetTimer:
				timers = append(timers, c)
			case engine.CancelTimer:
				for i, o := range timers {
					if o.Timer == c.Timer {
						timers = append(timers[:i], timers[i+1:]...)
						break
					}
				}
			}
		}
	}
	if !s.Phase.Ended() {
		t.Fatalf("the run is %s and nothing is left to do", s.Phase)
	}
	return s
}

// plausible gives each declared output a value of its type.
func plausible(cmd engine.StartTask) engine.Result {
	r := engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Parameters: map[string]any{}, Artifacts: map[string][]program.Artifact{}}}
	for _, o := range cmd.Outputs.Parameters {
		r.Outputs.Parameters[o.Name] = map[program.Type]any{
			program.String: "text", program.Integer: int64(3), program.Double: 0.5, program.Boolean: true,
			program.List:   []any{map[string]any{"A_a": "1", "B_b": []any{"2"}, "a": "1", "b": "2"}},
			program.Struct: map[string]any{"A_a": "1", "B_b": []any{"2"}, "a": "1", "b": "2"},
		}[o.Type]
	}
	for name, a := range cmd.OutputArtifacts {
		r.Outputs.Artifacts[name] = []program.Artifact{a}
	}
	return r
}

func load(t *testing.T, data string) *Pipeline {
	t.Helper()
	p, err := Load(Source{Name: "p.yaml", Data: []byte(data)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func compileFile(t *testing.T, path string, inputs map[string]any) *program.Program {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := load(t, string(data))
	artifacts := map[string][]program.Artifact{}
	for n := range p.Spec.Root.InputDefinitions.Artifacts {
		artifacts[n] = []program.Artifact{{Name: n, URI: "/given/" + n}}
	}
	prog, err := p.Compile(Options{Parameters: inputs, Artifacts: artifacts})
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

// TestCorpusRuns runs every pipeline of the corpus with stand-ins for its tasks: whatever the tasks give, no binding,
// condition or placeholder may fail.
func TestCorpusRuns(t *testing.T) {
	dir, files := corpus(t)
	for _, c := range files {
		if c.class == "invalid" || c.class == "argo" {
			continue
		}
		t.Run(c.path, func(t *testing.T) {
			prog := compileFile(t, filepath.Join(dir, c.path), c.inputs)
			artifacts := map[string][]program.Artifact{}
			for _, a := range prog.Artifacts {
				if !a.Optional {
					artifacts[a.Name] = []program.Artifact{{Name: a.Name, URI: "/given/" + a.Name, Type: a.Type}}
				}
			}
			s := simulate(t, prog, c.inputs, artifacts, func(cmd engine.StartTask) engine.Result {
				checkResolved(t, cmd)
				return plausible(cmd)
			})
			for n := range s.Nodes() {
				if n.Phase.Bad() {
					t.Errorf("%s (%s) is %s: %s", n.Path, n.Kind, n.Phase, n.Message)
				}
			}
			checkRun(t, Project(prog, s, ProjectOptions{}))
		})
	}
}

// checkResolved checks that a task's texts hold no placeholder of the language any more.
func checkResolved(t *testing.T, cmd engine.StartTask) {
	t.Helper()
	if len(cmd.Body.Containers) == 0 {
		return
	}
	main := cmd.Body.Containers[0]
	texts := append(append([]string{main.Image, cmd.Body.Patch, cmd.Body.ExecutorOutput}, main.Command...), main.Args...)
	for _, e := range main.Env {
		texts = append(texts, e.Value)
	}
	for _, s := range texts {
		for _, steps := range kfpexpr.Placeholders(s) {
			if len(steps) == 0 || !strings.HasPrefix(steps[0], "pipeline_google_cloud") && steps[0] != "pipeline_persistent_resource_id" {
				t.Errorf("%s: %v is left in %.80q", cmd.Path, steps, s)
			}
		}
	}
	if cmd.Body.Patch != "" {
		var patch map[string]any
		if err := json.Unmarshal([]byte(cmd.Body.Patch), &patch); err != nil {
			t.Errorf("%s: the pod patch is no JSON: %v: %s", cmd.Path, err, cmd.Body.Patch)
		}
		if strings.Contains(cmd.Body.Patch, `"$`) {
			t.Errorf("%s: the pod patch holds directives: %s", cmd.Path, cmd.Body.Patch)
		}
	}
}

// checkRun checks what holds for every projected run.
func checkRun(t *testing.T, r *Run) {
	t.Helper()
	ids := map[string]bool{}
	for _, d := range r.RunDetails.TaskDetails {
		if ids[d.TaskID] {
			t.Errorf("task id %s is there twice", d.TaskID)
		}
		ids[d.TaskID] = true
		if d.DisplayName == "" || d.State == "" || d.RunID != r.RunID {
			t.Errorf("incomplete task: %+v", d)
		}
	}
	roots := 0
	for _, d := range r.RunDetails.TaskDetails {
		if d.ParentTaskID == "" {
			roots++
		} else if !ids[d.ParentTaskID] {
			t.Errorf("%s: no parent %s", d.DisplayName, d.ParentTaskID)
		}
		for _, c := range d.ChildTasks {
			if c.TaskID != "" && !ids[c.TaskID] {
				t.Errorf("%s: no child %s", d.DisplayName, c.TaskID)
			}
		}
	}
	if roots != 1 {
		t.Errorf("%d tasks have no parent", roots)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// phases gives the phase of each node by its path without the run's name.
func phases(s *engine.State) map[string]string {
	out := map[string]string{}
	for n := range s.Nodes() {
		out[strings.TrimPrefix(strings.TrimPrefix(n.Path, s.Run.Name), ".")] = string(n.Phase)
	}
	return out
}

func dump(s *engine.State) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", s.Phase, s.Message)
	for n := range s.Nodes() {
		fmt.Fprintf(&b, "%s %s %s %s\n", n.Path, n.Kind, n.Phase, n.Message)
	}
	return b.String()
}
