package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func diamond() *program.Program {
	t := task("t", "m")
	t.Task.Containers[0].Args = []string{"{{inputs.parameters.m}}"}
	t.Outputs.Parameters = []program.Output{{Name: "o", Path: "/tmp/o"}}
	arg := func(s string) program.Arguments {
		return program.Arguments{Parameters: []program.Argument{{Name: "m", From: program.Binding{Text: text(s)}}}}
	}
	g := &program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{FailFast: true, Calls: []program.Call{
		{Name: "a", Template: ref("t"), Arguments: arg("A")},
		{Name: "b", Template: ref("t"), Arguments: arg("{{tasks.a.outputs.parameters.o}}b"), Needs: []int{0}},
		{Name: "c", Template: ref("t"), Arguments: arg("{{tasks.a.outputs.parameters.o}}c"), Needs: []int{0}},
		{Name: "d", Template: ref("t"), Arguments: arg("{{tasks.b.outputs.parameters.o}}{{tasks.c.outputs.parameters.o}}"), Needs: []int{1, 2}},
	}}}
	return &program.Program{Language: "argo", Name: "wf", Templates: templates(t, g), Entry: program.Call{Template: ref("main")}}
}

// echo ends a task with its first argument as output o.
func echo(cmd engine.StartTask) engine.Result {
	r := engine.Result{Phase: engine.SucceededPhase, ExitCode: new(int)}
	if args := cmd.Body.Containers[0].Args; len(args) > 0 {
		r.Outputs.Parameters = map[string]any{"o": args[0]}
	}
	return r
}

func TestDiamondPassesOutputs(t *testing.T) {
	w := newWorld(t, diamond())
	w.outcome = echo
	w.start(engine.Run{})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase {
		t.Fatalf("got %s:\n%s", w.s.Phase, w.picture())
	}
	if got := w.node("wf.d").Outputs.Parameters["o"]; got != "AbAc" {
		t.Errorf("d gave %v, want AbAc\n%s", got, w.picture())
	}
}

func TestFailureOmitsWhatDependsOnIt(t *testing.T) {
	w := newWorld(t, diamond())
	w.outcome = func(cmd engine.StartTask) engine.Result {
		if cmd.Path == "wf.b" {
			one := 1
			return engine.Result{Phase: engine.FailedPhase, ExitCode: &one, Message: "main: Error (exit code 1)"}
		}
		return echo(cmd)
	}
	w.start(engine.Run{})
	w.run(nil)
	if got := [...]engine.Phase{w.s.Phase, w.phase("wf.b"), w.phase("wf.c"), w.phase("wf.d")}; got !=
		[...]engine.Phase{engine.FailedPhase, engine.FailedPhase, engine.SucceededPhase, engine.OmittedPhase} {
		t.Errorf("got %v\n%s", got, w.picture())
	}
}

func hooked(h ...engine.Hook) engine.Run { return engine.Run{Hooks: h} }

func TestHooksHoldAndChangeATask(t *testing.T) {
	p := diamond()
	p.Templates["local/t"].Task.Containers[0].Args[0] = "{{inputs.parameters.m}}{{hooks.h.tag}}"
	w := newWorld(t, p)
	w.outcome = echo
	var order []string
	w.check = func(w *world, c engine.Command) {
		switch c := c.(type) {
		case engine.AskHook:
			order = append(order, string(c.Point)+" "+c.Path)
		case engine.StartTask:
			order = append(order, "Start "+c.Path)
		}
	}
	w.answer = func(c engine.AskHook) engine.Answered {
		if c.Point == engine.Post {
			return engine.Answered{Answer: engine.Answer{Decision: engine.DecideDone}}
		}
		if c.Path == "wf.c" {
			return engine.Answered{Answer: engine.Answer{Decision: engine.DecideReuse, Outputs: &engine.Outputs{Parameters: map[string]any{"o": "old"}}}}
		}
		return engine.Answered{Answer: engine.Answer{Decision: engine.DecideRun, Placeholders: map[string]any{"tag": "!"}}}
	}
	w.start(hooked(engine.Hook{Name: "h", Pre: true, Post: true, Task: true}))
	w.run(nil)
	want := []string{
		"Pre wf.a", "Start wf.a", "Post wf.a", "Pre wf.b", "Pre wf.c", "Start wf.b", "Post wf.c", "Post wf.b", "Pre wf.d", "Start wf.d", "Post wf.d",
	}
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("order (-want +got):\n%s", d)
	}
	if got := w.node("wf.d").Outputs.Parameters["o"]; got != "A!b!old!" {
		t.Errorf("d gave %v\n%s", got, w.picture())
	}
	if !w.node("wf.c").Reused || w.started["wf.c"] != 0 {
		t.Error("c must be reused and never started")
	}
}

