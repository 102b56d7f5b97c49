package kfp

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/program"
)

// hello is a small pipeline that is right; tests change it.
const hello = `
components:
  comp-echo:
    executorLabel: exec-echo
    inputDefinitions:
      parameters:
        text: {parameterType: STRING}
        n: {parameterType: NUMBER_INTEGER, isOptional: true, defaultValue: 3.0}
        mode: {parameterType: STRING, isOptional: true, literals: [fast, slow]}
    outputDefinitions:
      parameters:
        Output: {parameterType: STRING}
      artifacts:
        model: {artifactType: {schemaTitle: system.Model, schemaVersion: 0.0.1}}
deploymentSpec:
  executors:
    exec-echo:
      container:
        image: alpine
        command: [echo]
        args: ["{{$.inputs.parameters['text']}}"]
pipelineInfo: {name: hello}
root:
  inputDefinitions:
    parameters:
      message: {parameterType: STRING}
      count: {parameterType: NUMBER_INTEGER, defaultValue: 1.0, isOptional: true}
      ratio: {parameterType: NUMBER_DOUBLE, isOptional: true}
      flag: {parameterType: BOOLEAN, isOptional: true}
      items: {parameterType: LIST, isOptional: true}
      level: {parameterType: STRING, isOptional: true, literals: [low, high]}
  outputDefinitions:
    parameters:
      Output: {parameterType: STRING}
  dag:
    outputs:
      parameters:
        Output:
          valueFromParameter: {producerSubtask: second, outputParameterKey: Output}
    tasks:
      first:
        componentRef: {name: comp-echo}
        inputs:
          parameters:
            text: {componentInputParameter: message}
        taskInfo: {name: first}
      second:
        componentRef: {name: comp-echo}
        dependentTasks: [first]
        inputs:
          parameters:
            text: {taskOutputParameter: {producerTask: first, outputParameterKey: Output}}
        taskInfo: {name: second}
schemaVersion: 2.1.0
sdkVersion: kfp-2.14.3
`

const platform = `
platforms:
  kubernetes:
    pipelineConfig: {activeDeadlineSeconds: 60}
    deploymentSpec:
      executors:
        exec-echo: {imagePullPolicy: Always}
  other: {anything: [1]}
`

