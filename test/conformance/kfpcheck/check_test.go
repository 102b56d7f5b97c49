package kfpcheck

import (
	"slices"
	"strings"
	"testing"
)

const compiled = `
pipelineInfo: {name: p}
root:
  dag:
    tasks:
      a: {taskInfo: {name: a}, componentRef: {name: comp-a}}
      b:
        taskInfo: {name: b}
        componentRef: {name: comp-a}
        inputs: {parameters: {x: {taskOutputParameter: {producerTask: a, outputParameterKey: o}}}}
      maybe:
        taskInfo: {name: maybe}
        componentRef: {name: comp-a}
        dependentTasks: [a]
        triggerPolicy: {condition: "inputs.parameter_values['x'] == 'y'"}
      after-maybe: {taskInfo: {name: after-maybe}, componentRef: {name: comp-a}, dependentTasks: [maybe]}
      last:
        taskInfo: {name: last}
        componentRef: {name: comp-a}
        dependentTasks: [b]
        triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED}
      loop:
        taskInfo: {name: loop}
        componentRef: {name: comp-loop}
        parameterIterator: {itemInput: i, items: {raw: '["x", "y"]'}}
components:
  comp-a: {executorLabel: exec-a}
  comp-loop:
    dag:
      tasks:
        c: {taskInfo: {name: c}, componentRef: {name: comp-a}}
`

// task is a line "id name state parent".
func runOf(state string, lines ...string) *Run {
	r := &Run{RunID: "r", State: state}
	r.Details.Tasks = []Task{{ID: "0", Name: "r", State: state, Type: "ROOT"}}
	for _, line := range lines {
		f := strings.Fields(line)
		t := Task{ID: f[0], Name: f[1], State: f[2], ParentID: "0"}
		if len(f) > 3 {
			t.ParentID = f[3]
		}
		if t.Name == "loop" && t.ParentID != "0" {
			t.Type = "LOOP_ITERATION"
		}
		r.Details.Tasks = append(r.Details.Tasks, t)
	}
	return r
}

func TestCheck(t *testing.T) {
	good := []string{
		"1 a SUCCEEDED", "2 b SUCCEEDED", "3 maybe SKIPPED", "4 after-maybe SKIPPED", "5 last SUCCEEDED", "6 loop SUCCEEDED",
		"7 loop SUCCEEDED 6", "8 loop SUCCEEDED 6", "9 c SUCCEEDED 7", "10 c SUCCEEDED 8",
	}
	change := func(pairs ...string) []string {
		lines := slices.Clone(good)
		for i := 0; i < len(pairs); i += 2 {
			for j, line := range lines {
				if strings.HasPrefix(line, pairs[i]+" ") {
					lines[j] = pairs[i+1]
				}
			}
		}
		return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	}
	tests := map[string]struct {
		state string
		lines []string
		want  []string
	}{
		"all well": {"SUCCEEDED", good, nil},
		"final state": {"FAILED", good, []string{
			"root: is FAILED although none of its tasks is", "run: state: want SUCCEEDED, got FAILED",
		}},
		"still running":       {"SUCCEEDED", change("3", "3 maybe RUNNING"), []string{`maybe: state: want an end, got "RUNNING"`}},
		"ran after a skipped": {"SUCCEEDED", change("4", "4 after-maybe SUCCEEDED"), []string{"root.after-maybe: is SUCCEEDED, but must not run after maybe SKIPPED"}},
		"skipped for nothing": {"SUCCEEDED", change("2", "2 b SKIPPED"), []string{"root.b: is SKIPPED, but nothing kept it from running"}},
		"lost":                {"SUCCEEDED", change("2", ""), []string{"root.b: is not there, but nothing kept it from running"}},
		"exit task left out":  {"SUCCEEDED", change("5", "5 last SKIPPED"), []string{"root.last: is SKIPPED, but must run whatever became of those before it"}},
		"a failure that counts": {"SUCCEEDED", change("1", "1 a FAILED", "2", "2 b SKIPPED"), []string{
			"root: is SUCCEEDED although a FAILED",
		}},
		"a failure that is forgiven": {"SUCCEEDED", change("2", "2 b FAILED"), nil},
		"ran after a failure": {"SUCCEEDED", change("1", "1 a FAILED"), []string{
			"root.b: is SUCCEEDED, but must not run after a FAILED", "root: is SUCCEEDED although a FAILED",
		}},
		"an iteration less":   {"SUCCEEDED", change("8", "", "10", ""), []string{"root.loop: has 1 iterations, want 2"}},
		"an iteration failed": {"SUCCEEDED", change("10", "10 c FAILED 8", "8", "8 loop FAILED 6"), []string{"root.loop: is SUCCEEDED with 1 failed iterations"}},
		"an unknown task":     {"SUCCEEDED", append(change(), "11 d SUCCEEDED"), []string{"root: has a task d that is not in the pipeline"}},
		"no such parent":      {"SUCCEEDED", append(change(), "11 d SUCCEEDED 99"), []string{"d: parent 99 does not exist"}},
	}
	p, err := parsePipeline([]byte(compiled))
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := Check(Want{State: "SUCCEEDED"}, p, runOf(test.state, test.lines...))
			slices.Sort(test.want)
			if !slices.Equal(found, test.want) {
				t.Errorf("found %q\nwant  %q", found, test.want)
			}
		})
	}
}

