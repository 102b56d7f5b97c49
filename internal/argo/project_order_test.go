package argo

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// play runs a manifest in a world where all tasks succeed but those named, and gives its nodes as lines: name, type,
// phase, children; and the projected workflow.
func play(t *testing.T, src string, fail ...string) ([]string, *Workflow) {
	t.Helper()
	b, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, p := startWorld(t, b, nil)
	w.fail = map[string]bool{}
	for _, f := range fail {
		w.fail[f] = true
	}
	w.run()
	wf := Project(p, w.s, ProjectOptions{})

	// What is saved and loaded again looks the same.
	data, err := json.Marshal(w.s)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := w.m.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, wf), asJSON(t, Project(p, loaded, ProjectOptions{}))); diff != "" {
		t.Errorf("the loaded state looks different: %s", diff)
	}
	return lines(wf), wf
}

func lines(wf *Workflow) []string {
	names := map[string]string{}
	for id, n := range wf.Status.Nodes {
		names[id] = n.Name
	}
	var out []string
	for _, n := range wf.Status.Nodes {
		var children []string
		for _, c := range n.Children {
			children = append(children, strings.TrimPrefix(names[c], runName))
		}
		slices.Sort(children)
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", n.Name, n.Type, n.Phase, strings.Join(children, " "))))
	}
	slices.Sort(out)
	return out
}

const leaves = `
  - name: ok
    inputs: {parameters: [{name: x, default: d}]}
    container: {image: x}
  - name: again
    retryStrategy: {limit: 2}
    container: {image: x}
  - name: pair
    containerSet: {containers: [{name: c1, image: x}, {name: c2, image: x, dependencies: [c1]}, {name: c3, image: x, dependencies: [c1]}]}
`