func TestPostRetryMakesAttempts(t *testing.T) {
	w := newWorld(t, diamond())
	w.outcome = echo
	w.answer = func(c engine.AskHook) engine.Answered {
		d := engine.DecideRun
		if c.Point == engine.Post {
			d = engine.DecideDone
			if strings.HasPrefix(c.Path, "wf.b") && c.Attempt == 0 {
				d = engine.DecideRetry
			}
		}
		return engine.Answered{Answer: engine.Answer{Decision: d}}
	}
	w.start(hooked(engine.Hook{Name: "h", Pre: true, Post: true, Task: true}))
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase || w.node("wf.b").Kind != engine.RetryNode || w.phase("wf.b(1)") != engine.SucceededPhase || w.phase("wf.b(0)") != engine.FailedPhase {
		t.Errorf("got\n%s", w.picture())
	}
	if got := w.node("wf.d").Outputs.Parameters["o"]; got != "AbAc" {
		t.Errorf("d gave %v", got)
	}
}

func TestRetryPolicy(t *testing.T) {
	p := diamond()
	p.Templates["local/t"].Retry = &program.Retry{Limit: "2", Backoff: &program.Backoff{Duration: "10", Factor: "2"}}
	for _, c := range []struct {
		name  string
		fails int
		want  engine.Phase
	}{{"second attempt", 1, engine.SucceededPhase}, {"last attempt", 2, engine.SucceededPhase}, {"none left", 3, engine.FailedPhase}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, p)
			w.outcome = func(cmd engine.StartTask) engine.Result {
				if strings.HasPrefix(cmd.Path, "wf.a") && cmd.Attempt < c.fails {
					one := 1
					return engine.Result{Phase: engine.FailedPhase, ExitCode: &one}
				}
				return echo(cmd)
			}
			w.start(engine.Run{})
			w.run(nil)
			if w.s.Phase != c.want {
				t.Errorf("got %s, want %s\n%s", w.s.Phase, c.want, w.picture())
			}
		})
	}
}

func TestRunIsTriedAgainFromItsFailure(t *testing.T) {
	w := newWorld(t, diamond())
	bad := true
	w.outcome = func(cmd engine.StartTask) engine.Result {
		if strings.HasPrefix(cmd.Path, "wf.b") && bad {
			return engine.Result{Phase: engine.FailedPhase}
		}
		return echo(cmd)
	}
	w.start(engine.Run{})
	w.run(nil)
	bad = false
	w.step(engine.Event{RetryRun: &engine.RetryRun{}})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase || w.started["wf.a"] != 1 || w.started["wf.c"] != 1 {
		t.Errorf("started %v\n%s", w.started, w.picture())
	}
	if got := w.node("wf.d").Outputs.Parameters["o"]; got != "AbAc" {
		t.Errorf("d gave %v\n%s", got, w.picture())
	}
}

// A template that calls itself twice has 2^100 calls within the depth that is allowed.
func TestRecursionThatGrowsEnds(t *testing.T) {
	p := &program.Program{
		Name: "wf", Entry: program.Call{Template: ref("main")},
		Templates: templates(&program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{
			Calls: []program.Call{{Name: "a", Template: ref("main")}, {Name: "b", Template: ref("main")}}, Stages: [][]int{{0, 1}},
		}}),
	}
	w := newWorld(t, p)
	w.start(engine.Run{MaxNodes: 1000})
	if w.s.Phase != engine.FailedPhase || w.s.Len() > 1200 {
		t.Errorf("%s with %d nodes", w.s.Phase, w.s.Len())
	}
	for n := range w.s.Nodes() {
		if strings.Contains(n.Message, "has grown to 1000 nodes") {
			return
		}
	}
	t.Error("no node says why")
}

