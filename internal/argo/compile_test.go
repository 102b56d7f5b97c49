package argo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/program"
)

// compile compiles a manifest with others beside it.
func compile(t *testing.T, src string, opts Options, others ...string) *program.Program {
	t.Helper()
	var sources []Source
	for _, o := range others {
		sources = append(sources, Source{Name: "other.yaml", Data: []byte(o)})
	}
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, sources)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asJSON gives a value's JSON on one line.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pick follows a path of field names and indices ("calls.0.when") in a value's JSON.
func pick(t *testing.T, v any, path string) string {
	t.Helper()
	docs, _, err := parseDocuments([]byte(`{"v":` + asJSON(t, v) + "}"))
	if err != nil {
		t.Fatal(err)
	}
	at := "v"
	for part := range strings.SplitSeq(path, ".") {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			at += "[" + part + "]"
		} else {
			at = join(at, part)
		}
	}
	n, ok := docs[0].find(at)
	if !ok {
		return "nothing"
	}
	return string(n.json())
}

func TestCompileEverything(t *testing.T) {
	b, err := loadEverything(t, everything(t))
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(Options{Parameters: map[string]string{"size": "2", "extra": "e"}, Labels: map[string]string{"more": "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	body := func(name string) any { return p.Templates["local/"+name].Task }
	main, graph, mk := p.Templates["local/main"], p.Templates["local/graph"], p.Templates["local/make"]
	for _, tc := range []struct {
		v          any
		path, want string
	}{
		{p, "name", `"everything-"`},
		{p, "serviceAccount", `"runner"`},
		{p, "parallelism", "4"},
		{p, "deadline", "600"},
		{p, "priority", "7"},
		{p, "labels", `{"kind":"test","more":"yes","size":"{{=workflow.parameters.size}}","team":"ml","tier":"gold"}`},
		{p, "annotations", `{"why":"testing"}`},
		{p, "configMaps", `{"settings":{"limit":"2"}}`},
		{p, "locks", `[{"semaphore":true,"name":"settings","key":"limit"},{"name":"one-at-a-time"}]`},
		{p, "pod.nodeSelector", `{"disk":"ssd"}`},
		{p, "parameters", `[{"name":"message","default":{"const":"hello"}},{"name":"size","default":{"const":"2"},"allowed":["1","2","3"]},` +
			`{"name":"limit","default":{"configMap":{"name":"settings","key":"limit"},"default":{"const":"1"}}},{"name":"extra","default":{"const":"e"}}]`},
		{p, "artifacts", `[{"name":"seed","default":{"location":{"raw":{"data":"a seed"}}}}]`},
		{p, "entry", `{"name":"","template":{"scope":"local","name":"main"},"arguments":{"parameters":[{"name":"message","from":{"ref":"workflow.parameters.message"}}],` +
			`"artifacts":[{"name":"seed","from":{"ref":"workflow.artifacts.seed"}}]}}`},
		{p, "onExit", `{"name":"onExit","template":{"scope":"local","name":"notify"}}`},
		{p, "lifecycle", `[{"name":"started","expression":"workflow.status == \"Running\"","call":{"name":"started","template":{"scope":"local","name":"notify"}}}]`},

		{main, "graph.stages", "[[0,1],[2],[3],[4]]"},
		{main, "parallelism", "2"},
		{main, "graph.calls.0.arguments", `{"parameters":[{"name":"text","from":{"text":"{{inputs.parameters.message}}"}}],"artifacts":[{"name":"seed","from":{"ref":"inputs.artifacts.seed"}}]}`},
		{main, "graph.calls.1.when", `{"form":"when","source":"{{inputs.parameters.message}} == hello"}`},
		{main, "graph.calls.1.loop", `{"items":[{"a":1,"b":"x"},{"a":2,"b":"z"}]}`},
		{main, "graph.calls.1.continueOn", `{"failed":true}`},
		{main, "graph.calls.2.lifecycle.0", `{"name":"exit","exit":true,"call":{"name":"exit","template":{"scope":"local","name":"notify"}}}`},
		{main, "graph.calls.2.lifecycle.1.call.arguments.parameters.0", `{"name":"text","from":{"const":"running"}}`},
		{main, "graph.calls.3.loop", `{"sequence":{"count":"2","format":"n%02d"}}`},
		{main, "outputs.parameters.0.from", `{"ref":"steps.graph.outputs.parameters.answer"}`},
		{main, "retry.limit", `"1"`},

		{graph, "graph.failFast", "nothing"},
		{graph, "graph.calls.1.needs", "[0]"},
		{graph, "graph.calls.1.depends", `{"op":"or","args":[{"op":"is","result":"Succeeded"},{"op":"is","result":"Failed"}]}`},
		{graph, "graph.calls.2.depends.args.1", `{"op":"not","args":[{"op":"is","call":1,"result":"Failed"}]}`},
		{graph, "graph.calls.2.loop", `{"param":{"text":"{{tasks.a.outputs.result}}"}}`},
		{graph, "graph.calls.2.arguments", `{"parameters":[{"name":"made","from":{"ref":"inputs.parameters.made"}}]}`},
		{graph, "graph.calls.2.template.inline.inputs", `{"parameters":[{"name":"made","optional":true}]}`},
		{graph, "graph.calls.2.template.inline.task.containers.0.command", `["echo","{{item}}","{{inputs.parameters.made}}"]`},
		{graph, "outputs.parameters.0.from", `{"expr":"tasks.a.outputs.result"}`},

		{mk, "task.containers.0.image", `"busybox"`},
		{mk, "task.containers.0.env", `[{"name":"SECRET","secret":"keys","key":"token"},{"name":"FROM_DEFAULTS","value":"yes"}]`},
		{mk, "task.containers.0.mounts", `[{"volume":"scratch","path":"/out"},{"volume":"config","path":"/config","readOnly":true}]`},
		{mk, "task.containers.0.cpuLimit", `"500m"`},
		{mk, "task.containers.0.memoryLimit", `"64Mi"`},
		{mk, "task.volumes", `[{"name":"scratch","kind":"emptyDir"},{"name":"config","kind":"configMap","source":"settings","items":{"limit":"limit.txt"}}]`},
		{mk, "task.pod.containers.0.mirrorVolumeMounts", "true"},
		{mk, "task.result", "nothing"},
		{mk, "inputs.artifacts", `[{"name":"seed","path":"/in/seed","mode":420}]`},
		{mk, "outputs", `{"parameters":[{"name":"out","path":"/out/text","default":{"const":"nothing"},"globalName":"made"}],"artifacts":[{"name":"file","path":"/out/file","archive":"none"}]}`},
		{mk, "cache", `{"scheme":"key","name":"memo","key":"make-{{inputs.parameters.text}}","maxAge":"1h"}`},
		{mk, "timeout", `"30s"`},
		{mk, "labels", `{"step":"make"}`},

		{p.Templates["local/script"], "retry", `{"limit":"3","policy":"OnError","expression":"asInt(lastRetry.exitCode) \u003e 1","backoff":{"duration":"1s","factor":"2","cap":"5s","maxDuration":"1m"}}`},
		{p.Templates["local/script"], "deadline", `"20"`},
		{body("script"), "result", "true"},
		{body("script"), "script", `"print([1, 2])\n"`},
		{body("request"), "request", `{"method":"POST","url":"https://example.com","headers":[{"name":"X-Token","secret":"keys","key":"token"}],"body":"text","timeoutSeconds":5,"successCondition":"response.statusCode == 200"}`},
		{body("set"), "containers.1.needs", `["first"]`},
		{body("set"), "containers.0.retries", `"2"`},
		{p.Templates["local/wait"], "suspend", `{"duration":"1"}`},
		{p.Templates["local/wait"], "outputs.parameters.0", `{"name":"approved","supplied":true}`},
	} {
		got := pick(t, tc.v, tc.path)
		if strings.HasPrefix(tc.want, "{") || strings.HasPrefix(tc.want, "[") {
			var a, b any
			if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(tc.want), &b) != nil || !cmp.Equal(a, b) {
				t.Errorf("%s is\n     %s\nwant %s", tc.path, got, tc.want)
			}
		} else if got != tc.want {
			t.Errorf("%s is %s, want %s", tc.path, got, tc.want)
		}
	}
	for _, name := range []string{"lister", "object", "plugged"} {
		if _, ok := p.Templates["local/"+name]; ok {
			t.Errorf("%s is in the program, though nothing calls it", name)
		}
	}
}

const shared = `apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: shared}
spec:
  entrypoint: main
  onExit: bye
  suspend: true
  arguments:
    parameters: [{name: a, value: "1", enum: ["1", "2"]}, {name: b, value: x}]
  workflowMetadata: {labels: {from: template}}
  templates:
  - name: main
    inputs: {parameters: [{name: a}]}
    steps: [[{name: s, template: leaf, arguments: {parameters: [{name: v, value: "{{inputs.parameters.a}}"}]}}]]
  - name: leaf
    inputs: {parameters: [{name: v}]}
    container: {image: x, command: [echo, "{{inputs.parameters.v}}"]}
  - name: bye
    container: {image: x}
`

func TestWorkflowTemplateRef(t *testing.T) {
	p := compile(t, head+"spec: {workflowTemplateRef: {name: shared}, arguments: {parameters: [{name: a, value: '3'}]}, hooks: {exit: {template: main}}}", Options{}, shared)
	for path, want := range map[string]string{
		"entry.template":           `{"name":"main","scope":"local"}`,
		"onExit.template.name":     `"bye"`,
		"suspend":                  "nothing", // only the workflow itself can ask for that
		"labels":                   `{"from":"template"}`,
		"parameters.0":             `{"default":{"const":"3"},"name":"a"}`,
		"parameters.1.default":     `{"const":"x"}`,
		"templates.local/leaf.key": `"local/leaf"`,
	} {
		if got := pick(t, p, path); got != want {
			var a, b any
			if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
				t.Errorf("%s is %s, want %s", path, got, want)
			}
		}
	}
	// The template itself runs the same way.
	p = compile(t, shared, Options{Parameters: map[string]string{"a": "2"}})
	if got := pick(t, p, "parameters.0.default.const"); got != `"2"` {
		t.Errorf("the template's parameter is %s", got)
	}
	b, err := Load(Source{Name: "t.yaml", Data: []byte(shared)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.Workflow(Options{Parameters: map[string]string{"a": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if w.GenerateName != "shared-" || w.Spec.WorkflowTemplateRef.Name != "shared" || w.Labels[labelTemplate] != "shared" || *w.Spec.Arguments.Parameters[0].Value != "2" {
		t.Errorf("the workflow of a template: %s", asJSON(t, w))
	}
}

func TestScopes(t *testing.T) {
	cluster := strings.NewReplacer("kind: WorkflowTemplate", "kind: ClusterWorkflowTemplate", "leaf", "twig").Replace(shared)
	p := compile(t, head+`spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: a, templateRef: {name: shared, template: main}, arguments: {parameters: [{name: a, value: x}]}}
      - {name: b, templateRef: {name: shared, template: main, clusterScope: true}, arguments: {parameters: [{name: a, value: x}]}}
`, Options{}, shared, cluster)
	keys := sortedKeys(p.Templates)
	want := []string{"cluster/shared/main", "cluster/shared/twig", "local/main", "namespaced/shared/leaf", "namespaced/shared/main"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Error(diff)
	}
	if got := p.Templates["namespaced/shared/main"].Graph.Calls[0].Template; got.Scope != "namespaced/shared" || got.Name != "leaf" {
		t.Errorf("a plain name in a WorkflowTemplate leads to %v", got)
	}
	// A name that is not known before it runs takes all that it may lead to along.
	p = compile(t, head+`spec:
  entrypoint: main
  arguments: {parameters: [{name: which, value: leaf}]}
  templates:
  - name: main
    steps: [[{name: a, templateRef: {name: shared, template: "{{workflow.parameters.which}}"}, arguments: {parameters: [{name: a, value: x}, {name: v, value: x}]}}]]
`, Options{}, shared, cluster)
	if len(p.Templates) != 4 || p.Templates["namespaced/shared/bye"] == nil {
		t.Errorf("templates %v", sortedKeys(p.Templates))
	}
}

func TestContinueOnGoesDown(t *testing.T) {
	p := compile(t, head+`spec:
  entrypoint: main
  templates:
  - name: leaf
    container: {image: x}
  - name: main
    dag:
      tasks:
      - {name: a, template: leaf, continueOn: {failed: true}}
      - {name: b, template: leaf}
      - {name: c, template: leaf, dependencies: [a, b]}
      - {name: d, template: leaf, dependencies: [b]}
`, Options{})
	calls := p.Templates["local/main"].Graph.Calls
	if calls[3].Depends != nil {
		t.Errorf("d depends on %s", asJSON(t, calls[3].Depends))
	}
	want := `{"op":"and","args":[{"op":"or","args":[{"op":"is","result":"Succeeded"},{"op":"is","result":"Skipped"},{"op":"is","result":"Daemoned"},{"op":"is","result":"Failed"}]},` +
		`{"op":"or","args":[{"op":"is","call":1,"result":"Succeeded"},{"op":"is","call":1,"result":"Skipped"},{"op":"is","call":1,"result":"Daemoned"}]}]}`
	if got := asJSON(t, calls[2].Depends); got != want {
		t.Errorf("c depends on\n     %s\nwant %s", got, want)
	}
}

func TestArtifactsByMetadata(t *testing.T) {
	p := compile(t, head+`spec:
  entrypoint: main
  templates:
  - name: driver
    container: {image: x}
    outputs:
      artifacts: [{name: model, keyFrom: {path: /tmp/key}, metadataFrom: {path: /tmp/meta}}]
  - name: use
    inputs: {artifacts: [{name: model, path: /in}, {name: other, path: /other, fromMetadata: '{"uri": "{{workflow.name}}"}'}]}
    container: {image: x, args: ["{{inputs.artifacts.model.key}}", "{{inputs.artifacts.model.metadata.framework}}"]}
  - name: main
    steps:
    - - {name: d, template: driver}
    - - name: u
        template: use
        arguments: {artifacts: [{name: model, fromMetadata: "{{steps.d.outputs.artifacts.model.json}}"}]}
`, Options{})
	for path, want := range map[string]string{
		"templates.local/driver.outputs.artifacts.0":                    `{"name":"model","keyFrom":"/tmp/key","metadataFrom":"/tmp/meta"}`,
		"templates.local/use.inputs.artifacts.1":                        `{"name":"other","path":"/other","default":{"metadata":"{\"uri\": \"{{workflow.name}}\"}"}}`,
		"templates.local/main.graph.calls.1.arguments.artifacts.0.from": `{"metadata":"{{steps.d.outputs.artifacts.model.json}}"}`,
	} {
		if got := pick(t, p, path); got != want {
			t.Errorf("%s is\n     %s\nwant %s", path, got, want)
		}
	}
}

func TestVolumesThatReadCalls(t *testing.T) {
	p := compile(t, head+`spec:
  entrypoint: main
  volumes: [{name: cfg, configMap: {name: "{{tasks.a.outputs.parameters.cm}}"}}, {name: plain, emptyDir: {}}]
  templates:
  - name: main
    dag: {tasks: [{name: a, template: a}, {name: b, template: b, depends: a}]}
  - name: a
    container: {image: x}
    outputs: {parameters: [{name: cm, valueFrom: {path: /cm}}]}
  - name: b
    container: {image: x, volumeMounts: [{name: cfg, mountPath: /cfg}]}
`, Options{})
	for path, want := range map[string]string{
		"templates.local/b.task.volumes.0.source":             `"{{inputs.parameters.tasks.a.outputs.parameters.cm}}"`,
		"templates.local/b.inputs.parameters.0":               `{"name":"tasks.a.outputs.parameters.cm","optional":true}`,
		"templates.local/main.graph.calls.1.arguments":        `{"parameters":[{"name":"tasks.a.outputs.parameters.cm","from":{"ref":"tasks.a.outputs.parameters.cm"}}]}`,
		"templates.local/main.graph.calls.0.arguments":        "nothing",
		"templates.local/b.task.pod.volumes.0.configMap.name": `"{{inputs.parameters.tasks.a.outputs.parameters.cm}}"`,
		"pod.volumes": `[{"name":"plain","emptyDir":{}}]`,
	} {
		if got := pick(t, p, path); got != want {
			t.Errorf("%s is\n     %s\nwant %s", path, got, want)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct{ name, base, over, want string }{
		{"over wins", `{"a":1,"b":2}`, `{"a":3}`, `{"a":3,"b":2}`},
		{"deep", `{"x":{"a":1}}`, `{"x":{"b":2}}`, `{"x":{"a":1,"b":2}}`},
		{"lists replace", `{"args":[1,2]}`, `{"args":[3]}`, `{"args":[3]}`},
		{"lists with names merge", `{"env":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}`, `{"env":[{"name":"b","value":"3"}]}`, `{"env":[{"name":"b","value":"3"},{"name":"a","value":"1"}]}`},
		{"volumes replace", `{"volumes":[{"name":"v","emptyDir":{}}]}`, `{"volumes":[{"name":"v","secret":{}}]}`, `{"volumes":[{"name":"v","secret":{}}]}`},
		{"parameters with a value replace", `{"parameters":[{"name":"p","default":"1","enum":["1"]}]}`, `{"parameters":[{"name":"p","value":"2"}]}`, `{"parameters":[{"name":"p","value":"2"}]}`},
		{"parameters without do not", `{"parameters":[{"name":"p","default":"1"}]}`, `{"parameters":[{"name":"p"}]}`, `{"parameters":[{"name":"p","default":"1"}]}`},
		{"artifacts in the same store merge", `{"artifacts":[{"name":"a","s3":{"bucket":"b","key":"k"}}]}`, `{"artifacts":[{"name":"a","s3":{"key":"l"}}]}`, `{"artifacts":[{"name":"a","s3":{"bucket":"b","key":"l"}}]}`},
		{"artifacts in another do not", `{"artifacts":[{"name":"a","s3":{"key":"k"}}]}`, `{"artifacts":[{"name":"a","raw":{"data":"x"}}]}`, `{"artifacts":[{"name":"a","raw":{"data":"x"}}]}`},
		{"hooks do not merge inside", `{"hooks":{"exit":{"template":"a","arguments":{}},"x":{}}}`, `{"hooks":{"exit":{"template":"b"}}}`, `{"hooks":{"exit":{"template":"b"},"x":{}}}`},
	} {
		var base, over, want any
		for _, f := range []struct {
			text string
			into *any
		}{{tc.base, &base}, {tc.over, &over}, {tc.want, &want}} {
			if err := json.Unmarshal([]byte(f.text), f.into); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, merge(base, over, "")); diff != "" {
			t.Errorf("%s: %s", tc.name, diff)
		}
	}
}

func TestResultNames(t *testing.T) {
	src := asJSON(t, map[string]string{
		"a": "{{steps.one.outputs.result}}", "b": "{{= tasks.two.outputs.result }}", "c": "{{=steps['three-x'].outputs.result}}",
		"d": `{{=tasks["four"].outputs["result"]}}`, "e": "{{steps.five.outputs.parameters.result}}",
	})
	got := sortedKeys(resultNames([]byte(src)))
	if diff := cmp.Diff([]string{"four", "one", "three-x", "two"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSmallPrint(t *testing.T) {
	p := compile(t, head+`spec:
  entrypoint: main
  podSpecPatch: '{"a": 1}'
  templates:
  - name: main
    podSpecPatch: '{"b": 2}'
    inputs: {artifacts: [{name: a, path: /a, optional: true, http: {url: ""}}]}
    script: {image: x, command: [echo], args: ["[]"], source: ""}
`, Options{})
	main := p.Templates["local/main"]
	if main.Task.Kind != program.Containers {
		t.Errorf("a script without a source is of kind %s", main.Task.Kind)
	}
	if main.Inputs.Artifacts[0].Default != nil {
		t.Errorf("an artifact without a place has the default %s", asJSON(t, main.Inputs.Artifacts[0].Default))
	}
	if want := "{\"a\": 1}\n---\n{\"b\": 2}"; main.Task.Patch != want {
		t.Errorf("the patches are %q, want %q", main.Task.Patch, want)
	}
}
