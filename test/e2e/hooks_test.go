//go:build whole

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/plugin"
)

// A hook of the cluster adds placeholders, reuses a task without a pod, and holds its dependants; workflows without the
// label are never sent to it.
func TestClusterHook(t *testing.T) {
	ns := namespace(t, "e2e-hooks")
	dir := t.TempDir()
	p := plugin.Start(t, filepath.Join(dir, "record"), "--placeholder", "greeting=hello", "--remember", filepath.Join(dir, "memory.json"), "--pending", "Post:train=3")
	kubectl(t, fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: ClusterTaskHook
metadata: {name: e2e}
spec:
  points: [Pre, Post]
  scope: [Task]
  selector: {matchLabels: {watched: "yes"}}
  http: {url: %q}
`, p.Address), "apply", "-f", "-")
	t.Cleanup(func() {
		if _, err := site.Kubectl(context.Background(), nil, "delete", "clustertaskhook", "e2e"); err != nil {
			t.Error(err)
		}
	})
	manifest := func(labels string) string {
		return `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: hooked-, labels: {` + labels + `}}
spec:
  entrypoint: main
  templates:
  - name: main
    outputs: {parameters: [{name: used, valueFrom: {parameter: '{{tasks.use.outputs.result}}'}}]} # else nobody reads what it prints
    dag:
      tasks:
      - {name: train, template: train, arguments: {parameters: [{name: rate, value: "0.1"}]}}
      - {name: use, template: use, dependencies: [train], arguments: {parameters: [{name: loss, value: '{{tasks.train.outputs.result}}'}, {name: run, value: '{{workflow.uid}}'}]}}
  - name: train
    inputs: {parameters: [{name: rate}]}
    script: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh], source: 'date +%s'}
  - name: use
    inputs: {parameters: [{name: loss}, {name: run}]}
    script: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh], source: 'echo "{{hooks.e2e.greeting}} $(date +%s) {{inputs.parameters.loss}}"'}
`
	}
	first := submit(t, ns, manifest("watched: 'yes'"))
	w := finish(t, ns, first, 2*time.Minute)
	w.succeeded(t)
	var greeting string
	var then, trained int64
	if _, err := fmt.Sscan(w.result("use"), &greeting, &then, &trained); err != nil || greeting != "hello" {
		t.Fatalf("use printed %q: %v", w.result("use"), err)
	}
	if then-trained < 3 {
		t.Errorf("the dependant started %d s after the task, want at least 3: Post was pending", then-trained)
	}
	if n := len(pods(t, ns, first)); n != 2 {
		t.Errorf("%d pods for two tasks", n)
	}
	second := submit(t, ns, manifest("watched: 'yes'"))
	w = finish(t, ns, second, 2*time.Minute)
	w.succeeded(t)
	if !strings.HasSuffix(w.result("use"), fmt.Sprint(trained)) {
		t.Errorf("use printed %q, want the reused %d", w.result("use"), trained)
	}
	if n := len(pods(t, ns, second)); n != 1 {
		t.Errorf("%d pods where one of two tasks was reused", n)
	}
	seen := len(p.Reviews())
	third := submit(t, ns, strings.ReplaceAll(manifest("watched: 'no'"), "{{hooks.e2e.greeting}}", "nobody"))
	finish(t, ns, third, 2*time.Minute).succeeded(t)
	if n := len(p.Reviews()); n != seen {
		t.Errorf("%d reviews of a workflow that the hook did not select", n-seen)
	}
	var points []string
	for _, r := range p.Reviews() {
		if r.Task == "train" {
			points = append(points, r.Point+" "+r.Decision)
		}
	}
	for _, want := range []string{"Pre Run", "Post Done", "Pre Reuse"} {
		if !slices.Contains(points, want) {
			t.Errorf("train's reviews are %q, want %q among them", points, want)
		}
	}
}

// A namespaced hook sees its own namespace only.
func TestNamespacedHookSeesItsOwn(t *testing.T) {
	mine, other := namespace(t, "e2e-hook-mine"), namespace(t, "e2e-hook-other")
	const text = `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: plain-}
spec:
  entrypoint: main
  templates: [{name: main, container: {image: busybox, imagePullPolicy: IfNotPresent, command: [echo, hi]}}]
`
	// Nobody answers there: what it selects fails, what it does not goes on.
	kubectl(t, `apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: nobody}
spec: {points: [Pre], retry: {limit: 0}, http: {url: "https://nobody.e2e-hook-mine.svc/hook"}}
`, "apply", "--namespace", mine, "-f", "-")
	there := finish(t, other, submit(t, other, text), time.Minute)
	there.succeeded(t)
	here := finish(t, mine, submit(t, mine, text), time.Minute)
	if here.Status.Phase == "Succeeded" {
		t.Error("the workflow of the hook's namespace went past it")
	}
	if n := len(pods(t, mine, here.Metadata.Name)); n != 0 {
		t.Errorf("%d pods of a task whose Pre hook failed", n)
	}
}
