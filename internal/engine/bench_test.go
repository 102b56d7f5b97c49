package engine_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// fanOut is one loop over n items, each with one substituted parameter.
func fanOut(n int) *program.Program {
	t := task("t", "i")
	t.Task.Containers[0].Args = []string{"{{inputs.parameters.i}}"}
	g := &program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{Calls: []program.Call{{
		Name: "work", Template: ref("t"), Loop: &program.Loop{Sequence: &program.Sequence{Count: strconv.Itoa(n)}},
		Arguments: program.Arguments{Parameters: []program.Argument{{Name: "i", From: program.Binding{Text: text("{{item}}")}}}},
	}}}}
	return &program.Program{Language: "argo", Name: "wf", Templates: templates(t, g), Entry: program.Call{Template: ref("main")}}
}

// chain is n tasks, each of which takes an output of the one before.
func chain(n int) *program.Program {
	t := task("t", "i")
	t.Task.Containers[0].Args = []string{"{{inputs.parameters.i}}"}
	t.Outputs.Parameters = []program.Output{{Name: "o", Path: "/tmp/o"}}
	calls := make([]program.Call, n)
	for i := range calls {
		from := "0"
		if i > 0 {
			from = fmt.Sprintf("{{tasks.t%d.outputs.parameters.o}}", i-1)
			calls[i].Needs = []int{i - 1}
		}
		calls[i].Name, calls[i].Template = fmt.Sprintf("t%d", i), ref("t")
		calls[i].Arguments.Parameters = []program.Argument{{Name: "i", From: program.Binding{Text: text(from)}}}
	}
	g := &program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{Calls: calls}}
	return &program.Program{Language: "argo", Name: "wf", Templates: templates(t, g), Entry: program.Call{Template: ref("main")}}
}

// play runs a program to its end, two events a task, and gives the number of events.
func play(b *testing.B, p *program.Program) (*engine.State, int) {
	m, err := engine.New(p, argoexpr.New(), nil)
	if err != nil {
		b.Fatal(err)
	}
	s := engine.NewState()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	events := 0
	step := func(e engine.Event) []engine.Command {
		e.Time, e.Seed = now, uint64(events)
		events++
		cmds, err := m.Step(s, e)
		if err != nil {
			b.Fatal(err)
		}
		s.TakeChanged()
		return cmds
	}
	queue := step(engine.Event{Start: &engine.Start{Run: engine.Run{Name: "wf", UID: "u", ArtifactRoot: "/a", Created: now}}})
	code := 0
	for i := 0; i < len(queue); i++ {
		c, ok := queue[i].(engine.StartTask)
		if !ok {
			continue
		}
		queue[i] = nil
		queue = append(queue, step(engine.Event{Running: &engine.Running{Node: c.Node, Host: "host"}})...)
		queue = append(queue, step(engine.Event{Finished: &engine.Finished{Node: c.Node, Result: engine.Result{
			Phase: engine.SucceededPhase, ExitCode: &code, Outputs: engine.Outputs{Parameters: map[string]any{"o": "x"}},
		}}})...)
	}
	if s.Phase != engine.SucceededPhase {
		b.Fatalf("got %s: %s", s.Phase, s.Message)
	}
	return s, events
}

func benchmark(b *testing.B, p *program.Program, tasks int) {
	b.ReportAllocs()
	var events int
	for b.Loop() {
		_, events = play(b, p)
	}
	total := b.Elapsed().Seconds() * 1e9 / float64(b.N)
	b.ReportMetric(total/float64(events), "ns/event")
	b.ReportMetric(float64(events)/(total/1e9), "events/s")
	b.ReportMetric(0, "ns/op")

	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, _ := play(b, p)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(tasks), "B/task")
	runtime.KeepAlive(s)
}

// The goals (issue 2): at least 100,000 events a second on one core, time per event at 100,000 tasks within 1.5 times that
// at 1,000, and under 2 KB a finished task.
func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmark(b, fanOut(n), n) })
	}
}

func BenchmarkChain(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchmark(b, chain(n), n) })
	}
}

// BenchmarkRetry is the retry of a run whose first task failed, so that all n others were never run.
func BenchmarkRetry(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			calls := make([]program.Call, n+1)
			calls[0] = program.Call{Name: "first", Template: ref("t")}
			for i := range n {
				calls[i+1] = program.Call{Name: fmt.Sprintf("t%d", i), Template: ref("t"), Needs: []int{0}}
			}
			g := &program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{Calls: calls}}
			p := &program.Program{Language: "argo", Name: "wf", Templates: templates(task("t"), g), Entry: program.Call{Template: ref("main")}}
			m, err := engine.New(p, argoexpr.New(), nil)
			if err != nil {
				b.Fatal(err)
			}
			step := func(s *engine.State, e engine.Event) []engine.Command {
				e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				cmds, err := m.Step(s, e)
				if err != nil {
					b.Fatal(err)
				}
				return cmds
			}
			var took time.Duration
			for b.Loop() {
				s := engine.NewState()
				first := step(s, engine.Event{Start: &engine.Start{Run: engine.Run{Name: "wf", UID: "u", ArtifactRoot: "/a"}}})[0].(engine.StartTask)
				step(s, engine.Event{Finished: &engine.Finished{Node: first.Node, Result: engine.Result{Phase: engine.FailedPhase}}})
				began := time.Now()
				if cmds := step(s, engine.Event{RetryRun: &engine.RetryRun{}}); len(cmds) != 1 {
					b.Fatalf("%d commands", len(cmds))
				}
				took += time.Since(began)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/float64(n), "ns/task")
			b.ReportMetric(0, "ns/op")
		})
	}
}
