package kfp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// parts of which the pipelines of these tests are built: an executor component "c" with one of everything, and the head.
const parts = `
pipelineInfo: {name: test}
schemaVersion: 2.1.0
deploymentSpec:
  executors:
    e: {container: {image: alpine, command: [run]}}
`

const component = `
    executorLabel: e
    inputDefinitions:
      parameters:
        s: {parameterType: STRING, isOptional: true}
        d: {parameterType: STRING, isOptional: true, defaultValue: dflt}
        n: {parameterType: NUMBER_INTEGER, isOptional: true}
        l: {parameterType: LIST, isOptional: true}
        m: {parameterType: STRUCT, isOptional: true}
        status: {parameterType: TASK_FINAL_STATUS, isOptional: true}
      artifacts:
        in: {artifactType: {schemaTitle: system.Artifact}, isOptional: true}
        ins: {artifactType: {schemaTitle: system.Artifact}, isOptional: true, isArtifactList: true}
    outputDefinitions:
      parameters:
        o: {parameterType: STRING}
        l: {parameterType: LIST}
      artifacts:
        a: {artifactType: {schemaTitle: system.Artifact}}
`

// build makes a pipeline of the executor component "c", more components and the root's body.
func build(more, root string) string {
	return parts + "components:\n  c:" + component + more + "\nroot:\n" + root
}

// recorder keeps the inputs of every task by its path, and answers with fixed outputs.
type recorder struct {
	inputs map[string]engine.Inputs
	fail   map[string]bool
	// give overrides the output o by the path's last name.
	give map[string]any
	n    int
}

func (r *recorder) answer(cmd engine.StartTask) engine.Result {
	path := strings.TrimPrefix(cmd.Path, "run-1.")
	if r.inputs == nil {
		r.inputs = map[string]engine.Inputs{}
	}
	r.inputs[path] = cmd.Inputs
	if r.fail[path] {
		return engine.Result{Phase: engine.FailedPhase, Message: "exit code 1"}
	}
	r.n++
	out := engine.Outputs{Parameters: map[string]any{"o": "out of " + path, "l": []any{"x", "y"}}, Artifacts: map[string][]program.Artifact{}}
	if v, ok := r.give[path]; ok {
		out.Parameters["o"] = v
	}
	for name, a := range cmd.OutputArtifacts {
		a.Name = path
		out.Artifacts[name] = []program.Artifact{a}
	}
	return engine.Result{Phase: engine.SucceededPhase, Outputs: out}
}

// parameters gives what a task was given, the component's defaults left out.
func (r *recorder) parameters(path string) map[string]any {
	out := maps.Clone(r.inputs[path].Parameters)
	for name := range r.inputs[path].Defaulted {
		delete(out, name)
	}
	return out
}

func (r *recorder) artifacts(path, input string) []string {
	var out []string
	for _, a := range r.inputs[path].Artifacts[input] {
		out = append(out, a.Name)
	}
	return out
}

