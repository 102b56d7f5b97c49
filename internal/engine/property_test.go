package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// generate makes a random program without what depends on order by its nature: global outputs, failFast, locks,
// parallelism limits and random values.
func generate(r *rand.Rand) *program.Program {
	leaf := task("leaf", "m")
	leaf.Task.Containers[0].Args = []string{"{{inputs.parameters.m}}"}
	leaf.Outputs.Parameters = []program.Output{{Name: "o", Path: "/o", Default: &program.Binding{Text: text("none")}}}
	retried := task("retried", "m")
	retried.Task.Containers[0].Args = []string{"{{inputs.parameters.m}}-{{retries}}"}
	retried.Outputs = leaf.Outputs
	retried.Retry = &program.Retry{Limit: "2", Policy: "Always"}
	all := []*program.Template{leaf, retried}
	names := []string{"leaf", "retried"}
	levels := 1 + r.IntN(3)
	for l := range levels {
		name := fmt.Sprintf("g%d", l)
		g := &program.Template{Key: "local/" + name, Name: name, Graph: &program.Graph{}}
		g.Inputs.Parameters = []program.Input{{Name: "m"}}
		g.Outputs.Parameters = []program.Output{{Name: "o", Optional: true, From: &program.Binding{Const: program.JSON(`"graph"`)}}}
		if r.IntN(4) == 0 {
			g.Retry = &program.Retry{Limit: "1"}
		}
		fill(r, g.Graph, names)
		all = append(all, g)
		names = append(names, name)
	}
	entry := names[len(names)-1]
	p := &program.Program{Language: "argo", Name: "wf", Templates: templates(all...), Entry: program.Call{
		Template: ref(entry), Arguments: program.Arguments{Parameters: []program.Argument{{Name: "m", From: program.Binding{Text: text("top")}}}},
	}}
	if r.IntN(3) == 0 {
		p.OnExit = &program.Call{Template: ref("leaf"), Arguments: program.Arguments{Parameters: []program.Argument{{
			Name: "m", From: program.Binding{Text: text("{{workflow.status}}")},
		}}}}
	}
	return p
}

func fill(r *rand.Rand, g *program.Graph, names []string) {
	n := 1 + r.IntN(6)
	staged := r.IntN(3) == 0
	for i := range n {
		c := program.Call{Name: fmt.Sprintf("c%d", i), Template: ref(names[r.IntN(len(names))])}
		arg := program.Binding{Text: text(fmt.Sprintf("v%d", i))}
		if staged {
			if i == 0 || r.IntN(2) == 0 {
				g.Stages = append(g.Stages, nil)
			}
			g.Stages[len(g.Stages)-1] = append(g.Stages[len(g.Stages)-1], i)
		} else {
			for k := range i {
				if r.IntN(3) == 0 {
					c.Needs = append(c.Needs, k)
				}
			}
			if len(c.Needs) > 0 {
				if r.IntN(3) == 0 {
					c.Depends = tree(r, c.Needs)
				}
				arg = program.Binding{
					Ref:     fmt.Sprintf("tasks.c%d.outputs.parameters.o", c.Needs[r.IntN(len(c.Needs))]),
					Default: &program.Binding{Text: text("missing")},
				}
			}
		}
		switch r.IntN(8) {
		case 0:
			c.When = &program.Condition{Form: "when", Source: fmt.Sprintf("%d == 1", r.IntN(2))}
		case 1:
			c.Loop = &program.Loop{Items: []any{"x", "y", int64(3)}[:r.IntN(4)]}
			arg = program.Binding{Text: text("{{item}}")}
		case 2:
			c.ContinueOn = program.ContinueOn{Failed: true, Error: r.IntN(2) == 0}
		case 3:
			c.Lifecycle = []program.Lifecycle{{Name: "exit", Exit: true, Call: program.Call{
				Template: ref("leaf"), Arguments: program.Arguments{Parameters: []program.Argument{{Name: "m", From: program.Binding{Text: text("bye")}}}},
			}}}
		}
		c.Arguments.Parameters = []program.Argument{{Name: "m", From: arg}}
		g.Calls = append(g.Calls, c)
	}
}

func tree(r *rand.Rand, needs []int) *program.Depends {
	words := []program.Result{
		program.Succeeded, program.Failed, program.Errored, program.Skipped, program.Omitted, program.AnySucceeded, program.AllFailed, program.Ended,
	}
	d := &program.Depends{Op: []program.DependsOp{program.And, program.Or}[r.IntN(2)]}
	for _, n := range needs {
		leaf := &program.Depends{Op: program.Is, Call: n, Result: words[r.IntN(len(words))]}
		if r.IntN(4) == 0 {
			leaf = &program.Depends{Op: program.Not, Args: []*program.Depends{leaf}}
		}
		d.Args = append(d.Args, leaf)
	}
	return d
}

