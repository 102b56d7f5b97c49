package argo

import (
	"strings"
	"testing"
)

// lint gives all problems of a manifest, one a line.
func lint(t *testing.T, src string, others ...string) string {
	t.Helper()
	var sources []Source
	for _, o := range others {
		sources = append(sources, Source{Name: "other.yaml", Data: []byte(o)})
	}
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, sources)
	if err != nil {
		return err.Error()
	}
	return b.Lint(Options{}).Error()
}

const head = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\n"

func TestFields(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"unknown", head + "spec:\n  entrypoint: a\n  entrypoints: b\n  templates: [{name: a, container: {image: x}}]",
			"wf.yaml:6:3: spec.entrypoints: is not a known field; did you mean entrypoint?"},
		{"case", head + "spec:\n  EntryPoint: a", "spec.EntryPoint: is not a known field; did you mean entrypoint?"},
		{"deep", head + "spec:\n  templates:\n  - name: a\n    container:\n      image: x\n      volumeMounts:\n      - {name: v, mountPth: /x}",
			"wf.yaml:10:19: spec.templates[0].container.volumeMounts[0].mountPth: is not a known field; did you mean mountPath?"},
		{"number for text", head + "spec: {entrypoint: 3}", `wf.yaml:4:20: spec.entrypoint: must be a string, not a number; write it in quotes: "3"`},
		{"boolean for text", head + "spec: {entrypoint: y}", `spec.entrypoint: must be a string, not a boolean; write it in quotes: "y"`},
		{"object for list", head + "spec: {arguments: {parameters: {a: b}}}", "spec.arguments.parameters: must be a list, not an object; begin each entry with a dash"},
		{"text for list", head + "spec: {templates: abc}", "spec.templates: must be a list, not a string"},
		{"text for number", head + "spec: {parallelism: '3'}", "spec.parallelism: must be a number, not a string; write it without quotes"},
		{"text for boolean", head + "spec: {suspend: 'true'}", "spec.suspend: must be a boolean, not a string"},
		{"fraction", head + "spec: {parallelism: 1.5}", "spec.parallelism: must be a whole number that fits in 64 bits, not 1.5"},
		{"too large", head + "spec: {priority: 3000000000}", "spec.priority: must be a whole number that fits in 32 bits"},
		{"quantity", head + "spec: {templates: [{name: a, container: {image: x, resources: {limits: {cpu: fast}}}}]}", `limits.cpu: "fast" is not a valid quantity`},
		{"any string", head + "spec: {arguments: {parameters: [{name: a, value: [1]}]}}", "spec.arguments.parameters[0].value: must be a string, a number or a boolean"},
		{"int or string", head + "spec: {templates: [{name: a, container: {image: x}, activeDeadlineSeconds: 1.5}]}", "activeDeadlineSeconds: must be a whole number or a string"},
		{"null entry", head + "spec: {templates: [{name: a, container: {image: x, args: [~]}}]}", "args[0]: must not be empty"},
		{"required", head + "spec: {arguments: {parameters: [{value: a}]}}", "spec.arguments.parameters[0].name: is missing"},
		{"legacy warns", head + "spec: {entrypoint: a, synchronization: {mutex: {name: m}}, templates: [{name: a, container: {image: x}}]}",
			"spec.synchronization.mutex: warning: is a field of older versions and has no effect; write mutexes: with a list"},
		{"legacy schedule", "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: x}\nspec: {schedule: '* * * * *', workflowSpec: {}}",
			"spec.schedule: is a field of older versions; write schedules: with a list"},
		{"kind", "apiVersion: argoproj.io/v1alpha1\nkind: WorkFlow", `kind: "WorkFlow" is not a kind of Argo's API`},
		{"version", "apiVersion: argoproj.io/v2\nkind: Workflow", "apiVersion: argoproj.io/v2 is not a version of Argo's API; write argoproj.io/v1alpha1"},
		{"no version", "dbapiVersion: argoproj.io/v1alpha1\nkind: Workflow", "apiVersion: is missing; every object needs apiVersion and kind; did you mean apiVersion where it says dbapiVersion?"},
		{"no object", "- a\n- b", "must be an object with apiVersion, kind, metadata and spec, not a list"},
		{"empty", "# nothing", "wf.yaml: is empty"},
		{"syntax", "apiVersion: argoproj.io/v1alpha1\na: ]", "wf.yaml:2: is not valid YAML: did not find expected node content"},
		{"documents", head + "spec: {entrypoint: a, templates: [{name: a, container: {image: x}}]}\n---\n" + head + "spec: {x: 1}", "wf.yaml:9:8: document 2: spec.x: is not a known field"},
		{"config map", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: 1}", `data.a: must be a string, not a number; write it in quotes: "1"`},
		{"config map name", "apiVersion: v1\nkind: ConfigMap\ndata: {a: b}", "metadata.name: is missing; a ConfigMap is referred to by its name"},
		{"status", head + "spec: {entrypoint: a, templates: [{name: a, container: {image: x}}]}\nstatus: {phase: 3, anything: [1]}", ""},
		{"ours", head + "spec: {templates: [{name: a, container: {image: x}, outputs: {artifacts: [{name: o, keyFrom: {file: /x}}]}}]}", "keyFrom.path: is missing"},
	} {
		if got := lint(t, tc.src); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
}

