package argo

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
)

// What memoize finds has upstream's form: a retry node without attempts, the exit code of the earlier work, no message.
func TestMemoizedNodes(t *testing.T) {
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(`
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: wf}
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks: [{name: a, template: again}, {name: b, template: once, depends: a}, {name: c, template: once, depends: b}]
  - name: again
    retryStrategy: {limit: 2}
    memoize: {key: k, cache: {configMap: {name: c}}}
    container: {image: x}
  - name: once
    memoize: {key: k, cache: {configMap: {name: c}}}
    container: {image: x}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, p := startWorld(t, b, nil)
	w.run()
	hit := true
	for n := range w.s.Nodes() {
		if n.Kind == engine.GraphNode {
			continue
		}
		n.ExitCode, n.Message, n.Reused = nil, "reused: wf.a of wf", true
		if n.Kind == engine.Leaf {
			n.CacheHit = &hit
		}
	}
	wf := Project(p, w.s, ProjectOptions{})
	want := []string{
		runName + " DAG Succeeded .a", runName + ".a Retry Succeeded .b", runName + ".b Pod Succeeded .c", runName + ".c Pod Succeeded",
	}
	got := lines(wf)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, n := range wf.Status.Nodes {
		if n.Type == "DAG" {
			continue
		}
		if n.Message != "" || n.Outputs == nil || n.Outputs.ExitCode == nil || *n.Outputs.ExitCode != "0" || !n.MemoizationStatus.Hit {
			t.Errorf("%s: %q %+v %+v", n.Name, n.Message, n.Outputs, n.MemoizationStatus)
		}
	}
}

// The message of a run is its root's, and so none where the root was found by memoize.
func TestMemoizedRun(t *testing.T) {
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(`
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: wf}
spec:
  entrypoint: once
  templates:
  - name: once
    memoize: {key: k, cache: {configMap: {name: c}}}
    container: {image: x}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, p := startWorld(t, b, nil)
	w.run()
	hit := true
	root := w.s.Node(w.s.Root)
	root.CacheHit, root.Message, w.s.Message = &hit, "reused: an earlier one", "reused: an earlier one"
	if got := Project(p, w.s, ProjectOptions{}).Status; got.Message != "" || got.Phase != "Succeeded" {
		t.Errorf("%s %q", got.Phase, got.Message)
	}
}
