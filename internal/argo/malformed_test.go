package argo

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// everything is a manifest that uses most fields.
func everything(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// settings is the ConfigMap that it refers to.
const settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {limit: '2'}"

func loadEverything(t testing.TB, data []byte) (*Bundle, error) {
	t.Helper()
	return Load(Source{Name: "broken.yaml", Data: data}, []Source{{Name: "settings.yaml", Data: []byte(settings)}})
}

func TestEverythingIsSound(t *testing.T) {
	b, err := loadEverything(t, everything(t))
	if err != nil {
		t.Fatal(err)
	}
	if ps := b.Lint(Options{}); len(ps) > 0 {
		t.Fatal(ps)
	}
	if _, err := b.Compile(Options{}); err != nil {
		t.Fatal(err)
	}
}

// mutant is the manifest broken in one place.
type mutant struct {
	name, path string
	data       []byte
}

// free says whether anything is allowed at a path.
func free(path string) bool {
	for _, part := range []string{"labels.", "annotations.", "labelsFrom", "plugin", "withItems", "nodeSelector.", "hooks", ".cpu", ".memory"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// mutants breaks the manifest in every place: an unknown field beside every field, and a value of the wrong type for
// every value.
func mutants(t *testing.T) []mutant {
	docs, _, err := parseDocuments(everything(t))
	if err != nil {
		t.Fatal(err)
	}
	root := docs[0]
	var out []mutant
	add := func(name, path string) {
		out = append(out, mutant{name, path, root.json()})
	}
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		for i, v := range n.items {
			at := index(path, i)
			if n.kind == mapNode {
				at = join(path, n.keys[i])
				if !free(at) && !free(path+".") && n.keys[i] != "labels" {
					old := n.keys[i]
					n.keys[i] = old + "XYZ"
					add("unknown field", at)
					n.keys[i] = old
				}
			}
			if !free(at) && path != "" {
				var wrong node
				switch v.kind {
				case listNode, mapNode:
					wrong = node{kind: stringNode, text: "wrong"}
				default:
					wrong = node{kind: mapNode, keys: []string{"wrong"}, items: []*node{{kind: numberNode, text: "1"}}}
				}
				n.items[i] = &wrong
				add("wrong type", at)
				n.items[i] = v
			}
			walk(v, at)
		}
	}
	walk(root, "")
	return out
}

// TestMalformed breaks a manifest in hundreds of places. Each time there must be an error that names the file and a path
// near the place; nothing may panic or compile.
func TestMalformed(t *testing.T) {
	all := mutants(t)
	if len(all) < 300 {
		t.Fatalf("only %d mutants", len(all))
	}
	for _, m := range all {
		b, err := loadEverything(t, m.data)
		if err == nil {
			_, err = b.Compile(Options{})
		}
		if err == nil {
			t.Errorf("%s at %s: no error", m.name, m.path)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, "broken.yaml") {
			t.Errorf("%s at %s: the file is not named in %s", m.name, m.path, text)
		}
		var ps Problems
		if !errors.As(err, &ps) {
			t.Errorf("%s at %s: the error is a %T", m.name, m.path, err)
			continue
		}
		near := false
		for _, p := range ps {
			near = near || strings.HasPrefix(p.Path, m.path) || strings.HasPrefix(m.path, p.Path) && strings.Count(m.path[len(p.Path):], ".") <= 1
		}
		if !near {
			t.Errorf("%s at %s: no path near it in\n%s", m.name, m.path, text)
		}
	}
	t.Logf("%d mutants", len(all))
}

// TestTruncated cuts the manifest after every line and at odd places; nothing may panic, and what is left without its
// templates must not compile.
func TestTruncated(t *testing.T) {
	data := everything(t)
	for i := 0; i < len(data); i += 13 {
		b, err := loadEverything(t, data[:i])
		if err == nil {
			_, err = b.Compile(Options{})
		}
		if err == nil && i < bytes.Index(data, []byte("templates:")) {
			t.Errorf("cut at %d: no error", i)
		}
		if err != nil && !strings.Contains(err.Error(), "broken.yaml") {
			t.Errorf("cut at %d: the file is not named in %v", i, err)
		}
	}
}

// TestBrokenReferences breaks what the manifest's parts say of each other.
func TestBrokenReferences(t *testing.T) {
	for i, tc := range []struct{ old, new, want string }{
		{"entrypoint: main", "entrypoint: mian", `spec.entrypoint: there is no template "mian"; did you mean main?`},
		{"onExit: notify", "onExit: notfy", `spec.onExit: there is no template "notfy"; did you mean notify?`},
		{"template: graph", "template: grph", `spec.templates[0].steps[1][0].template: there is no template "grph"; did you mean graph?`},
		{"value: \"{{inputs.parameters.message}}\"", "value: \"{{inputs.parameters.mesage}}\"", `spec.templates[0].steps[0][0].arguments.parameters[0].value: failed to resolve {{inputs.parameters.mesage}}; the template has no input parameter "mesage"; did you mean message?`},
		{"{{steps.make.outputs.parameters.out}}", "{{steps.make.outputs.parameters.outt}}", `failed to resolve {{steps.make.outputs.parameters.outt}}; the template of step make has no output parameter "outt"; did you mean out?`},
		{"{{steps.make.outputs.parameters.out}}", "{{steps.wait.outputs.parameters.approved}}", `there is no step "wait" before this one`},
		{"{{steps.make.outputs.parameters.out}}", "{{tasks.make.outputs.parameters.out}}", `in this template write steps.make.outputs.parameters.out`},
		{"depends: a.Succeeded || a.Failed", "depends: a.Succeeded | a.Failed", `spec.templates[1].dag.tasks[1].depends: at character 13`},
		{"depends: a.Succeeded || a.Failed", "depends: a.Success", `"Success" is no result of a task`},
		{"depends: a.Succeeded || a.Failed", "depends: z", `there is no task "z"`},
		{"depends: a.Succeeded || a.Failed", "depends: d", `wait for each other in a circle: `},
		{"depends: c.AnySucceeded", "depends: b.AnySucceeded", `AnySucceeded and AllFailed are about the items of a loop, and b has none`},
		{"withParam: '{{tasks.a.outputs.result}}'", "withParam: '{a: 1}'", `withParam: warning: "{a: 1}" is not a JSON list`},
		{"withSequence: {count: 2", "withSequence: {count: two", `withSequence.count: warning: "two" is not a whole number`},
		{"value: \"{{item.a}}-{{item.b}}\"", "value: \"{{item.c}}\"", `failed to resolve {{item.c}}; no item of withItems has a field "c"`},
		{"name: many", "name: make", `spec.templates[0].steps[0][1].name: "make" is also the name of steps[0][0]`},
		{"  - name: echo", "  - name: make", `spec.templates[3].name: "make" is also the name of templates[2]`},
		{"- name: echo", "- name: a_b", `"a_b" is not a valid name; use letters, digits and dashes`},
		{"retryPolicy: OnError", "retryPolicy: Sometimes", `retryPolicy: "Sometimes" is not allowed; use Always, OnFailure, OnError, OnTransientError`},
		{"duration: 1s, factor", "duration: soon, factor", `backoff.duration: warning: "soon" is not a duration`},
		{"timeout: 30s", "timeout: '30'", `timeout: "30" has no unit; write 30s`},
		{`suspend: {duration: "1"}`, "suspend: {}\n      timeout: 5s", `timeout: is not possible for suspend; give it a duration`},
		{"activeDeadlineSeconds: 20", "activeDeadlineSeconds: -1", `must be a positive whole number of seconds or a placeholder`},
		{"expression: asInt(lastRetry.exitCode) > 1", "expression: asInt(lastRetry.exitCode) >", `retryStrategy.expression: `},
		{"expression: workflow.status == \"Running\"", "expression: ''", `spec.hooks.started.expression: is missing; it says when the hook runs`},
		{"action: create", "action: make", `resource.action: "make" is not allowed; use get, create, apply, delete, replace, patch`},
		{"dependencies: [first]", "dependencies: [frist]", `there is no container "frist"; did you mean first?`},
		{"name: first", "name: wait", `"wait" is a name that the system uses`},
		{"mountPath: /config", "mountPath: /out", `/out is already mounted by scratch`},
		{"enum: [1, 2, 3]", "enum: [1, 2]", `spec.arguments.parameters[1].value: "3" is not among the values that enum allows: 1, 2`},
		{"- name: message\n        value: hello", "- name: message", `the parameter message has no value; give one with -p message=VALUE`},
		{"valueFrom: {path: /out/text, default: nothing}", "valueFrom: {parameter: x}", `must have path: the file that the task writes`},
		{"valueFrom: {expression: \"tasks.a.outputs.result\"}", "valueFrom: {path: /x}", `must have parameter or expression: an output of a call`},
		{"from: \"{{inputs.artifacts.seed}}\"", "from: \"{{inputs.artifacts.sed}}\"", `the template has no input artifact "sed"; did you mean seed?`},
		{"mutexes: [{name: one-at-a-time}]", "mutexes: [{}]", `spec.synchronization.mutexes[0].name: warning: is missing`},
		{"{name: runs", "{name: runs.total", ``},
		{"counter: {value: \"1\"}", "", `must have exactly one of counter, gauge and histogram`},
		{"strategy: OnPodSuccess", "strategy: OnMonday", `spec.podGC.strategy: "OnMonday" is not allowed`},
		{"parallelism: 4", "parallelism: 0", `spec.parallelism: must be at least 1`},
		{"team: ml,", "team: ml-,", `is not a valid label value`},
		{"generateName: everything-", "generateName: Everything-", `metadata.generateName: "Everything-" is not the beginning of a valid name`},
		{"      suspend: {duration: \"1\"}", "      suspend: {duration: later}", `suspend.duration: warning: "later" is not a duration`},
		{"      suspend: {duration: \"1\"}", "", `says nothing to do; give it a container, script, steps`},
		{"      suspend: {duration: \"1\"}", "      suspend: {}\n      script: {image: x, source: z}", `is of several kinds (script, suspend); keep one`},
		{"{{workflow.status}}", "{{workflow.state}}", `there is no such variable of a workflow`},
		{"{{workflow.status}}", "{{workflow.parameters.sise}}", `the workflow has no parameter "sise"; did you mean size?`},
		{"{{workflow.status}}", "{{pod.ip}}", `only pod.name is known of a pod`},
		{"{{workflow.status}}", "{{steps.make.status}}", `a task reads results of others through its inputs`},
		{"template: make\n", "template: make\n            templateRef: {name: t, template: x}\n", `has both template and templateRef; keep one`},
		{"template: make\n", "templateRef: {name: t, template: x}\n", `there is no WorkflowTemplate "t" among the files`},
		{"url: https://example.com", "method: GET", `http.url: warning: is missing`},
	} {
		src := string(everything(t))
		if !strings.Contains(src, tc.old) && tc.want != "" {
			t.Fatalf("%d: %q is not in the manifest", i, tc.old)
		}
		if tc.old == "url: https://example.com" {
			src = strings.Replace(src, "method: POST", "", 1)
		}
		src = strings.Replace(src, tc.old, tc.new, 1)
		var got string
		b, err := loadEverything(t, []byte(src))
		if err == nil {
			got = b.Validate(Options{}).Error()
		} else {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%s\n got %s\nwant %s", fmt.Sprintf("%s → %s", tc.old, tc.new), got, tc.want)
		}
	}
}