func TestBranches(t *testing.T) {
	p, err := parsePipeline([]byte(`
root: {dag: {tasks: {condition-branches-1: {taskInfo: {name: condition-branches-1}, componentRef: {name: comp-b}}}}}
components:
  comp-a: {executorLabel: exec-a}
  comp-b:
    dag:
      tasks:
        condition-2: {taskInfo: {name: condition-2}, componentRef: {name: comp-a}, triggerPolicy: {condition: "x == 'a'"}}
        condition-3: {taskInfo: {name: condition-3}, componentRef: {name: comp-a}, triggerPolicy: {condition: "!(x == 'a')"}}
`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ first, second, want string }{
		"one":  {"SUCCEEDED", "SKIPPED", ""},
		"both": {"SUCCEEDED", "SUCCEEDED", "root.condition-branches-1: more than one branch ran: [condition-2 condition-3]"},
		"none": {"SKIPPED", "SKIPPED", "root.condition-branches-1: no branch ran although there is an else"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := Check(Want{State: "SUCCEEDED"}, p, runOf("SUCCEEDED", "1 condition-branches-1 SUCCEEDED", "2 condition-2 "+test.first+" 1", "3 condition-3 "+test.second+" 1"))
			if strings.Join(found, "\n") != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestConditions(t *testing.T) {
	p, err := parsePipeline([]byte(compiled))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ state, value, want string }{
		"true and ran":      {"SUCCEEDED", "y", ""},
		"false and skipped": {"SKIPPED", "n", ""},
		"false and ran":     {"SUCCEEDED", "n", "root.maybe: is SUCCEEDED, but its condition is false: inputs.parameter_values['x'] == 'y'"},
		"true and skipped":  {"SKIPPED", "y", "root.maybe: is SKIPPED, but its condition is true: inputs.parameter_values['x'] == 'y'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := runOf("SUCCEEDED", "1 a SUCCEEDED", "2 b SUCCEEDED", "3 maybe "+test.state, "4 after-maybe "+test.state, "5 last SUCCEEDED",
				"6 loop SUCCEEDED", "7 loop SUCCEEDED 6", "8 loop SUCCEEDED 6", "9 c SUCCEEDED 7", "10 c SUCCEEDED 8")
			r.Details.Tasks[3].Given.Parameters = map[string]any{"x": test.value}
			if found := strings.Join(Check(Want{State: "SUCCEEDED"}, p, r), "\n"); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestOutputs(t *testing.T) {
	r := runOf("SUCCEEDED")
	r.Outputs.Parameters = map[string]any{"n": 10.0}
	if found := Check(Want{State: "SUCCEEDED", Outputs: map[string]any{"n": 10.0}}, &Pipeline{}, r); len(found) > 0 {
		t.Errorf("found %q", found)
	}
	want := "run: output n: want 11, got 10"
	if found := Check(Want{State: "SUCCEEDED", Outputs: map[string]any{"n": 11.0}}, &Pipeline{}, r); strings.Join(found, "") != want {
		t.Errorf("found %q, want %q", found, want)
	}
}