// fate ends tasks in ways that depend on their path and inputs alone.
func fate(salt string) func(engine.StartTask) engine.Result {
	return func(c engine.StartTask) engine.Result {
		h := hash(salt, c.Path)
		code := int(h % 2)
		r := engine.Result{Phase: engine.SucceededPhase, ExitCode: &code}
		switch h % 10 {
		case 0, 1:
			code = 1
			r.Phase, r.Message = engine.FailedPhase, "main: Error (exit code 1)"
		case 2:
			r.Phase, r.Message, r.ExitCode = engine.ErrorPhase, "lost", nil
		default:
			code = 0
			r.Outputs.Parameters = map[string]any{"o": "o:" + c.Body.Containers[0].Args[0]}
		}
		return r
	}
}

// verdict answers hooks in ways that depend on the path alone.
func verdict(salt string) func(engine.AskHook) engine.Answered {
	return func(c engine.AskHook) engine.Answered {
		h := hash(salt, "hook", c.Hook, string(c.Point), c.Path)
		a := engine.Answer{Decision: engine.DecideRun, Placeholders: map[string]any{"k": c.Path}}
		if c.Point == engine.Post {
			a = engine.Answer{Decision: engine.DecideDone}
			switch h % 12 {
			case 0:
				a.Decision = engine.DecideFail
			case 1:
				a.Decision = engine.DecideRetry
			}
			return engine.Answered{Answer: a}
		}
		switch h % 12 {
		case 0:
			a = engine.Answer{Decision: engine.DecideReuse, Outputs: &engine.Outputs{Parameters: map[string]any{"o": "reused"}}}
		case 1:
			a = engine.Answer{Decision: engine.DecideSkip}
		case 2:
			a = engine.Answer{Decision: engine.DecideFail}
		case 3:
			return engine.Answered{Failure: "connection refused"}
		case 4:
			a.Inputs = &engine.Inputs{Parameters: map[string]any{"m": "replaced"}}
		}
		return engine.Answered{Answer: a}
	}
}

var someHooks = []engine.Hook{
	{Name: "one", Pre: true, Post: true, Task: true, Graph: true},
	{Name: "two", Pre: true, Task: true, Ignore: true},
	{Name: "three", Post: true, Task: true, Workflow: true},
}

// checkOrder fails the test when a task starts too early.
func checkOrder(w *world, c engine.Command) {
	start, ok := c.(engine.StartTask)
	if !ok {
		return
	}
	n := w.s.Node(start.Node)
	for _, hc := range n.Hooks {
		if hc.Point == engine.Pre && hc.Answered.IsZero() {
			w.t.Fatalf("%s started before hook %s answered", n.Path, hc.Hook)
		}
	}
	if w.started[start.Path] > 0 {
		w.t.Fatalf("%s started twice", start.Path)
	}
	// Every call that this one, or a graph around it, needs is done: Post hooks included.
	for ; n != nil; n = w.s.Node(n.Parent) {
		g := w.s.Node(n.Parent)
		if g == nil || g.Kind != engine.GraphNode || n.Hooked || n.Kind == engine.Round || n.Call() == nil {
			continue
		}
		for _, need := range n.Call().Needs {
			d := w.s.Child(g, need)
			if d == nil || d.Stage != engine.StageDone {
				w.t.Fatalf("%s started before what it needs (%d) was done", start.Path, need)
			}
			for _, hc := range d.Hooks {
				if hc.Answered.IsZero() {
					w.t.Fatalf("%s started before hook %s of %s answered", start.Path, hc.Hook, d.Path)
				}
			}
		}
	}
}

func play2(t testing.TB, p *program.Program, salt string, hooks []engine.Hook, order *rand.Rand, after func(*world)) *world {
	w := newWorld(t, p)
	w.outcome, w.answer, w.check, w.afterStep = fate(salt), verdict(salt), checkOrder, after
	w.start(engine.Run{Hooks: hooks})
	w.run(order)
	return w
}

func TestAnyOrderGivesTheSameState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generate(rand.New(rand.NewPCG(seed, 1)))
		salt := fmt.Sprint(seed)
		var hooks []engine.Hook
		if rapid.Bool().Draw(rt, "hooks") {
			hooks = someHooks
		}
		want := play2(t, p, salt, hooks, nil, nil)
		mustBeOver(rt, want)
		for i := range 3 {
			got := play2(t, p, salt, hooks, rand.New(rand.NewPCG(seed, uint64(i+2))), nil)
			if d := cmp.Diff(want.picture(), got.picture()); d != "" {
				rt.Fatalf("order %d (-want +got):\n%s", i, d)
			}
		}
	})
}

func TestSavingAndLoadingChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generate(rand.New(rand.NewPCG(seed, 1)))
		salt := fmt.Sprint(seed)
		plain := play2(t, p, salt, someHooks, rand.New(rand.NewPCG(seed, 2)), nil)
		reloaded := play2(t, p, salt, someHooks, rand.New(rand.NewPCG(seed, 2)), func(w *world) {
			data, err := json.Marshal(w.s)
			if err != nil {
				rt.Fatal(err)
			}
			before := outstanding(w.m, w.s)
			// A new machine, as after a crash: nothing but the program and the bytes is left.
			if w.m, err = engine.New(p, argoexpr.New(), nil); err != nil {
				rt.Fatal(err)
			}
			if w.s, err = w.m.Load(data); err != nil {
				rt.Fatal(err)
			}
			again, err := json.Marshal(w.s)
			if err != nil {
				rt.Fatal(err)
			}
			if d := cmp.Diff(string(data), string(again)); d != "" {
				rt.Fatalf("saved again (-first +second):\n%s", d)
			}
			if d := cmp.Diff(before, outstanding(w.m, w.s)); d != "" {
				rt.Fatalf("outstanding commands (-before +after):\n%s", d)
			}
		})
		if d := cmp.Diff(plain.picture(), reloaded.picture()); d != "" {
			rt.Fatalf("(-plain +reloaded):\n%s", d)
		}
	})
}

func outstanding(m *engine.Machine, s *engine.State) []string {
	var out []string
	for _, c := range m.Outstanding(s) {
		switch c := c.(type) {
		case engine.StartTask:
			data, _ := json.Marshal(c.Body)
			out = append(out, fmt.Sprintf("start %s %s", c.Path, data))
		case engine.AskHook:
			out = append(out, fmt.Sprintf("ask %s %s %s", c.Hook, c.Point, c.UID))
		default:
			out = append(out, fmt.Sprintf("%T%v", c, c))
		}
	}
	return out
}

// What is outstanding is exactly what was asked and not yet answered.
func TestOutstandingIsWhatWaits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generate(rand.New(rand.NewPCG(seed, 1)))
		play2(t, p, fmt.Sprint(seed), someHooks, rand.New(rand.NewPCG(seed, 2)), func(w *world) {
			if w.s.Phase.Ended() {
				return
			}
			waiting := map[string]bool{}
			for _, e := range w.pending {
				switch {
				case e.Finished != nil:
					waiting["start "+w.s.Node(e.Finished.Node).Path] = true
				case e.Answered != nil:
					n := w.s.Node(e.Answered.Node)
					waiting[fmt.Sprintf("ask %s %s %s", n.Path, e.Answered.Hook, e.Answered.Point)] = true
				}
			}
			got := map[string]bool{}
			for _, c := range w.m.Outstanding(w.s) {
				switch c := c.(type) {
				case engine.StartTask:
					got["start "+w.s.Node(c.Node).Path] = true
				case engine.AskHook:
					got[fmt.Sprintf("ask %s %s %s", w.s.Node(c.Node).Path, c.Hook, c.Point)] = true
				}
			}
			if d := cmp.Diff(waiting, got); d != "" {
				rt.Fatalf("(-waiting +outstanding):\n%s", d)
			}
		})
	})
}

// A failed run that is tried again ends, in any order the same, and runs nothing again that had succeeded.
func TestTryingARunAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generate(rand.New(rand.NewPCG(seed, 1)))
		hooks := someHooks
		if rapid.Bool().Draw(rt, "plain") {
			hooks = nil
		}
		limit := int64(rapid.IntRange(0, 2).Draw(rt, "limit"))
		locked := rapid.Bool().Draw(rt, "locked")
		for _, tmpl := range p.Templates {
			if tmpl.Graph != nil {
				tmpl.Parallelism = limit
			}
			if locked {
				tmpl.Locks = []program.Lock{{Name: tmpl.Name}}
			}
		}
		if locked {
			p.Locks = []program.Lock{{Name: "run"}}
		}
		var reload func(*world)
		if rapid.Bool().Draw(rt, "reload") {
			reload = func(w *world) {
				data, err := json.Marshal(w.s)
				if err != nil {
					rt.Fatal(err)
				}
				if w.s, err = w.m.Load(data); err != nil {
					rt.Fatal(err)
				}
			}
		}
		again := func(order *rand.Rand) *world {
			w := play2(t, p, fmt.Sprint(seed), hooks, order, reload)
			if !w.s.Phase.Bad() {
				return w
			}
			for try := range 2 {
				if !w.s.Phase.Bad() {
					break
				}
				succeeded := map[string]bool{}
				for n := range w.s.Nodes() {
					if n.Kind == engine.Leaf && n.Phase == engine.SucceededPhase && !underBad(w, n) && !n.Exit {
						succeeded[n.Path] = true
					}
				}
				w.outcome = fate(fmt.Sprint(seed, try, "again"))
				w.answer = nil
				w.check = func(w *world, c engine.Command) {
					if s, ok := c.(engine.StartTask); ok && succeeded[w.s.Node(s.Node).Path] {
						rt.Fatalf("%s had succeeded and runs again", w.s.Node(s.Node).Path)
					}
				}
				w.step(engine.Event{RetryRun: &engine.RetryRun{}})
				w.run(order)
				mustBeOver(rt, w)
			}
			return w
		}
		want := again(nil)
		got := again(rand.New(rand.NewPCG(seed, 7)))
		if d := cmp.Diff(want.picture(), got.picture()); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// underBad says whether a node is inside an attempt that failed, or comes after a call that did: such work is done