// What is wrong with fields hides nothing else that is wrong: a run of the check names all.
func TestAllErrorsAtOnce(t *testing.T) {
	for _, tc := range []struct{ name, spec, want string }{
		{"misspelt field", "spec:\n  entrypiont: mian\n  templates:\n  - name: main\n    container: {image: x, args: ['{{inputs.parameters.no}}']}",
			"wf.yaml:5:3: spec.entrypiont: is not a known field; did you mean entrypoint?\n" +
				"wf.yaml:5:15: spec.entrypoint: there is no template \"mian\"; did you mean main?\n" +
				"wf.yaml:8:34: spec.templates[0].container.args[0]: failed to resolve {{inputs.parameters.no}}; the template has no input parameter \"no\""},
		{"unknown field", "spec:\n  entrypoint: mian\n  color: red\n  templates: [{name: main, container: {image: x}}]",
			"wf.yaml:5:15: spec.entrypoint: there is no template \"mian\"; did you mean main?\nwf.yaml:6:3: spec.color: is not a known field; remove it, or move it to where it belongs"},
		{"wrong scalars", "spec:\n  entrypoint: 1\n  parallelism: '0'\n  templates: [{name: '1', container: {image: 5}}]",
			"wf.yaml:5:15: spec.entrypoint: must be a string, not a number; write it in quotes: \"1\"\n" +
				"wf.yaml:6:16: spec.parallelism: must be a number, not a string; write it without quotes\n" +
				"wf.yaml:6:16: spec.parallelism: must be at least 1\n" +
				"wf.yaml:7:46: spec.templates[0].container.image: must be a string, not a number; write it in quotes: \"5\""},
		{"one for a list", "spec:\n  entrypoint: a\n  templates:\n  - name: a\n    container: {image: x, args: '{{inputs.parameters.no}}'}",
			"wf.yaml:8:33: spec.templates[0].container.args: must be a list, not a string; write [...], or one entry a line with a dash\n" +
				"wf.yaml:8:33: spec.templates[0].container.args[0]: failed to resolve {{inputs.parameters.no}}; the template has no input parameter \"no\""},
		{"a template that cannot be used hides no other", "spec:\n  entrypoint: a\n  templates:\n  - {name: a, container: [x], inputs: {parameters: [{name: p}]}}\n  - {name: b, script: {image: x, source: '{{inputs.parameters.no}}'}}",
			"wf.yaml:7:26: spec.templates[0].container: must be an object, not a list\n" +
				"wf.yaml:8:42: spec.templates[1].script.source: failed to resolve {{inputs.parameters.no}}; the template has no input parameter \"no\""},
		{"nothing follows from what cannot be used", "spec:\n  entrypoint: a\n  arguments: {parameters: 3}\n  templates: [{name: a, container: {image: '{{workflow.parameters.p}}'}}]",
			"wf.yaml:6:27: spec.arguments.parameters: must be a list, not a number; write [...], or one entry a line with a dash"},
		{"missing field", "spec:\n  entrypoint: a\n  templates: [{name: a, dag: {}}]", "wf.yaml:6:30: spec.templates[0].dag.tasks: is missing"},
	} {
		if got := lint(t, head+tc.spec); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
	}
	// JSON has places too.
	src := `{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "x"},
  "spec": {"entrypoint": "a",
    "colour" : "red", "templates": [{"name": "a", "container": {"image": 5}}]}}`
	want := "wf.yaml:3:5: spec.colour: is not a known field; remove it, or move it to where it belongs\n" +
		"wf.yaml:3:74: spec.templates[0].container.image: must be a string, not a number; write it in quotes: \"5\""
	if got := lint(t, src); got != want {
		t.Errorf("JSON:\n got %s\nwant %s", got, want)
	}
}

