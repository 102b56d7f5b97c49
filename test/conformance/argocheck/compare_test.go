package argocheck

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// corpus gives the folder of the expected files, or skips.
func corpus(t *testing.T) string {
	t.Helper()
	root := os.Getenv("CONFORMANCE")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared", "conformance")
	}
	folder := filepath.Join(root, "argo", "expected")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("no conformance corpus at %s: set CONFORMANCE to have one", root)
	}
	return folder
}

func readAll(t *testing.T) []*Expected {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(corpus(t), "*.json"))
	if err != nil || len(files) < 100 {
		t.Fatalf("found %d expected files, err %v", len(files), err)
	}
	var all []*Expected
	for _, file := range files {
		e, err := ReadExpected(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

const runName = "hello-world-x7k2p"

// synthesise makes the Workflow object that has exactly what an expected file asks for.
func synthesise(t *testing.T, e *Expected, change func(map[string]any)) *Actual {
	t.Helper()
	id := func(name string) string {
		h := fnv.New32a()
		fmt.Fprint(h, name)
		return fmt.Sprintf("%s-%d", runName, h.Sum32())
	}
	filled := func(s string) string {
		return strings.NewReplacer("$WF", runName, "-#", "-3141592653", "$TIME", "2026-11-30T22:14:05Z", "$IP", "10.1.2.3").Replace(s)
	}
	outputs := func(o Outputs) map[string]any {
		m := map[string]any{}
		var parameters []any
		for name, value := range o.Parameters {
			p := map[string]any{"name": name}
			if value == NoValue {
				p["valueFrom"] = map[string]any{"path": "/tmp/x"}
			} else {
				p["value"] = filled(value)
			}
			parameters = append(parameters, p)
		}
		if parameters != nil {
			m["parameters"] = parameters
		}
		if o.Result != nil {
			m["result"] = filled(*o.Result)
		}
		if o.ExitCode != "" {
			m["exitCode"] = o.ExitCode
		}
		var artifacts []any
		for _, a := range o.Artifacts {
			artifacts = append(artifacts, map[string]any{"name": a.Name, "path": "/tmp/a"})
		}
		if artifacts != nil {
			m["artifacts"] = artifacts
		}
		return m
	}
	nodes := map[string]any{}
	for _, n := range e.Nodes {
		node := map[string]any{
			"id": id(n.Name), "name": filled(n.Name), "displayName": filled(n.DisplayName), "type": n.Type, "phase": n.Phase,
			"message": filled(n.Message), "templateName": n.TemplateName, "outputs": outputs(n.Outputs),
		}
		if n.Boundary != "" {
			node["boundaryID"] = id(n.Boundary)
		}
		var children []any
		for _, child := range n.Children {
			children = append(children, id(child))
		}
		if children != nil {
			node["children"] = children
		}
		nodes[id(n.Name)] = node
	}
	w := map[string]any{
		"kind": "Workflow", "apiVersion": "argoproj.io/v1alpha1", "metadata": map[string]any{"name": runName},
		"status": map[string]any{"phase": e.Result, "message": filled(e.Message), "nodes": nodes, "outputs": outputs(e.Outputs)},
	}
	if change != nil {
		change(w)
	}
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ReadWorkflow(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestExpectedRunsPassAgainstThemselves(t *testing.T) {
	for _, e := range readAll(t) {
		t.Run(e.File, func(t *testing.T) {
			if found := Compare(e, synthesise(t, e, nil)); len(found) > 0 {
				t.Errorf("differs from itself:\n%s", strings.Join(found, "\n"))
			}
		})
	}
}

// pick finds a node of the object by its name.
func pick(w map[string]any, name string) map[string]any {
	nodes := w["status"].(map[string]any)["nodes"].(map[string]any)
	for _, n := range nodes {
		if n.(map[string]any)["name"] == strings.Replace(name, "$WF", runName, 1) {
			return n.(map[string]any)
		}
	}
	panic("no node " + name)
}

func TestMutationsAreFound(t *testing.T) {
	status := func(w map[string]any) map[string]any { return w["status"].(map[string]any) }
	parameter := func(w map[string]any, node string) map[string]any {
		return pick(w, node)["outputs"].(map[string]any)["parameters"].([]any)[0].(map[string]any)
	}
	tests := map[string]struct {
		file   string
		change func(map[string]any)
		want   string
	}{
		"phase of the workflow": {
			"examples/steps.yaml", func(w map[string]any) { status(w)["phase"] = "Failed" }, "workflow: phase: want Succeeded, got Failed",
		},
		"phase of a node": {
			"examples/conditionals.yaml", func(w map[string]any) { pick(w, "$WF[0].print-hello-expr")["phase"] = "Skipped" },
			"$WF[0].print-hello-expr: phase: want Succeeded, got Skipped",
		},
		"type of a node": {
			"examples/conditionals.yaml", func(w map[string]any) { pick(w, "$WF[0]")["type"] = "TaskGroup" },
			"$WF[0]: type: want StepGroup, got TaskGroup",
		},
		"a child less": {
			"examples/loops-dag.yaml", func(w map[string]any) { pick(w, "$WF.B(0:foo)")["children"] = nil },
			"$WF.B(0:foo): children: want [$WF.C], got []",
		},
		"a child that does not exist": {
			"examples/loops-dag.yaml", func(w map[string]any) { pick(w, "$WF.C")["children"] = []any{"nobody"} },
			"$WF.C: child nobody does not exist",
		},
		"an output parameter": {
			"examples/output-parameter.yaml", func(w map[string]any) { parameter(w, "$WF[0].generate-parameter")["value"] = "bye" },
			`$WF[0].generate-parameter: output parameter hello-param: want "hello world", got "bye"`,
		},
		"a value where there is none yet": {
			"examples/suspend-template-outputs.yaml", func(w map[string]any) { parameter(w, "$WF[0].approve")["value"] = "yes" },
			`$WF[0].approve: output parameter message: want "<valueFrom>", got "yes"`,
		},
		"a result": {
			"test/e2e/testdata/output-result-workflow.yaml",
			func(w map[string]any) { pick(w, "$WF.a")["outputs"].(map[string]any)["result"] = "hello" },
			`$WF.a: result: want "hello argo", got "hello"`,
		},
		"an exit code": {
			"examples/exit-code-output-variable.yaml",
			func(w map[string]any) {
				pick(w, "$WF[0].failing-container")["outputs"].(map[string]any)["exitCode"] = "1"
			},
			"$WF[0].failing-container: exit code: want 123, got 1",
		},
		"a class of failure": {
			"test/e2e/testdata/retry-omit.yaml", func(w map[string]any) { pick(w, "$WF.F")["message"] = "Max duration limit exceeded" },
			`$WF.F: kind of message: want exit code 1 ("main: Error (exit code 1)"), got "Max duration limit exceeded"`,
		},
		"a global output": {
			"test/e2e/functional/global-outputs-variable.yaml", func(w map[string]any) { delete(status(w), "outputs") },
			`workflow: output parameter my-global-param: want "hello world", got no such parameter`,
		},
		"an artifact": {
			"test/e2e/testdata/artifact-passing-workflow.yaml",
			func(w map[string]any) {
				delete(pick(w, "$WF[0].generate-artifact")["outputs"].(map[string]any), "artifacts")
			},
			"$WF[0].generate-artifact: output artifacts: want [hello], got []",
		},
		"a volatile run's node": {
			"examples/scripts-bash.yaml", func(w map[string]any) { pick(w, "$WF[0].generate")["phase"] = "Error" },
			"$WF[0].generate: phase: want Succeeded, got Error",
		},
		"nodes of an invalid spec": {
			"test/e2e/lintfail/invalid-spec.yaml",
			func(w map[string]any) {
				status(w)["nodes"] = map[string]any{"a": map[string]any{"id": "a", "name": runName}}
			},
			"workflow: nodes: want none, got 1",
		},
		"a random run that skipped for a true condition": {
			"test/e2e/functional/coinflip.yaml",
			func(w map[string]any) { pick(w, "$WF[1].heads")["message"] = "when 'heads == heads' evaluated false" },
			`$WF[1].heads: was skipped, but "heads == heads" is true`,
		},
		"a random run that has not ended": {
			"test/e2e/functional/coinflip.yaml", func(w map[string]any) { pick(w, "$WF[1].tails")["phase"] = "Running" },
			"$WF[1].tails: phase: want an end, got Running",
		},
		"a random run's group against its children": {
			"examples/custom-metrics.yaml", func(w map[string]any) { pick(w, "$WF[1]")["phase"] = "Succeeded" },
			"$WF[1]: Succeeded although $WF[1].flakey is Failed",
		},
		"a random run's retry against its attempt": {
			"examples/template-defaults.yaml", func(w map[string]any) { pick(w, "$WF(0)[1].hello-world")["phase"] = "Failed" },
			"$WF(0)[1].hello-world: is Failed, but its last attempt $WF(0)[1].hello-world(1) is Succeeded",
		},
	}
	all := map[string]*Expected{}
	for _, e := range readAll(t) {
		all[e.File] = e
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			e, ok := all[test.file]
			if !ok {
				t.Fatalf("no expected run of %s", test.file)
			}
			found := Compare(e, synthesise(t, e, test.change))
			if !slices.Contains(found, test.want) {
				t.Errorf("found %q\nwant among them %q", found, test.want)
			}
		})
	}
}

func TestMissingAndUnexpectedNodes(t *testing.T) {
	e := &Expected{Result: "Succeeded", NodeCount: 1, Nodes: []Node{{Name: "$WF", Type: "Pod", Phase: "Succeeded"}}}
	got, err := ReadWorkflow([]byte(`{"kind":"Workflow","metadata":{"name":"a"},"status":{"phase":"Succeeded",
		"nodes":{"b":{"id":"b","name":"a.b","type":"Pod","phase":"Failed","message":"oh"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"$WF: missing (want Pod Succeeded)", "$WF.b: not expected (got Pod Failed (oh))"}
	if found := Compare(e, got); !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestSame(t *testing.T) {
	tests := []struct {
		want, got string
		same      bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"$WF", "wf-1", true},
		{"$WF-say-#", "wf-1-say-123456", true},
		{"$WF-say-#", "wf-1-sing-123456", false},
		{"at $TIME", "at 2026-11-30T22:14:05Z", true},
		{"cost: $5", "cost: $5", true},
		{"cost: $5", "cost: 5", false},
		{"$IP\thost", "10.0.0.1\thost", true},
	}
	for _, test := range tests {
		if got := same(test.want, test.got, "wf-1"); got != test.same {
			t.Errorf("same(%q, %q) = %v, want %v", test.want, test.got, got, test.same)
		}
	}
}

func TestEvaluate(t *testing.T) {
	tests := []struct {
		condition    string
		value, known bool
	}{
		{"heads == heads", true, true},
		{"heads == tails", false, true},
		{"tails =~ tai", true, true},
		{"a != b && !(a == b)", true, true},
		{"( heads == heads &&\n heads == tails\n) || ( heads == tails && heads == tails )", false, true},
		{`"x" == 'x'`, true, true},
		{"false", false, true},
		{"1 < 2", false, false},
		{"a ==", false, false},
		{"(a == a", true, false},
	}
	for _, test := range tests {
		value, known := evaluate(test.condition)
		if known != test.known || known && value != test.value {
			t.Errorf("evaluate(%q) = %v, %v, want %v, %v", test.condition, value, known, test.value, test.known)
		}
	}
}

func TestClassify(t *testing.T) {
	tests := map[string]Class{
		"main: Error (exit code 1)":                                      "exit code 1",
		"one: OOMKilled (exit code 137): ":                               "exit code 137",
		"child 'wf-123' failed":                                          "child failed",
		"child 'missing-output-timeout-1' failed":                        "child failed",
		"Pod was active on the node longer than the specified deadline":  "deadline",
		"wait: Error (exit code 64): open /x: no such file or directory": "missing output",
		"when 'a == b' evaluated false":                                  "condition false",
		"omitted: depends condition not met":                             "omitted",
		"invalid spec: template name 'x' undefined":                      "invalid spec",
		"failed to resolve references: unable to substitute {{a.b}}: no": "unresolved reference",
		"something else": "",
	}
	for message, want := range tests {
		if got := Classify(message); got != want {
			t.Errorf("Classify(%q) = %q, want %q", message, got, want)
		}
	}
}
