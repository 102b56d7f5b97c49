package kfp

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestProject(t *testing.T) {
	ir := build(`
  sub:
    inputDefinitions: {parameters: {i: {parameterType: STRING}}}
    dag: {tasks: {x: {componentRef: {name: c}, inputs: {parameters: {s: {componentInputParameter: i}}}, taskInfo: {name: The X}}}}
`, `
  inputDefinitions: {parameters: {p: {parameterType: STRING}, q: {parameterType: STRING, isOptional: true}}}
  dag:
    tasks:
      first: {componentRef: {name: c}, inputs: {parameters: {s: {componentInputParameter: p}}}, taskInfo: {name: First task}}
      loop:
        componentRef: {name: sub}
        dependentTasks: [first]
        parameterIterator: {itemInput: i, items: {raw: '["a", "b"]'}}
      cond: {componentRef: {name: c}, inputs: {parameters: {s: {componentInputParameter: p}}}, triggerPolicy: {condition: "inputs.parameter_values['s'] == ''"}}
      after: {componentRef: {name: c}, dependentTasks: [cond]}
`)
	p := load(t, ir)
	given := map[string]any{"p": "v"}
	prog, err := p.Compile(Options{Parameters: given})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{fail: map[string]bool{"loop(1:b).x": true}}
	s := simulate(t, prog, given, nil, r.answer)
	run := Project(prog, s, ProjectOptions{Spec: p, ExperimentID: "exp", ArtifactID: func(a program.Artifact) int64 { return int64(len(a.Name)) }})
	checkRun(t, run)
	if run.State != "FAILED" || run.RunID != "uid-1" || run.DisplayName != "My run" || run.StorageState != "AVAILABLE" || run.FinishedAt.IsZero() {
		t.Errorf("got %+v", run)
	}
	if diff := cmp.Diff(map[string]any{"p": "v"}, run.RuntimeConfig.Parameters); diff != "" {
		t.Error(diff)
	}
	states := []string{}
	for _, h := range run.StateHistory {
		states = append(states, h.State)
	}
	if diff := cmp.Diff([]string{"PENDING", "RUNNING", "FAILED"}, states); diff != "" {
		t.Error(diff)
	}
	type row struct{ Name, Display, Type, State, Parent string }
	var got []row
	names := map[string]string{}
	for _, d := range run.RunDetails.TaskDetails {
		names[d.TaskID] = d.DisplayName
		got = append(got, row{d.Name, d.DisplayName, d.Type, d.State, names[d.ParentTaskID]})
		switch d.Name {
		case "first":
			if d.Given.Parameters["s"] != "v" || d.Gave.Parameters["o"] != "out of first" || d.PodName == "" || d.Outputs["a"].ArtifactIDs[0] != "5" || d.ExecutionID == "" {
				t.Errorf("first: %+v", d)
			}
		case "cond":
			if d.PodName != "" || d.Error != nil {
				t.Errorf("a skipped task: %+v", d)
			}
		}
		if d.State == "FAILED" && d.Error == nil {
			t.Errorf("%s failed without an error", d.DisplayName)
		}
	}
	want := []row{
		{"", "test", "ROOT", "FAILED", ""},
		{"cond", "cond", "RUNTIME", "SKIPPED", "test"},
		{"first", "First task", "RUNTIME", "SUCCEEDED", "test"},
		{"after", "after", "RUNTIME", "SKIPPED", "test"},
		{"loop", "loop", "LOOP", "FAILED", "test"},
		{"loop", "loop(0:a)", "LOOP_ITERATION", "SUCCEEDED", "loop"},
		{"loop", "loop(1:b)", "LOOP_ITERATION", "FAILED", "loop"},
		{"x", "The X", "RUNTIME", "SUCCEEDED", "loop(0:a)"},
		{"x", "The X", "RUNTIME", "FAILED", "loop(1:b)"},
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("sorted", func(rows []row) map[row]int {
		m := map[row]int{}
		for _, r := range rows {
			m[r]++
		}
		return m
	})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	b, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"run_id", "display_name", "state", "state_history", "runtime_config", "created_at", "finished_at", "run_details", "experiment_id", "pipeline_spec"} {
		if doc[key] == nil {
			t.Errorf("the run has no %s", key)
		}
	}
}

func TestProjectStates(t *testing.T) {
	prog, err := load(t, hello).Compile(Options{Lint: true})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	step := func(s *engine.State, e engine.Event) []engine.Command {
		t.Helper()
		m, err := engine.New(prog, kfpexpr.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		e.Time = now
		cmds, err := m.Step(s, e)
		if err != nil {
			t.Fatal(err)
		}
		return cmds
	}
	state := func(s *engine.State) string { return Project(prog, s, ProjectOptions{}).State }
	s := engine.NewState()
	if got := state(s); got != "PENDING" {
		t.Errorf("before its start a run is %s", got)
	}
	cmds := step(s, engine.Event{Start: &engine.Start{Run: engine.Run{Name: "run-1", UID: "u", ArtifactRoot: "/a", Parameters: map[string]any{"message": "m"}}}})
	if got := state(s); got != "RUNNING" {
		t.Errorf("a run that runs is %s", got)
	}
	step(s, engine.Event{Suspend: &engine.Suspend{}})
	if got := state(s); got != "PAUSED" {
		t.Errorf("a suspended run is %s", got)
	}
	step(s, engine.Event{Shutdown: &engine.Shutdown{Message: "enough"}})
	if got := state(s); got != "CANCELING" {
		t.Errorf("a run that is being stopped is %s", got)
	}
	var node engine.NodeID
	for _, c := range cmds {
		if start, ok := c.(engine.StartTask); ok {
			node = start.Node
		}
	}
	step(s, engine.Event{Finished: &engine.Finished{Node: node, Result: engine.Result{Phase: engine.FailedPhase}}})
	if got := Project(prog, s, ProjectOptions{}); got.State != "CANCELED" {
		t.Errorf("a stopped run is %s\n%s", got.State, dump(s))
	}
}

func TestProjectReuse(t *testing.T) {
	prog, err := load(t, change(t, hello, "taskInfo: {name: first}", "cachingOptions: {enableCache: true}")).Compile(Options{Lint: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := prog.Templates["pipeline/root"].Graph.Calls[0].Cache; c == nil || c.Scheme != "kfp" {
		t.Fatalf("the cache switch is %+v", c)
	}
	s := simulate(t, prog, map[string]any{"message": "m"}, nil, func(cmd engine.StartTask) engine.Result {
		r := plausible(cmd)
		r.Reused = cmd.Path == "run-1.first"
		return r
	})
	cached := map[string]bool{}
	for _, d := range Project(prog, s, ProjectOptions{}).RunDetails.TaskDetails {
		cached[d.Name] = d.Cached
		if d.State != "SUCCEEDED" {
			t.Errorf("%s is %s", d.DisplayName, d.State)
		}
	}
	if !cached["first"] || cached["second"] {
		t.Errorf("cached are %v", cached)
	}
}