func TestOtherKindsAreRead(t *testing.T) {
	for _, src := range []string{
		"apiVersion: argoproj.io/v1alpha1\nkind: WorkflowEventBinding\nmetadata: {name: x}\nspec: {event: {selector: 'true'}, submit: {workflowTemplateRef: {name: t}, arguments: {parameters: [{name: a, valueFrom: {event: payload.x}}]}}}",
		"apiVersion: argoproj.io/v1alpha1\nkind: Sensor\nmetadata: {name: x}\nspec: {anything: [1]}",
		"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: aGk=}\nstringData: {b: c}",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {whatever: 1}",
	} {
		if got := lint(t, src); got != "" {
			t.Errorf("%s\n%s", src, got)
		}
	}
	b, err := Load(Source{Name: "a", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: aGk=}\nstringData: {b: c}")}, nil)
	if err != nil || b.Secrets["x"]["a"] != "hi" || b.Secrets["x"]["b"] != "c" {
		t.Errorf("secrets %v, %v", b.Secrets, err)
	}
	if _, err := b.Compile(Options{}); err == nil || !strings.Contains(err.Error(), "holds nothing that can be run") {
		t.Errorf("compiling a Secret gave %v", err)
	}
}

func TestBrokenFilesAtHand(t *testing.T) {
	broken := "apiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: broken}\nspec: {templates: [{name: t, container: {image: x, oops: 1}}]}"
	alone := head + "spec: {entrypoint: a, templates: [{name: a, container: {image: x}}]}"
	load := func(src string) *Bundle {
		b, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, []Source{{Name: "broken.yaml", Data: []byte(broken)}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	b := load(alone)
	if ps := b.Validate(Options{}); len(ps.Errors()) > 0 || len(ps) != 1 || !strings.Contains(ps[0].Error(), "broken.yaml:4:52: spec.templates[0].container.oops: warning: is not a known field") {
		t.Errorf("a broken file that nothing refers to gives %v", ps)
	}
	if _, err := b.Compile(Options{}); err != nil {
		t.Error(err)
	}
	for _, spec := range []string{"{workflowTemplateRef: {name: broken}, entrypoint: t}", "{entrypoint: a, templates: [{name: a, steps: [[{name: s, templateRef: {name: broken, template: t}}]]}]}"} {
		b := load(head + "spec: " + spec)
		if ps := b.Validate(Options{}).Errors(); len(ps) != 1 {
			t.Errorf("%s gives %v", spec, ps)
		}
		if ps := b.Lint(Options{}).Errors(); len(ps) != 1 {
			t.Errorf("linting %s gives %v", spec, ps)
		}
	}
}