// looped is one loop whose items run one at a time and stop at the first failure.
func looped(items ...any) *program.Program {
	t := task("t", "m")
	t.Task.Containers[0].Args = []string{"{{inputs.parameters.m}}"}
	g := &program.Template{Key: "local/main", Name: "main", Parallelism: 1, Graph: &program.Graph{FailFast: true, Calls: []program.Call{{
		Name: "work", Template: ref("t"), Loop: &program.Loop{Items: items},
		Arguments: program.Arguments{Parameters: []program.Argument{{Name: "m", From: program.Binding{Text: text("{{item}}")}}}},
	}}}}
	return &program.Program{Language: "argo", Name: "wf", Templates: templates(t, g), Entry: program.Call{Template: ref("main")}}
}

func TestARetryRunsWhatFailFastTookBack(t *testing.T) {
	w := newWorld(t, looped("a", "b", "c", "d"))
	bad := true
	w.outcome = func(cmd engine.StartTask) engine.Result {
		if bad && cmd.Body.Containers[0].Args[0] == "b" {
			return engine.Result{Phase: engine.FailedPhase}
		}
		return echo(cmd)
	}
	w.start(engine.Run{})
	w.run(nil)
	if w.s.Phase != engine.FailedPhase || len(w.started) != 2 {
		t.Fatalf("before: started %v\n%s", w.started, w.picture())
	}
	bad = false
	w.step(engine.Event{RetryRun: &engine.RetryRun{}})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase || len(w.node("wf.work").Children) != 4 {
		t.Fatalf("after: started %v\n%s", w.started, w.picture())
	}
	for _, item := range []string{"wf.work(0:a)", "wf.work(1:b)", "wf.work(2:c)", "wf.work(3:d)"} {
		if w.phase(item) != engine.SucceededPhase {
			t.Errorf("%s is %s", item, w.phase(item))
		}
	}
}

func TestSequencesAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		name string
		seq  program.Sequence
		want []string
		bad  bool
	}{
		{name: "down", seq: program.Sequence{Start: "2", End: "0"}, want: []string{"2", "1", "0"}},
		{name: "one", seq: program.Sequence{Start: "5", End: "5"}, want: []string{"5"}},
		{name: "none", seq: program.Sequence{Count: "0"}},
		{name: "the last number", seq: program.Sequence{Start: "9223372036854775806", End: "9223372036854775807"}, want: []string{"9223372036854775806", "9223372036854775807"}},
		{name: "past the last number", seq: program.Sequence{Start: "9223372036854775805", Count: "5"}, bad: true},
		{name: "everything", seq: program.Sequence{Start: "-9223372036854775808", End: "9223372036854775807"}, bad: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := looped()
			p.Templates["local/main"].Graph.Calls[0].Loop = &program.Loop{Sequence: &c.seq}
			w := newWorld(t, p)
			var got []string
			w.outcome = func(cmd engine.StartTask) engine.Result {
				got = append(got, cmd.Body.Containers[0].Args[0])
				return echo(cmd)
			}
			w.start(engine.Run{})
			w.run(nil)
			if w.s.Phase.Bad() != c.bad {
				t.Fatalf("phase %s: %s", w.s.Phase, w.picture())
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// What a hook gives must be what the template declares, as what a task gives must.
func TestReusedOutputsHaveTheirTypes(t *testing.T) {
	p := diamond()
	p.Templates["local/t"].Outputs.Parameters[0].Type = program.Integer
	w := newWorld(t, p)
	w.answer = func(c engine.AskHook) engine.Answered {
		return engine.Answered{Answer: engine.Answer{Decision: engine.DecideReuse, Outputs: &engine.Outputs{Parameters: map[string]any{"o": []any{"x"}}}}}
	}
	w.start(hooked(engine.Hook{Name: "h", Pre: true, Task: true}))
	w.run(nil)
	if got := w.node("wf.a"); got.Phase != engine.ErrorPhase && got.Outputs.Parameters["o"] != `["x"]` {
		t.Errorf("got %s %v", got.Phase, got.Outputs.Parameters)
	}
}

// Events say the same after they were written and read, and steps leave them as they were told.
func TestEventsAreKeptAsTheyWereTold(t *testing.T) {
	e := engine.Event{Finished: &engine.Finished{Node: 1, Result: engine.Result{
		Phase: engine.SucceededPhase, Outputs: engine.Outputs{Parameters: map[string]any{"big": int64(9007199254740993), "list": []any{int64(1), 0.5}}},
	}}}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back engine.Event
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(e, back); d != "" {
		t.Errorf("(-told +read):\n%s", d)
	}
	w := newWorld(t, diamond())
	w.start(engine.Run{})
	told := map[string]any{"other": "x"}
	w.step(engine.Event{Finished: &engine.Finished{Node: w.node("wf.a").ID, Result: engine.Result{
		Phase: engine.SucceededPhase, Outputs: engine.Outputs{Parameters: told},
	}}})
	if d := cmp.Diff(map[string]any{"other": "x"}, told); d != "" {
		t.Errorf("the event was changed:\n%s", d)
	}
}

// A retried run keeps to its limits and takes its locks again.
func TestARetryKeepsLimitsAndLocks(t *testing.T) {
	p := looped("a", "b", "c")
	p.Templates["local/main"].Graph.FailFast = false
	p.Templates["local/main"].Locks = []program.Lock{{Name: "graph"}}
	p.Templates["local/t"].Retry = &program.Retry{Limit: "1"}
	p.Locks = []program.Lock{{Name: "run"}}
	w := newWorld(t, p)
	bad := true
	var locks []string
	w.outcome = func(cmd engine.StartTask) engine.Result {
		if bad {
			return engine.Result{Phase: engine.FailedPhase}
		}
		return echo(cmd)
	}
	w.check = func(_ *world, c engine.Command) {
		switch c := c.(type) {
		case engine.AcquireLocks:
			locks = append(locks, "+"+c.Locks[0].Name)
		case engine.ReleaseLocks:
			locks = append(locks, "-"+c.Path)
		}
	}
	w.afterStep = func(w *world) {
		running := 0
		for n := range w.s.Nodes() {
			if n.Kind == engine.Leaf && n.Stage == engine.StageRun {
				running++
			}
		}
		if running > 1 {
			t.Fatalf("%d tasks run at once, one may:\n%s", running, w.picture())
		}
	}
	w.start(engine.Run{})
	w.run(nil)
	bad = false
	w.step(engine.Event{RetryRun: &engine.RetryRun{}})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase {
		t.Fatalf("got %s\n%s", w.s.Phase, w.picture())
	}
	if d := cmp.Diff([]string{"+run", "+graph", "-wf", "-wf", "+run", "+graph", "-wf", "-wf"}, locks); d != "" {
		t.Errorf("locks (-want +got):\n%s", d)
	}
}

// A run whose entry could not even be entered is tried again from there.
func TestARetryEntersTheEntryAgain(t *testing.T) {
	p := diamond()
	p.Entry.Template = program.TemplateRef{Scope: "local", Name: "{{workflow.parameters.which}}"}
	w := newWorld(t, p)
	w.outcome = echo
	w.start(engine.Run{Parameters: map[string]any{"which": "nowhere"}})
	w.run(nil)
	if w.s.Phase != engine.ErrorPhase {
		t.Fatalf("before: %s\n%s", w.s.Phase, w.picture())
	}
	w.step(engine.Event{RetryRun: &engine.RetryRun{Parameters: map[string]any{"which": "main"}}})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase {
		t.Errorf("after: %s\n%s", w.s.Phase, w.picture())
	}
}

// A retried run sees the parameters that it is given, and its retry policies begin anew.
func TestARetrySeesNewParameters(t *testing.T) {
	p := diamond()
	p.Templates["local/t"].Retry = &program.Retry{Limit: "1"}
	p.Templates["local/main"].Graph.Calls[0].Arguments.Parameters[0].From = program.Binding{Text: text("{{workflow.parameters.flag}}")}
	w := newWorld(t, p)
	seen := map[string]int{}
	w.outcome = func(cmd engine.StartTask) engine.Result {
		arg := cmd.Body.Containers[0].Args[0]
		seen[arg]++
		if arg == "bad" || arg == "weak" && seen[arg] == 1 {
			return engine.Result{Phase: engine.FailedPhase}
		}
		return echo(cmd)
	}
	w.start(engine.Run{Parameters: map[string]any{"flag": "bad"}})
	w.run(nil)
	if w.s.Phase != engine.FailedPhase || seen["bad"] != 2 {
		t.Fatalf("before: %v\n%s", seen, w.picture())
	}
	w.step(engine.Event{RetryRun: &engine.RetryRun{Parameters: map[string]any{"flag": "weak"}}})
	w.run(nil)
	if w.s.Phase != engine.SucceededPhase || seen["bad"] != 2 || seen["weak"] != 2 {
		t.Errorf("after: %v\n%s", seen, w.picture())
	}
}