// again.
func underBad(w *world, n *engine.Node) bool {
	for p := w.s.Node(n.Parent); p != nil; n, p = p, w.s.Node(p.Parent) {
		if n.Hooked || (p.Kind == engine.RetryNode && p.Phase.Bad()) {
			return true
		}
		if p.Kind == engine.GraphNode && n.Kind != engine.Round && afterBad(w, p, n.Call()) {
			return true
		}
	}
	return false
}

func afterBad(w *world, g *engine.Node, call *program.Call) bool {
	for _, need := range call.Needs {
		c := w.s.Child(g, need)
		if c == nil || c.Phase.Bad() || c.Phase == engine.OmittedPhase || afterBad(w, g, c.Call()) {
			return true
		}
	}
	return false
}

// mustBeOver fails the test when the run hangs, or has ended with something still going on.
func mustBeOver(t *rapid.T, w *world) {
	if !w.s.Phase.Ended() {
		t.Fatalf("the run hangs:\n%s", w.picture())
	}
	for n := range w.s.Nodes() {
		if n.Stage != engine.StageDone || !n.Phase.Ended() {
			t.Fatalf("the run has ended but %s has not (%s):\n%s", n.Path, n.Stage, w.picture())
		}
	}
	for _, c := range w.m.Outstanding(w.s) {
		if ask, ok := c.(engine.AskHook); !ok || !ask.Notify || w.s.Shutdown != "Terminate" {
			t.Fatalf("the run has ended but there is something to do: %+v", c)
		}
	}
}

// Whatever a person does at whatever moment, the run ends with nothing left over, and what was asked is answered once.
func TestInterruptedRunsEnd(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		p := generate(rand.New(rand.NewPCG(seed, 1)))
		p.Parallelism = int64(rapid.IntRange(0, 3).Draw(rt, "parallelism"))
		for _, key := range slices.Sorted(maps.Keys(p.Templates)) {
			tmpl := p.Templates[key]
			if tmpl.Graph != nil {
				tmpl.Parallelism = int64(rapid.IntRange(0, 2).Draw(rt, "limit"))
				tmpl.Graph.FailFast = rapid.Bool().Draw(rt, "failFast")
			} else if rapid.IntRange(0, 3).Draw(rt, "locked") == 0 {
				tmpl.Locks = []program.Lock{{Name: "m"}}
			}
		}
		at := rapid.IntRange(0, 30).Draw(rt, "at")
		what := rapid.SampledFrom([]engine.Event{
			{Shutdown: &engine.Shutdown{}},
			{Shutdown: &engine.Shutdown{Terminate: true}},
			{Suspend: &engine.Suspend{}},
			{Abandoned: &engine.Abandoned{Message: "gone"}},
		}).Draw(rt, "what")
		events := 0
		w := newWorld(t, p)
		w.outcome, w.answer, w.check = fate(fmt.Sprint(seed)), verdict(fmt.Sprint(seed)), checkOrder
		w.afterStep = func(w *world) {
			running := 0
			for n := range w.s.Nodes() {
				if n.Kind == engine.Leaf && n.Stage == engine.StageRun {
					running++
				}
			}
			if p.Parallelism > 0 && running > int(p.Parallelism) {
				rt.Fatalf("%d tasks run at once, %d may", running, p.Parallelism)
			}
			if events++; events == at && !w.s.Phase.Ended() {
				w.step(what)
			}
		}
		w.start(engine.Run{Hooks: someHooks})
		order := rand.New(rand.NewPCG(seed, 3))
		w.run(order)
		for range 3 {
			if w.s.Phase.Ended() {
				break
			}
			w.step(engine.Event{Resume: &engine.Resume{}})
			w.run(order)
		}
		if what.Abandoned != nil {
			w.run(order)
			return // it ends whatever goes on
		}
		mustBeOver(rt, w)
	})
}