// play compiles and runs a pipeline.
func play(t *testing.T, ir string, parameters map[string]any, r *recorder) *engine.State {
	t.Helper()
	prog, err := load(t, ir).Compile(Options{Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	checkProgram(t, prog)
	return simulate(t, prog, parameters, nil, r.answer)
}

func wantPhases(t *testing.T, s *engine.State, want map[string]string) {
	t.Helper()
	got := phases(s)
	for path, phase := range want {
		if got[path] != phase {
			t.Errorf("%s is %q, want %s", path, got[path], phase)
		}
	}
	if t.Failed() {
		t.Log(dump(s))
	}
}

func TestBindingsArrive(t *testing.T) {
	r := &recorder{}
	s := play(t, build("", `
  inputDefinitions:
    parameters:
      p: {parameterType: STRING}
      none: {parameterType: STRING, isOptional: true}
  dag:
    tasks:
      a:
        componentRef: {name: c}
        inputs:
          parameters:
            s: {componentInputParameter: p}
            d: {componentInputParameter: none}
            n: {runtimeValue: {constant: 5.0}}
            m: {runtimeValue: {constant: {k: ["{{$.inputs.parameters['pipelinechannel--x']}}", "{{$.pipeline_job_uuid}}"], v: 1.0}}}
            pipelinechannel--x: {componentInputParameter: p}
      b:
        componentRef: {name: c}
        inputs:
          parameters:
            s: {taskOutputParameter: {producerTask: a, outputParameterKey: l}}
            l: {taskOutputParameter: {producerTask: a, outputParameterKey: l}}
            d: {runtimeValue: {constant: "{{$.inputs.parameters['pipelinechannel--a-o']}}!{{$.inputs.parameters['pipelinechannel--c']}}"}}
            pipelinechannel--a-o: {taskOutputParameter: {producerTask: a, outputParameterKey: o}}
            pipelinechannel--c: {runtimeValue: {constant: {k: 1.0}}}
            n: {taskOutputParameter: {producerTask: a, outputParameterKey: l}, parameterExpressionSelector: 'int(list_value.size())'}
          artifacts:
            in: {taskOutputArtifact: {producerTask: a, outputArtifactKey: a}}
      names:
        componentRef: {name: c}
        inputs:
          parameters:
            s: {runtimeValue: {constant: "{{$.pipeline_task_name}}"}}
            d: {runtimeValue: {constant: "{{$.workspace_path}}/{{$.pipeline_job_name}}/{{$.pipeline_task_uuid}}"}}
            l: {runtimeValue: {constant: ["{{$.pipeline_root}}", "{{$.unknown}}"]}}
`), map[string]any{"p": "<p>"}, r)
	wantPhases(t, s, map[string]string{"": "Succeeded"})
	for path, want := range map[string]map[string]any{
		"a": {"s": "<p>", "n": int64(5), "m": map[string]any{"k": []any{"<p>", "uid-1"}, "v": int64(1)}, "pipelinechannel--x": "<p>"},
		"b": {
			"s": `["x","y"]`, "l": []any{"x", "y"}, "d": `out of a!{"k":1}`, "n": int64(2),
			"pipelinechannel--a-o": "out of a", "pipelinechannel--c": map[string]any{"k": int64(1)},
		},
		"names": {"s": "names", "d": "/kfp-workspace/My run/uid-1/run-1.names", "l": []any{"/artifacts", "{{$.unknown}}"}},
	} {
		if diff := cmp.Diff(want, r.parameters(path)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
	// A null for an optional input is none given, and the component's default applies.
	if got := r.inputs["a"]; got.Parameters["d"] != "dflt" || !got.Defaulted["d"] {
		t.Errorf("the default is %v, defaulted %v", got.Parameters["d"], got.Defaulted)
	}
	if got := r.artifacts("b", "in"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("b is given %v", got)
	}
}

func TestOrderAndSkipping(t *testing.T) {
	r := &recorder{fail: map[string]bool{"bad": true}}
	s := play(t, build(`
  sub:
    dag: {tasks: {x: {componentRef: {name: c}}}}
    inputDefinitions: {parameters: {v: {parameterType: STRING}}}
`, `
  dag:
    tasks:
      skipped:
        componentRef: {name: c}
        inputs: {parameters: {s: {runtimeValue: {constant: a}}}}
        triggerPolicy: {condition: "inputs.parameter_values['s'] == 'b'"}
      after-skipped: {componentRef: {name: c}, dependentTasks: [skipped]}
      anyway-skipped: {componentRef: {name: c}, dependentTasks: [skipped], triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED}}
      bad: {componentRef: {name: c}}
      after-bad: {componentRef: {name: c}, dependentTasks: [bad]}
      implicit: {componentRef: {name: c}, inputs: {parameters: {s: {taskOutputParameter: {producerTask: bad, outputParameterKey: o}}}}}
      anyway-default:
        componentRef: {name: c}
        inputs:
          parameters:
            d: {taskOutputParameter: {producerTask: bad, outputParameterKey: o}}
            s: {taskOutputParameter: {producerTask: bad, outputParameterKey: o}}
          artifacts:
            in: {taskOutputArtifact: {producerTask: bad, outputArtifactKey: a}}
        triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED}
      whole:
        componentRef: {name: sub}
        inputs: {parameters: {v: {runtimeValue: {constant: a}}}}
        triggerPolicy: {condition: "inputs.parameter_values['v'] != 'a'"}
      after-whole: {componentRef: {name: c}, dependentTasks: [whole]}
`), nil, r)
	wantPhases(t, s, map[string]string{
		"skipped": "Skipped", "after-skipped": "Omitted", "anyway-skipped": "Succeeded", "bad": "Failed", "after-bad": "Omitted", "implicit": "Omitted",
		"anyway-default": "Succeeded", "whole": "Skipped", "after-whole": "Omitted",
	})
	if got := r.inputs["anyway-default"].Parameters; got["d"] != "dflt" {
		t.Errorf("without what the failed task gives, the default is %v", got["d"])
	}
	if _, given := r.inputs["anyway-default"].Parameters["s"]; given {
		t.Error("an optional input without default has a value")
	}
}

func TestExitHandlers(t *testing.T) {
	ir := build(`
  comp-exit-handler-1:
    dag: {tasks: {x: {componentRef: {name: c}}, y: {componentRef: {name: c}, dependentTasks: [x]}}}
`, `
  dag:
    tasks:
      exit-handler-1: {componentRef: {name: comp-exit-handler-1}, taskInfo: {name: my handler}}
      exit-1:
        componentRef: {name: c}
        dependentTasks: [exit-handler-1]
        inputs: {parameters: {status: {taskFinalStatus: {producerTask: exit-handler-1}}}}
        triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED}
      exit-2: {componentRef: {name: c}, dependentTasks: [exit-handler-1], triggerPolicy: {strategy: ALL_UPSTREAM_TASKS_COMPLETED}}
`)
	for _, c := range []struct {
		name, state string
		fail        map[string]bool
		want        map[string]string
		run         string
	}{
		{"success", "SUCCEEDED", nil, map[string]string{"exit-1": "Succeeded", "exit-2": "Succeeded"}, "SUCCEEDED"},
		{"failure", "FAILED", map[string]bool{"exit-handler-1.x": true}, map[string]string{"exit-handler-1.y": "Omitted", "exit-1": "Succeeded", "exit-2": "Succeeded"}, "FAILED"},
		{"a failing exit task", "SUCCEEDED", map[string]bool{"exit-1": true}, map[string]string{"exit-1": "Failed", "exit-2": "Succeeded"}, "FAILED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{fail: c.fail}
			prog, err := load(t, ir).Compile(Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := simulate(t, prog, nil, nil, r.answer)
			wantPhases(t, s, c.want)
			status, _ := r.inputs["exit-1"].Parameters["status"].(map[string]any)
			if status["state"] != c.state || status["pipelineTaskName"] != "exit-handler-1" || status["pipelineJobResourceName"] != "run-1" {
				t.Errorf("the exit task is told %v, want state %s", status, c.state)
			}
			if run := Project(prog, s, ProjectOptions{}); run.State != c.run {
				t.Errorf("the run is %s, want %s", run.State, c.run)
			}
		})
	}
}

func TestLoops(t *testing.T) {
	r := &recorder{}
	s := play(t, build(`
  outer:
    inputDefinitions:
      parameters:
        item: {parameterType: NUMBER_INTEGER}
        limit: {parameterType: NUMBER_INTEGER}
    outputDefinitions:
      parameters: {os: {parameterType: LIST}, kept: {parameterType: LIST}}
      artifacts: {as: {artifactType: {schemaTitle: system.Artifact}, isArtifactList: true}}
    dag:
      outputs:
        parameters:
          os: {valueFromParameter: {producerSubtask: inner, outputParameterKey: os}}
          kept: {valueFromParameter: {producerSubtask: maybe, outputParameterKey: o}}
        artifacts:
          as: {artifactSelectors: [{producerSubtask: inner, outputArtifactKey: as}]}
      tasks:
        inner:
          componentRef: {name: inner}
          inputs: {parameters: {n: {componentInputParameter: item}}}
          parameterIterator: {itemInput: i, items: {raw: '["a", "{{$.inputs.parameters[''n'']}}"]'}}
        maybe:
          componentRef: {name: c}
          inputs: {parameters: {n: {componentInputParameter: item}, pipelinechannel--limit: {componentInputParameter: limit}}}
          triggerPolicy: {condition: "int(inputs.parameter_values['n']) >= int(inputs.parameter_values['pipelinechannel--limit'])"}
  inner:
    inputDefinitions: {parameters: {i: {parameterType: STRING}, n: {parameterType: NUMBER_INTEGER}}}
    outputDefinitions:
      parameters: {os: {parameterType: LIST}}
      artifacts: {as: {artifactType: {schemaTitle: system.Artifact}, isArtifactList: true}}
    dag:
      outputs:
        parameters: {os: {valueFromParameter: {producerSubtask: x, outputParameterKey: o}}}
        artifacts: {as: {artifactSelectors: [{producerSubtask: x, outputArtifactKey: a}]}}
      tasks:
        x: {componentRef: {name: c}, inputs: {parameters: {s: {componentInputParameter: i}}}}
  each:
    inputDefinitions: {artifacts: {one: {artifactType: {schemaTitle: system.Artifact}}, all: {artifactType: {schemaTitle: system.Artifact}, isArtifactList: true}}}
    dag: {tasks: {y: {componentRef: {name: c}, inputs: {artifacts: {in: {componentInputArtifact: one}}}}}}
`, `
  inputDefinitions: {parameters: {ns: {parameterType: LIST}}}
  dag:
    tasks:
      loop:
        componentRef: {name: outer}
        inputs: {parameters: {ns: {componentInputParameter: ns}, limit: {runtimeValue: {constant: 2.0}}}}
        parameterIterator: {itemInput: item, items: {inputParameter: ns}}
        iteratorPolicy: {parallelismLimit: 1}
      collect:
        componentRef: {name: c}
        inputs:
          parameters:
            l: {taskOutputParameter: {producerTask: loop, outputParameterKey: os}}
            s: {taskOutputParameter: {producerTask: loop, outputParameterKey: kept}}
          artifacts: {ins: {taskOutputArtifact: {producerTask: loop, outputArtifactKey: as}}}
      over:
        componentRef: {name: each}
        inputs: {artifacts: {all: {taskOutputArtifact: {producerTask: loop, outputArtifactKey: as}}}}
        artifactIterator: {itemInput: one, items: {inputArtifact: all}}
      nothing:
        componentRef: {name: inner}
        inputs: {parameters: {n: {runtimeValue: {constant: 1.0}}}}
        parameterIterator: {itemInput: i, items: {raw: '[]'}}
      after-nothing: {componentRef: {name: c}, dependentTasks: [nothing]}
`), map[string]any{"ns": []any{int64(1), int64(2), int64(3)}}, r)
	wantPhases(t, s, map[string]string{"": "Succeeded", "loop(0:1).maybe": "Skipped", "loop(1:2).maybe": "Succeeded", "after-nothing": "Succeeded"})
	wantOs := []any{}
	wantKept := []string{}
	wantAs := []string{}
	for i := range 3 {
		inner := []any{}
		for k, item := range []string{"a", fmt.Sprint(i + 1)} {
			path := fmt.Sprintf("loop(%d:%d).inner(%d:%s).x", i, i+1, k, item)
			inner = append(inner, "out of "+path)
			wantAs = append(wantAs, path)
		}
		wantOs = append(wantOs, inner)
		if i > 0 {
			wantKept = append(wantKept, fmt.Sprintf("%q", fmt.Sprintf("out of loop(%d:%d).maybe", i, i+1)))
		}
	}
	got := r.inputs["collect"]
	if diff := cmp.Diff(wantOs, got.Parameters["l"]); diff != "" {
		t.Errorf("a loop in a loop: -want +got:\n%s", diff)
	}
	if want := "[" + strings.Join(wantKept, ",") + "]"; got.Parameters["s"] != want {
		t.Errorf("what some iterations gave: got %v, want %s", got.Parameters["s"], want)
	}
	if diff := cmp.Diff(wantAs, r.artifacts("collect", "ins")); diff != "" {
		t.Errorf("artifacts: -want +got:\n%s", diff)
	}
	var over []string
	for i := range wantAs {
		over = append(over, r.artifacts(fmt.Sprintf("over(%d).y", i), "in")...)
	}
	if diff := cmp.Diff(wantAs, over); diff != "" {
		t.Errorf("a loop over artifacts: -want +got:\n%s\n%s", diff, dump(s))
	}
}

func TestConditionOfLoop(t *testing.T) {
	for _, c := range []struct {
		value string
		want  map[string]string
	}{
		{"yes", map[string]string{"loop": "Succeeded", "after": "Succeeded"}},
		{"no", map[string]string{"loop": "Skipped", "after": "Omitted"}},
	} {
		r := &recorder{}
		s := play(t, build("", `
  dag:
    tasks:
      loop:
        componentRef: {name: c}
        inputs: {parameters: {s: {runtimeValue: {constant: `+c.value+`}}}}
        parameterIterator: {itemInput: n, items: {raw: '[1, 2]'}}
        triggerPolicy: {condition: "inputs.parameter_values['s'] == 'yes'"}
      after: {componentRef: {name: c}, inputs: {parameters: {l: {taskOutputParameter: {producerTask: loop, outputParameterKey: o}}}}}
`), nil, r)
		wantPhases(t, s, c.want)
		if c.value == "yes" {
			if diff := cmp.Diff([]any{"out of loop.loop(0:1)", "out of loop.loop(1:2)"}, r.inputs["after"].Parameters["l"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
}

func TestOneOf(t *testing.T) {
	branches := `
  branch:
    inputDefinitions: {parameters: {v: {parameterType: STRING}}}
    outputDefinitions: {parameters: {o: {parameterType: STRING}}, artifacts: {a: {artifactType: {schemaTitle: system.Artifact}}}}
    dag:
      outputs:
        parameters: {o: {valueFromParameter: {producerSubtask: x, outputParameterKey: o}}}
        artifacts: {a: {artifactSelectors: [{producerSubtask: x, outputArtifactKey: a}]}}
      tasks: {x: {componentRef: {name: c}}}
  branches:
    inputDefinitions: {parameters: {v: {parameterType: STRING}}}
    outputDefinitions: {parameters: {one: {parameterType: STRING}}, artifacts: {one: {artifactType: {schemaTitle: system.Artifact}}}}
    dag:
      outputs:
        parameters:
          one: {valueFromOneof: {parameterSelectors: [{producerSubtask: first, outputParameterKey: o}, {producerSubtask: second, outputParameterKey: o}]}}
        artifacts:
          one: {artifactSelectors: [{producerSubtask: first, outputArtifactKey: a}, {producerSubtask: second, outputArtifactKey: a}]}
      tasks:
        first:
          componentRef: {name: branch}
          inputs: {parameters: {v: {componentInputParameter: v}}}
          triggerPolicy: {condition: "inputs.parameter_values['v'] == '1'"}
        second:
          componentRef: {name: branch}
          inputs: {parameters: {v: {componentInputParameter: v}}}
          triggerPolicy: {condition: "!(inputs.parameter_values['v'] == '1') && inputs.parameter_values['v'] == '2'"}
`
	root := `
  inputDefinitions: {parameters: {v: {parameterType: STRING}}}
  outputDefinitions: {parameters: {out: {parameterType: STRING}}}
  dag:
    outputs: {parameters: {out: {valueFromParameter: {producerSubtask: use, outputParameterKey: o}}}}
    tasks:
      pick: {componentRef: {name: branches}, inputs: {parameters: {v: {componentInputParameter: v}}}}
      use:
        componentRef: {name: c}
        inputs:
          parameters: {d: {taskOutputParameter: {producerTask: pick, outputParameterKey: one}}}
          artifacts: {in: {taskOutputArtifact: {producerTask: pick, outputArtifactKey: one}}}
`
	for value, producer := range map[string]string{"1": "pick.first.x", "2": "pick.second.x"} {
		r := &recorder{}
		s := play(t, build(branches, root), map[string]any{"v": value}, r)
		if got := r.inputs["use"].Parameters["d"]; got != "out of "+producer {
			t.Errorf("of branch %s: got %v\n%s", value, got, dump(s))
		}
		if got := r.artifacts("use", "in"); !slices.Equal(got, []string{producer}) {
			t.Errorf("of branch %s: got artifact %v", value, got)
		}
		prog, err := load(t, build(branches, root)).Compile(Options{Parameters: map[string]any{"v": value}})
		if err != nil {
			t.Fatal(err)
		}
		if run := Project(prog, s, ProjectOptions{}); run.Outputs == nil || run.Outputs.Parameters["out"] != "out of use" {
			t.Errorf("the run's outputs are %+v", run.Outputs)
		}
	}
	// No branch was taken: the optional input is not given.
	r := &recorder{}
	play(t, build(branches, root), map[string]any{"v": "3"}, r)
	if got := r.inputs["use"].Parameters["d"]; got != "dflt" {
		t.Errorf("of no branch: got %v", got)
	}
}

func TestOptionalInputsOfNestedPipelines(t *testing.T) {
	r := &recorder{}
	play(t, build(`
  sub:
    inputDefinitions:
      parameters:
        a: {parameterType: STRING, isOptional: true, defaultValue: sub default}
        b: {parameterType: STRING, isOptional: true}
      artifacts:
        f: {artifactType: {schemaTitle: system.Artifact}, isOptional: true}
    dag:
      tasks:
        x:
          componentRef: {name: c}
          inputs:
            parameters: {d: {componentInputParameter: b}, s: {componentInputParameter: a}}
            artifacts: {in: {componentInputArtifact: f}}
`, `
  dag: {tasks: {none: {componentRef: {name: sub}}, some: {componentRef: {name: sub}, inputs: {parameters: {a: {runtimeValue: {constant: x}}, b: {runtimeValue: {constant: y}}}}}}}
`), nil, r)
	if diff := cmp.Diff(map[string]any{"s": "sub default"}, r.parameters("none.x")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := r.inputs["none.x"].Parameters["d"]; got != "dflt" {
		t.Errorf("got %v for an input that nobody gave", got)
	}
	if diff := cmp.Diff(map[string]any{"s": "x", "d": "y"}, r.parameters("some.x")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRetries(t *testing.T) {
	r := &recorder{fail: map[string]bool{"own(0)": true, "sub.inherits(0)": true}}
	ir := build(`
  sub:
    dag:
      tasks:
        inherits: {componentRef: {name: c}}
        once: {componentRef: {name: c}, retryPolicy: {maxRetryCount: 0}}
`, `
  dag:
    tasks:
      own: {componentRef: {name: c}, retryPolicy: {maxRetryCount: 2, backoffDuration: 30s, backoffFactor: 2.0, backoffMaxDuration: 3600s}}
      sub: {componentRef: {name: sub}, retryPolicy: {maxRetryCount: 1, backoffDuration: 0s}}
      plain: {componentRef: {name: sub}}
`)
	s := play(t, ir, nil, r)
	wantPhases(t, s, map[string]string{"own": "Succeeded", "own(0)": "Failed", "own(1)": "Succeeded", "sub.inherits": "Succeeded", "sub.inherits(1)": "Succeeded", "sub.once": "Succeeded", "plain.inherits": "Succeeded"})
	prog, err := load(t, ir).Compile(Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := Project(prog, s, ProjectOptions{})
	for _, d := range run.RunDetails.TaskDetails {
		if d.Name == "own" && (d.ExecutorDetail == nil || len(d.ExecutorDetail.FailedMainJobs) != 1 || d.State != "SUCCEEDED" || d.PodName == "") {
			t.Errorf("own: %+v", d)
		}
	}
	want := &program.Retry{Limit: "2", Policy: "Always", Backoff: &program.Backoff{Duration: "30", Factor: "2", Cap: "3600"}}
	for _, c := range prog.Templates["pipeline/root"].Graph.Calls {
		if c.Name == "own" {
			if diff := cmp.Diff(want, c.Retry); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		}
	}
}

func TestLiteralsAtRunTime(t *testing.T) {
	r := &recorder{give: map[string]any{"a": "lazy"}}
	s := play(t, build(`
  strict:
    executorLabel: e
    inputDefinitions: {parameters: {mode: {parameterType: STRING, literals: [fast, slow]}}}
`, `
  dag:
    tasks:
      a: {componentRef: {name: c}}
      b: {componentRef: {name: strict}, inputs: {parameters: {mode: {taskOutputParameter: {producerTask: a, outputParameterKey: o}}}}}
`), nil, r)
	wantPhases(t, s, map[string]string{"a": "Succeeded", "b": "Error"})
	for n := range s.Nodes() {
		if n.Path == "run-1.b" && !strings.Contains(n.Message, `"lazy" is none of the allowed values`) {
			t.Errorf("the message is %q", n.Message)
		}
	}
}