func TestLoadForms(t *testing.T) {
	docs, err := documents([]byte(hello))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(docs[0].value)
	if err != nil {
		t.Fatal(err)
	}
	snake := strings.NewReplacer("inputDefinitions", "input_definitions", "parameterType", "parameter_type", "executorLabel", "executor_label",
		"deploymentSpec", "deployment_spec", "pipelineInfo", "pipeline_info", "componentRef", "component_ref", "taskOutputParameter", "task_output_parameter").Replace(hello)
	indent := func(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }
	for name, c := range map[string]struct {
		data     string
		deadline int64
	}{
		"yaml":            {hello, 0},
		"json":            {string(asJSON), 0},
		"snake":           {snake, 0},
		"two documents":   {hello + "---\n" + platform, 60},
		"other order":     {platform + "---\n" + hello, 60},
		"empty documents": {"---\n---\n" + hello + "---\n", 0},
		"wrapper":         {"pipeline_spec:\n  " + indent(hello) + "\nplatform_spec:\n  " + indent(platform), 60},
		"camel wrapper":   {"pipelineSpec:\n  " + indent(hello), 0},
	} {
		if !IsIR([]byte(c.data)) {
			t.Errorf("%s: it is not taken for a pipeline", name)
		}
		p, err := Load(Source{Name: "p.yaml", Data: []byte(c.data)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		prog, err := p.Compile(Options{Parameters: map[string]any{"message": "hi"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(prog.Templates) != 2 || prog.Deadline != c.deadline {
			t.Errorf("%s: %d templates, deadline %d", name, len(prog.Templates), prog.Deadline)
		}
	}
}

func TestIsIR(t *testing.T) {
	for _, s := range []string{
		"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "", "[]", "x: 1", "# PIPELINE DEFINITION\napiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", ": {",
	} {
		if IsIR([]byte(s)) {
			t.Errorf("%q is taken for a pipeline", s)
		}
	}
	if !IsIR([]byte("# PIPELINE DEFINITION\n# Name: echo\n")) {
		t.Error("an empty pipeline is not taken for one")
	}
}

// change applies "old => new" replacements, each of which must find its place.
func change(t *testing.T, s string, replacements ...string) string {
	t.Helper()
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(s, replacements[i]) {
			t.Fatalf("%q is not in the pipeline", replacements[i])
		}
		s = strings.Replace(s, replacements[i], replacements[i+1], 1)
	}
	return s
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []string
		want    []string
	}{
		{"unknown field", []string{"taskInfo: {name: first}", "taskInfo: {nam: first}"}, []string{`root.dag.tasks.first.taskInfo.nam: unknown field "nam"`}},
		{"wrong kind", []string{"dependentTasks: [first]", "dependentTasks: first"}, []string{"root.dag.tasks.second.dependentTasks: got the text \"first\" where a list is needed; write a list"}},
		{"wrong number", []string{"dependentTasks: [first]", "iteratorPolicy: {parallelismLimit: 1.5}"}, []string{"parallelismLimit: got the number 1.5 where a whole number is needed"}},
		{"schema", []string{"schemaVersion: 2.1.0", "schemaVersion: 2.0.0"}, []string{"schemaVersion: version 2.0.0 is not supported, only 2.1.0; compile"}},
		{"no schema", []string{"schemaVersion: 2.1.0", ""}, []string{"schemaVersion: it is missing"}},
		{"no name", []string{"{name: hello}", "{name: }"}, []string{"pipelineInfo.name: nothing is no name"}},
		{"no root", []string{"root:", "extra:"}, []string{`extra: unknown field "extra"; remove it, or check its spelling`}},
		{"executor label", []string{"executorLabel: exec-echo", "executorLabel: exec-none"}, []string{`components.comp-echo.executorLabel: there is no executor "exec-none"; name one of`}},
		{"component", []string{"componentRef: {name: comp-echo}", "componentRef: {name: comp-none}"}, []string{`root.dag.tasks.first.componentRef.name: there is no component "comp-none"`}},
		{"dependent", []string{"dependentTasks: [first]", "dependentTasks: [none]"}, []string{`root.dag.tasks.second.dependentTasks[0]: there is no task "none"`}},
		{"producer", []string{"producerTask: first", "producerTask: none"}, []string{`root.dag.tasks.second.inputs.parameters.text.taskOutputParameter: there is no task "none"`}},
		{"output", []string{"producerTask: first, outputParameterKey: Output", "producerTask: first, outputParameterKey: None"}, []string{`the task first has no output parameter "None"`}},
		{"dag output", []string{"producerSubtask: second", "producerSubtask: none"}, []string{`root.dag.outputs.parameters.Output.valueFromParameter: there is no task "none"`}},
		{"component input", []string{"componentInputParameter: message", "componentInputParameter: none"}, []string{`text.componentInputParameter: there is no input parameter "none"`}},
		{"cycle", []string{"componentRef: {name: comp-echo}", "componentRef: {name: comp-echo}\n        dependentTasks: [second]"}, []string{"root.dag: its tasks wait for each other: first -> second -> first"}},
		{"missing input", []string{"text: {componentInputParameter: message}", "n: {runtimeValue: {constant: 1.0}}"}, []string{`root.dag.tasks.first.inputs.parameters: the component comp-echo needs the input parameter "text"`}},
		{"no source", []string{"text: {componentInputParameter: message}", "text: {}"}, []string{"root.dag.tasks.first.inputs.parameters.text: it comes from nowhere"}},
		{"two sources", []string{"text: {componentInputParameter: message}", "text: {componentInputParameter: message, runtimeValue: {constant: x}}"}, []string{"it comes from several places"}},
		{"constant's type", []string{"text: {componentInputParameter: message}", "text: {componentInputParameter: message}\n            n: {runtimeValue: {constant: many}}"},
			[]string{`inputs.parameters.n: the text "many" is no NUMBER_INTEGER`}},
		{"output's type", []string{"text: {taskOutputParameter: {producerTask: first, outputParameterKey: Output}}", "text: {runtimeValue: {constant: a}}\n            n: {taskOutputParameter: {producerTask: first, outputParameterKey: Output}}"},
			[]string{"n: a STRING is given where a NUMBER_INTEGER is declared"}},
		{"literal", []string{"text: {componentInputParameter: message}", "text: {componentInputParameter: message}\n            mode: {runtimeValue: {constant: lazy}}"},
			[]string{`mode: "lazy" is none of the literals of the input; use one of "fast", "slow"`}},
		{"type", []string{"count: {parameterType: NUMBER_INTEGER", "count: {parameterType: INTEGER"}, []string{`root.inputDefinitions.parameters.count.parameterType: "INTEGER" is no parameter type`}},
		{"default", []string{"defaultValue: 1.0", "defaultValue: one"}, []string{`count.defaultValue: the text "one" is no NUMBER_INTEGER`}},
		{"default literal", []string{"literals: [low, high]", "literals: [low, high], defaultValue: mid"}, []string{`level.defaultValue: "mid" is none of the literals`}},
		{"placeholder", []string{"inputs.parameters['text']", "inputs.parameters['txt']"}, []string{`components.comp-echo: its executor exec-echo uses the input parameter "txt", which the component does not have`}},
		{"output placeholder", []string{"inputs.parameters['text']", "outputs.artifacts['mod'].uri"}, []string{`uses the output artifact "mod"`}},
		{"image", []string{"image: alpine", "image: ''"}, []string{"deploymentSpec.executors.exec-echo.container.image: it is missing"}},
		{"strategy", []string{"dependentTasks: [first]", "triggerPolicy: {strategy: SOME}"}, []string{`triggerPolicy.strategy: "SOME" is no strategy`}},
		{"condition", []string{"dependentTasks: [first]", "triggerPolicy: {condition: 'inputs.parameter_values['}"}, []string{"triggerPolicy.condition: ERROR"}},
		{"condition's input", []string{"dependentTasks: [first]", "triggerPolicy: {condition: \"inputs.parameter_values['none'] == 1\"}"}, []string{`triggerPolicy.condition: it reads the input "none", which the task does not have`}},
		{"selector", []string{"text: {componentInputParameter: message}", "text: {componentInputParameter: message, parameterExpressionSelector: 'a['}"}, []string{"parameterExpressionSelector: ERROR"}},
		{"retry", []string{"dependentTasks: [first]", "retryPolicy: {maxRetryCount: -1, backoffDuration: soon}"}, []string{"maxRetryCount: it is negative", `backoffDuration: "soon" is no duration`}},
		{"iterator", []string{"dependentTasks: [first]", "parameterIterator: {itemInput: none, items: {raw: '{}'}}"}, []string{"itemInput: the component has no input parameter \"none\"", "items.raw: \"{}\": it is no list"}},
		{"iterator's input", []string{"dependentTasks: [first]", "parameterIterator: {itemInput: n, items: {inputParameter: none}}"}, []string{`items.inputParameter: the task has no input parameter "none"`}},
		{"resolver", []string{"image: alpine\n        command: [echo]", "image: alpine\n        command: [echo]", "      container:\n", "      resolver: {outputArtifactQueries: {}}\n      container:\n"}, []string{"resolver: resolvers need", "it is of several kinds at once"}},
		{"task name", []string{"      first:\n", "      fir.st:\n", "[first]", "[fir.st]", "producerTask: first", "producerTask: fir.st"}, []string{"a task's name has neither dots"}},
		// All problems come at once.
		{"several", []string{"schemaVersion: 2.1.0", "schemaVersion: 1.0.0", "executorLabel: exec-echo", "executorLabel: x", "[first]", "[none]"},
			[]string{"schemaVersion:", "executorLabel:", "dependentTasks[0]:"}},
	} {
		_, err := Load(Source{Name: "p.yaml", Data: []byte(change(t, hello, c.changes...))})
		var invalid *InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want an InvalidError", c.name, err)
			continue
		}
		for _, p := range invalid.Problems {
			if p.File != "p.yaml" || p.What == "" || p.Do == "" {
				t.Errorf("%s: a problem does not say where, what and what to do: %+v", c.name, p)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", c.name, err, want)
			}
		}
	}
}

func TestRecursiveComponents(t *testing.T) {
	_, err := Load(Source{Name: "p.yaml", Data: []byte(change(t, hello, "components:\n", `components:
  comp-a:
    dag: {tasks: {b: {componentRef: {name: comp-b}, taskInfo: {name: b}}}}
  comp-b:
    dag: {tasks: {a: {componentRef: {name: comp-a}, taskInfo: {name: a}}}}
`))})
	if err == nil || !strings.Contains(err.Error(), "components.comp-a: it contains itself: comp-a -> comp-b -> comp-a") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenDocuments(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 'b'; i < 'k'; i++ {
		prev := string(i - 1)
		bomb += string(i) + ": &" + string(i) + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+",", 10), ",") + "]\n"
	}
	for name, c := range map[string]struct{ data, want string }{
		"empty":     {"# PIPELINE DEFINITION\n", "p.yaml: there is no pipeline spec in it; compile"},
		"yaml":      {"pipelineInfo: {", "p.yaml:2: this is no YAML or JSON: "},
		"list":      {"- a", "p.yaml: document 1 is a list; give"},
		"two specs": {hello + "---\n" + hello, "p.yaml: there are 2 pipeline specs in it; give each"},
		"twice":     {"a: 1\na: 2\n", `the key "a" appears twice`},
		"bomb":      {bomb, "too large"},
		"nan":       {"a: .nan", "no number that JSON can hold"},
		"list key":  {"[a]: 1", "the key of a mapping must be a text"},
		"deep":      {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "p.yaml:1: this is no YAML or JSON: the document is too"},
		"platforms": {hello + "---\n" + platform + "---\n" + platform, "there are 2 platform specs in it; merge them"},
	} {
		_, err := Load(Source{Name: "p.yaml", Data: []byte(c.data)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %.200v, want %q", name, err, c.want)
		}
	}
}

func TestOptions(t *testing.T) {
	p := load(t, hello)
	for _, c := range []struct {
		name       string
		parameters map[string]any
		want       []string
	}{
		{"right", map[string]any{"message": "x", "count": 2, "ratio": 1, "flag": false, "items": []string{"a"}, "level": "low"}, nil},
		{"missing", nil, []string{"p.yaml: parameters.message: the pipeline needs this STRING, and it has no default; give it, as in -p message=..."}},
		{"unknown", map[string]any{"message": "x", "more": 1}, []string{"parameters.more: the pipeline has no input parameter of that name; give only the pipeline's own inputs: count, flag"}},
		{"types", map[string]any{"message": 5, "count": "2", "ratio": "x", "flag": "true", "items": map[string]any{}},
			[]string{"message: the number 5 is no STRING", "count: the text \"2\" is no NUMBER_INTEGER", "ratio:", "flag:", "items: a mapping is no LIST"}},
		{"fraction", map[string]any{"message": "x", "count": 1.5}, []string{"count: the number 1.5 is no NUMBER_INTEGER"}},
		{"literal", map[string]any{"message": "x", "level": "mid"}, []string{`level: "mid" is none of the literals; use one of "low", "high"`}},
		{"null", map[string]any{"message": nil, "count": nil}, []string{"message: it is null, and the pipeline needs it"}},
	} {
		_, err := p.Compile(Options{Parameters: c.parameters})
		if len(c.want) == 0 && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q", c.name, err, want)
			}
		}
	}
	if _, err := p.Compile(Options{Lint: true}); err != nil {
		t.Errorf("lint asks for parameters: %v", err)
	}
}

