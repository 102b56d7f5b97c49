package engine_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// world plays everything around an engine: it answers commands with events, in an order of its own choosing.
type world struct {
	t       testing.TB
	m       *engine.Machine
	s       *engine.State
	now     time.Time
	seed    uint64
	pending []engine.Event
	timers  map[engine.Timer]time.Time
	// outcome says how an attempt ends; nil is success.
	outcome func(cmd engine.StartTask) engine.Result
	// answer says what a hook says; nil is Run and Done.
	answer func(cmd engine.AskHook) engine.Answered
	// check is called for every command.
	check func(w *world, c engine.Command)
	// afterStep is called after every event.
	afterStep func(w *world)

	commands []engine.Command
	started  map[string]int
	events   []engine.Event
}

func newWorld(t testing.TB, p *program.Program) *world {
	t.Helper()
	m, err := engine.New(p, argoexpr.New(), func(conditions []string, facts map[string]any) (bool, error) {
		// Enough of a matcher for tests: "name" or "name*" against the task's name.
		task := facts["task"].(map[string]any)
		for _, c := range conditions {
			if prefix, ok := strings.CutSuffix(c, "*"); ok {
				if !strings.HasPrefix(task["name"].(string), prefix) {
					return false, nil
				}
			} else if task["name"] != c {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, m: m, s: engine.NewState(), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		timers: map[engine.Timer]time.Time{}, started: map[string]int{},
	}
}

func (w *world) start(run engine.Run) {
	if run.Name == "" {
		run.Name = "wf"
	}
	run.UID = "uid-1"
	run.ArtifactRoot = "/artifacts"
	w.step(engine.Event{Start: &engine.Start{Run: run}})
}

// step applies one event and queues the answers to what follows from it.
func (w *world) step(e engine.Event) []engine.Command {
	w.t.Helper()
	w.seed++
	if e.Time.IsZero() {
		e.Time = w.now
	}
	e.Seed = w.seed
	w.events = append(w.events, e)
	cmds, err := w.m.Step(w.s, e)
	if err != nil {
		w.t.Fatalf("step %s: %v", describe(e), err)
	}
	for _, c := range cmds {
		if w.check != nil {
			w.check(w, c)
		}
		w.take(c)
	}
	w.commands = append(w.commands, cmds...)
	if w.afterStep != nil {
		w.afterStep(w)
	}
	return cmds
}

func (w *world) take(c engine.Command) {
	switch c := c.(type) {
	case engine.StartTask:
		w.started[c.Path]++
		r := engine.Result{Phase: engine.SucceededPhase, ExitCode: new(int)}
		if w.outcome != nil {
			r = w.outcome(c)
		}
		w.pending = append(w.pending, engine.Event{Finished: &engine.Finished{Node: c.Node, Result: r}})
	case engine.AskHook:
		if c.Notify {
			return
		}
		a := engine.Answered{Answer: engine.Answer{Decision: engine.DecideRun}}
		if c.Point == engine.Post {
			a.Answer.Decision = engine.DecideDone
		}
		if w.answer != nil {
			a = w.answer(c)
		}
		a.Node, a.Point, a.Hook = c.Node, c.Point, c.Hook
		w.pending = append(w.pending, engine.Event{Answered: &a})
	case engine.AcquireLocks:
		w.pending = append(w.pending, engine.Event{Acquired: &engine.Acquired{Node: c.Node}})
	case engine.SetTimer:
		w.timers[c.Timer] = c.At
	case engine.CancelTimer:
		delete(w.timers, c.Timer)
	case engine.StopTask:
		code := 143
		for i, e := range w.pending {
			if e.Finished != nil && e.Finished.Node == c.Node {
				w.pending[i].Finished.Result = engine.Result{Phase: engine.FailedPhase, ExitCode: &code}
			}
		}
	}
}

// run answers everything in an order that r chooses (nil: as asked), until nothing is left to do.
func (w *world) run(r *rand.Rand) {
	w.t.Helper()
	for n := 0; !w.s.Phase.Ended(); n++ {
		if n > 1_000_000 {
			w.t.Fatal("the run does not end")
		}
		if len(w.pending) == 0 {
			if !w.tick() {
				return // it waits for a person
			}
			continue
		}
		i := 0
		if r != nil {
			i = r.IntN(len(w.pending))
		}
		e := w.pending[i]
		w.pending = append(w.pending[:i:i], w.pending[i+1:]...)
		w.step(e)
	}
}

// tick lets time pass until the next timer fires.
func (w *world) tick() bool {
	var next *engine.Timer
	for t, at := range w.timers {
		if t.Kind == engine.DeadlineTimer {
			continue
		}
		if next == nil || at.Before(w.timers[*next]) || (at.Equal(w.timers[*next]) && t.Node < next.Node) {
			next = &t
		}
	}
	if next == nil {
		return false
	}
	t := *next
	w.now = w.timers[t]
	delete(w.timers, t)
	w.step(engine.Event{Fired: &engine.Fired{Timer: t}})
	return true
}

func describe(e engine.Event) string {
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// picture is the state in lines, by path: what must not depend on the order of events.
func (w *world) picture() string {
	lines := []string{fmt.Sprintf("run %s %q", w.s.Phase, w.s.Message)}
	for n := range w.s.Nodes() {
		out, err := json.Marshal(n.Outputs)
		if err != nil {
			w.t.Fatal(err)
		}
		in, err := json.Marshal(n.Inputs)
		if err != nil {
			w.t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s %s %q", n.Path, n.Kind, n.Phase, n.Message)
		if n.Reused {
			line += " reused"
		}
		if string(in) != "{}" {
			line += " in=" + string(in)
		}
		if string(out) != "{}" {
			line += " out=" + string(out)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines[1:])
	return strings.Join(lines, "\n") + "\n"
}

func (w *world) phase(path string) engine.Phase {
	w.t.Helper()
	for n := range w.s.Nodes() {
		if n.Path == path {
			return n.Phase
		}
	}
	w.t.Fatalf("there is no node %s in\n%s", path, w.picture())
	return ""
}

func (w *world) node(path string) *engine.Node {
	for n := range w.s.Nodes() {
		if n.Path == path {
			return n
		}
	}
	return nil
}

// hash decides things about a path that must not depend on the order of events.
func hash(parts ...string) uint32 {
	h := fnv.New32a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return h.Sum32()
}

func text(s string) *string { return &s }

// task is a template of one container.
func task(name string, inputs ...string) *program.Template {
	t := &program.Template{
		Key: "local/" + name, Name: name,
		Task: &program.Body{Kind: program.Containers, Containers: []program.Container{{Name: "main", Command: []string{"true"}}}},
	}
	for _, in := range inputs {
		t.Inputs.Parameters = append(t.Inputs.Parameters, program.Input{Name: in})
	}
	return t
}

func templates(list ...*program.Template) map[string]*program.Template {
	m := map[string]*program.Template{}
	for _, t := range list {
		m[t.Key] = t
	}
	return m
}

func ref(name string) program.TemplateRef { return program.TemplateRef{Scope: "local", Name: name} }