func TestOrderOfEvents(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		fail      []string
		want      []string
	}{
		{"steps after a loop, and after nothing", "entrypoint: main\n  templates:" + leaves + `
  - name: main
    steps:
    - [{name: many, template: ok, withItems: [a, b]}, {name: one, template: ok}]
    - [{name: none, template: ok, withItems: []}]
    - [{name: last, template: ok}]
`, nil, []string{
			"wf Steps Succeeded [0]",
			"wf[0] StepGroup Succeeded [0].many(0:a) [0].many(1:b) [0].one",
			"wf[0].many(0:a) Pod Succeeded [1]", "wf[0].many(1:b) Pod Succeeded [1]", "wf[0].one Pod Succeeded [1]",
			"wf[1] StepGroup Succeeded [1].none", "wf[1].none Skipped Skipped [2]",
			"wf[2] StepGroup Succeeded [2].last", "wf[2].last Pod Succeeded",
		}},
		{"after attempts, and their exit handler", "entrypoint: main\n  templates:" + leaves + `
  - name: main
    steps:
    - [{name: a, template: again}]
    - [{name: b, template: again, onExit: ok}]
    - [{name: c, template: ok}]
`, []string{"wf[0].a(0)"}, []string{
			"wf Steps Succeeded [0]",
			"wf[0] StepGroup Succeeded [0].a",
			"wf[0].a Retry Succeeded [0].a(0) [0].a(1)", "wf[0].a(0) Pod Failed", "wf[0].a(1) Pod Succeeded [1]",
			"wf[1] StepGroup Succeeded [1].b",
			// As upstream: the exit handler is the retry node's last child, so what follows stands under it.
			"wf[1].b Retry Succeeded [1].b(0) [1].b.onExit", "wf[1].b(0) Pod Succeeded", "wf[1].b.onExit Pod Succeeded [2]",
			"wf[2] StepGroup Succeeded [2].c", "wf[2].c Pod Succeeded",
		}},
		{"a DAG inside, and containers in one pod", "entrypoint: main\n  templates:" + leaves + `
  - name: inner
    dag: {tasks: [{name: a, template: ok}, {name: b, template: ok, depends: a}, {name: c, template: pair, depends: a}]}
  - name: main
    dag:
      tasks:
      - {name: in, template: inner}
      - {name: loop, template: ok, depends: in, withItems: [1, 2]}
      - {name: end, template: ok, depends: "loop && in"}
`, nil, []string{
			"wf DAG Succeeded .in",
			"wf.in DAG Succeeded .in.a", "wf.in.a Pod Succeeded .in.b .in.c", "wf.in.b Pod Succeeded .end .loop", "wf.in.c Pod Succeeded .in.c.c1",
			"wf.in.c.c1 Container Succeeded .in.c.c2 .in.c.c3", "wf.in.c.c2 Container Succeeded .end .loop", "wf.in.c.c3 Container Succeeded .end .loop",
			"wf.loop TaskGroup Succeeded .loop(0:1) .loop(1:2)", "wf.loop(0:1) Pod Succeeded .end", "wf.loop(1:2) Pod Succeeded .end",
			"wf.end Pod Succeeded",
		}},
		{"a failure", "entrypoint: main\n  onExit: ok\n  templates:" + leaves + `
  - name: main
    steps:
    - [{name: a, template: ok}, {name: b, template: ok, continueOn: {failed: true}}]
    - [{name: c, template: ok, when: "a == b"}]
`, []string{"wf[0].a", "wf[0].b"}, []string{
			"wf Steps Failed [0]", "wf.onExit Pod Succeeded",
			"wf[0] StepGroup Failed [0].a [0].b", "wf[0].a Pod Failed", "wf[0].b Pod Failed",
		}},
		{"hooks", "entrypoint: main\n  hooks: {ended: {template: ok, expression: workflow.status == 'Succeeded'}}\n  templates:" + leaves + `
  - name: main
    dag:
      tasks:
      - {name: a, template: ok, hooks: {exit: {template: ok}, run: {template: ok, expression: tasks.a.status == 'Succeeded'}}}
      - {name: b, template: ok, depends: a.Failed}
`, nil, []string{
			"wf DAG Succeeded .a .hooks.ended", "wf.a Pod Succeeded .a.hooks.run .a.onExit .b", "wf.a.hooks.run Pod Succeeded", "wf.a.onExit Pod Succeeded",
			"wf.b Skipped Omitted", "wf.hooks.ended Pod Succeeded",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, _ := play(t, head+"spec:\n  "+tc.src, tc.fail...)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChildMessagesNameIDs(t *testing.T) {
	_, wf := play(t, head+"spec:\n  entrypoint: main\n  templates:"+leaves+"\n  - name: main\n    steps: [[{name: a, template: ok}]]\n", "wf[0].a")
	h := fnv.New32a()
	_, _ = h.Write([]byte("wf[0].a"))
	want := fmt.Sprintf("child 'wf-%d' failed", h.Sum32())
	if wf.Status.Message != want || wf.Status.Nodes["wf"].Message != want {
		t.Errorf("messages %q and %q, want %q", wf.Status.Message, wf.Status.Nodes["wf"].Message, want)
	}
	if _, ok := wf.Status.Nodes[fmt.Sprintf("wf-%d", h.Sum32())]; !ok {
		t.Error("there is no node of that ID")
	}
	if wf.Labels[labelPhase] != "Failed" || wf.Labels[labelCompleted] != "true" {
		t.Errorf("labels %v", wf.Labels)
	}
}

// TestEqualHashes finds two paths with the same 32-bit hash, and sees that they get IDs of their own.
func TestEqualHashes(t *testing.T) {
	seen := map[uint32]string{}
	for i := 0; ; i++ {
		path := fmt.Sprintf("wf.task-%d", i)
		h := fnv.New32a()
		_, _ = h.Write([]byte(path))
		other, ok := seen[h.Sum32()]
		seen[h.Sum32()] = path
		if !ok {
			continue
		}
		s := engine.NewState()
		s.Run.Name = "wf"
		j := newProjector(&program.Program{}, s, ProjectOptions{})
		a, b := j.id(other), j.id(path)
		if a == b || !strings.HasPrefix(b, a) || j.id(other) != a || j.id(path) != b {
			t.Errorf("%s has ID %s, %s has %s", other, a, path, b)
		}
		return
	}
}

func TestMemoizationStatus(t *testing.T) {
	_, wf := play(t, head+`spec:
  entrypoint: main
  arguments: {parameters: [{name: x, value: v}]}
  templates:
  - name: main
    inputs: {parameters: [{name: x}]}
    memoize: {key: "k-{{inputs.parameters.x}}-{{workflow.parameters.x}}", maxAge: 1h, cache: {configMap: {name: c}}}
    container: {image: x}
`)
	if diff := cmp.Diff(&MemoizationStatus{Key: "k-v-v", CacheName: "c"}, wf.Status.Nodes["wf"].MemoizationStatus); diff != "" {
		t.Error(diff)
	}
}

func TestProgress(t *testing.T) {
	for in, want := range map[string]string{"": "0/1", "3/7": "3/7", "8/7": "0/1", "x": "0/1", "-1/2": "0/1", "1/0": "0/1"} {
		n, m := readProgress(in)
		if got := fmt.Sprintf("%d/%d", n, m); got != want {
			t.Errorf("%q is %s, want %s", in, got, want)
		}
	}
}

// BenchmarkProject projects a finished fan-out of 10,000 tasks with a step after it.
func BenchmarkProject(b *testing.B) {
	src := head + "spec:\n  entrypoint: main\n  templates:" + leaves + "\n  - name: main\n    steps: [[{name: a, template: ok, withSequence: {count: 10000}}], [{name: z, template: ok}]]\n"
	t := &testing.T{}
	bundle, err := Load(Source{Name: "wf.yaml", Data: []byte(src)}, nil)
	if err != nil {
		b.Fatal(err)
	}
	w, p := startWorld(t, bundle, nil)
	w.run()
	b.ReportAllocs()
	for b.Loop() {
		if n := len(Project(p, w.s, ProjectOptions{}).Status.Nodes); n != 10004 {
			b.Fatalf("%d nodes", n)
		}
	}
}