func TestArtifactsOfTheRun(t *testing.T) {
	p := load(t, change(t, hello, "root:\n  inputDefinitions:\n", `root:
  inputDefinitions:
    artifacts:
      model: {artifactType: {schemaTitle: system.Model, schemaVersion: 0.0.1}}
      any: {artifactType: {schemaTitle: system.Artifact, schemaVersion: 0.0.1}, isOptional: true}
      many: {artifactType: {schemaTitle: system.Dataset, schemaVersion: 0.0.1}, isArtifactList: true, isOptional: true}
`))
	one := []program.Artifact{{URI: "/x"}}
	of := func(typ string) []program.Artifact { return []program.Artifact{{URI: "/x", Type: typ}} }
	for name, c := range map[string]struct {
		given map[string][]program.Artifact
		want  string
	}{
		"right":     {map[string][]program.Artifact{"model": one, "any": of("system.Model"), "many": {{URI: "/a"}, {URI: "/b"}}}, ""},
		"none":      {nil, "p.yaml: artifacts.model: the pipeline needs this system.Model; give it, as in --artifact model=URI"},
		"stranger":  {map[string][]program.Artifact{"model": one, "modell": one}, "artifacts.modell: the pipeline has no input artifact of that name; give only the pipeline's own inputs: any, many, model"},
		"two":       {map[string][]program.Artifact{"model": {{URI: "/a"}, {URI: "/b"}}}, "artifacts.model: there are 2 of it, and the pipeline takes one"},
		"type":      {map[string][]program.Artifact{"model": of("system.Dataset")}, "artifacts.model: it is a system.Dataset, and the pipeline takes a system.Model"},
		"same type": {map[string][]program.Artifact{"model": of("system.Model")}, ""},
	} {
		_, err := p.Compile(Options{Parameters: map[string]any{"message": "x"}, Artifacts: c.given})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if got := p.TypedArtifacts(map[string][]program.Artifact{"model": one})["model"][0].Type; got != "system.Model" {
		t.Errorf("an artifact without a type gets %q", got)
	}
	if one[0].Type != "" {
		t.Error("the caller's artifact was changed")
	}
}

func TestParseParameters(t *testing.T) {
	p := load(t, hello)
	got, err := p.ParseParameters(map[string]string{"message": "5", "count": "2", "ratio": "0.5", "flag": "True", "items": `["a", 1]`, "more": "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"message": "5", "count": int64(2), "ratio": 0.5, "flag": true, "items": []any{"a", int64(1)}, "more": "x"}
	if a, b := brief(got), brief(want); a != b {
		t.Errorf("got %s, want %s", a, b)
	}
	if _, err := p.ParseParameters(map[string]string{"count": "two", "flag": "maybe"}); err == nil ||
		!strings.Contains(err.Error(), `parameters.count: "two" is no NUMBER_INTEGER`) || !strings.Contains(err.Error(), "give true or false") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte(hello + "---\n" + platform))
	f.Add([]byte(`{"pipeline_spec": {"root": {"dag": {"tasks": {"a": null}}}}}`))
	f.Add([]byte("a: &a {b: 1}\nroot: {<<: *a, dag: {}}\n"))
	if dir := os.Getenv("CONFORMANCE"); dir != "" {
		for _, name := range []string{"artifacts_complex.yaml", "pvc_mount.yaml", "pipeline_as_exit_task.yaml"} {
			if data, err := os.ReadFile(filepath.Join(dir, "kfp", "valid", name)); err == nil {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = IsIR(data)
		p, err := Load(Source{Name: "f", Data: data})
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			return
		}
		// What is accepted compiles.
		prog, err := p.Compile(Options{Lint: true})
		if err != nil {
			t.Fatalf("it is valid and does not compile: %v", err)
		}
		checkProgram(t, prog)
	})
}
