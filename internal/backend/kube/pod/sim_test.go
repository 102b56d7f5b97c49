package pod

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
)

// manifest is one to be run, in either language.
type manifest struct {
	name       string
	data       []byte
	others     []argo.Source
	parameters map[string]any // KFP's
}

// compile gives the manifest's program; an error says that it is refused.
func (m manifest) compile() (*program.Program, expr.Language, error) {
	if argo.IsArgo(m.data) {
		bundle, err := argo.Load(argo.Source{Name: m.name, Data: m.data}, m.others)
		if err != nil {
			return nil, nil, err
		}
		p, err := bundle.Compile(argo.Options{})
		return p, argoexpr.New(), err
	}
	pipeline, err := kfp.Load(kfp.Source{Name: m.name, Data: m.data})
	if err != nil {
		return nil, nil, err
	}
	artifacts := map[string][]program.Artifact{}
	for n := range pipeline.Spec.Root.InputDefinitions.Artifacts {
		artifacts[n] = []program.Artifact{{Name: n, URI: "/given/" + n}}
	}
	p, err := pipeline.Compile(kfp.Options{Parameters: m.parameters, Artifacts: artifacts})
	return p, kfpexpr.New(), err
}

// simulate runs a program, whose tasks succeed at once with plausible outputs, and hands over each task that is started.
// hooked, if it is set, is answered at Pre of every task.
func simulate(t *testing.T, m manifest, answer *engine.Answer, started func(engine.Run, engine.StartTask)) {
	t.Helper()
	p, lang, err := m.compile()
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	machine, err := engine.New(p, lang, nil)
	if err != nil {
		t.Fatal(err)
	}
	machine.Pods = true
	state, now := engine.NewState(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	artifacts := map[string][]program.Artifact{}
	for _, a := range p.Artifacts {
		artifacts[a.Name] = []program.Artifact{{Name: a.Name, URI: "/given/" + a.Name, Type: a.Type}}
	}
	run := engine.Run{
		Name: "run-1", UID: "uid-1", Namespace: "jobs", Created: now, Parameters: m.parameters, Artifacts: artifacts, ArtifactRoot: "s3://bucket/runs",
	}
	if answer != nil {
		run.Hooks = []engine.Hook{{Name: "hook", Pre: true, Task: true}}
	}
	queue := []engine.Event{{Start: &engine.Start{Run: run}}}
	var timers []engine.SetTimer
	for n := 0; (len(queue) > 0 || len(timers) > 0) && n < 3000; n++ {
		if len(queue) == 0 {
			now = timers[0].At
			queue, timers = append(queue, engine.Event{Fired: &engine.Fired{Timer: timers[0].Timer}}), timers[1:]
		}
		e := queue[0]
		queue = queue[1:]
		now = now.Add(time.Second)
		e.Time, e.Seed = now, uint64(n)
		commands, err := machine.Step(state, e)
		if err != nil {
			t.Fatalf("step: %v", err)
		}
		for _, c := range commands {
			switch c := c.(type) {
			case engine.StartTask:
				started(run, c)
				queue = append(queue, engine.Event{Finished: &engine.Finished{Node: c.Node, Result: plausible(c)}})
			case engine.AskHook:
				queue = append(queue, engine.Event{Answered: &engine.Answered{Node: c.Node, Point: c.Point, Hook: c.Hook, Answer: *answer}})
			case engine.SetTimer:
				timers = append(timers, c)
			case engine.AcquireLocks:
				queue = append(queue, engine.Event{Acquired: &engine.Acquired{Node: c.Node}})
			}
		}
	}
}

// plausible gives each declared output a value of its type.
func plausible(cmd engine.StartTask) engine.Result {
	text, code := "1", 0
	r := engine.Result{Phase: engine.SucceededPhase, ExitCode: &code, Outputs: engine.Outputs{
		Result: &text, Parameters: map[string]any{}, Artifacts: map[string][]program.Artifact{},
	}}
	for _, o := range cmd.Outputs.Parameters {
		r.Outputs.Parameters[o.Name] = map[program.Type]any{
			program.Any: "1", program.String: "1", program.Integer: int64(3), program.Double: 0.5, program.Boolean: true,
			program.List:   []any{map[string]any{"A_a": "1", "B_b": []any{"2"}, "a": "1", "b": "2"}},
			program.Struct: map[string]any{"A_a": "1", "B_b": []any{"2"}, "a": "1", "b": "2"},
		}[o.Type]
	}
	for name, a := range cmd.OutputArtifacts {
		r.Outputs.Artifacts[name] = []program.Artifact{a}
	}
	return r
}

// entry is a line of a conformance corpus' index.
type entry struct {
	path, class string
	needs       []string
	inputs      map[string]any
}

// corpus reads the index of a corpus ("argo" or "kfp"), or skips the test where there is none.
func corpus(t *testing.T, which string) (dir string, entries []entry) {
	t.Helper()
	root := os.Getenv("CONFORMANCE")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "..", "shared", "conformance")
	}
	dir = filepath.Join(root, which)
	f, err := os.Open(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Skipf("no conformance corpus at %s: set CONFORMANCE to its folder", root)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		cols := strings.Split(lines.Text(), "\t")
		if len(cols) < 4 || cols[0] == "file" {
			continue
		}
		e := entry{path: cols[0], class: cols[1]}
		if which == "argo" {
			e.needs = strings.Fields(cols[3])
		} else if err := json.Unmarshal([]byte(cols[3]), &e.inputs); err != nil {
			t.Fatalf("%s: inputs: %v", e.path, err)
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		t.Fatal("the corpus' index is empty")
	}
	return dir, entries
}

func (e entry) manifest(t *testing.T, dir string) manifest {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	m := manifest{name: e.path, data: read(e.path), parameters: e.inputs}
	for _, n := range e.needs {
		m.others = append(m.others, argo.Source{Name: n, Data: read(n)})
	}
	return m
}
