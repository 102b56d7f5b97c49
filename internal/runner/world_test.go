package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const uid = "uid-1"

// journal keeps events and snapshots in memory. It can be told to break.
type journal struct {
	mu     sync.Mutex
	events []engine.Event
	state  []byte
	at     int
	// fault, when set, is asked at each append: before says that nothing is written, after that it is but that the
	// caller never hears of it.
	fault func(n int) (before, after error)
	calls int
}

// crash is an error that ends a loop at once, as the end of its process would.
type crash struct{}

func (crash) Error() string   { return "the process was killed" }
func (crash) Permanent() bool { return true }

func (j *journal) Append(_ context.Context, _ string, from int, events []engine.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls++
	var after error
	if j.fault != nil {
		var before error
		if before, after = j.fault(j.calls); before != nil {
			return before
		}
	}
	if from != len(j.events) {
		return fmt.Errorf("position %d is taken", from)
	}
	j.events = append(j.events, events...)
	return after
}

func (j *journal) Events(ctx context.Context, run string) ([]engine.Event, error) {
	return j.EventsFrom(ctx, run, 0)
}

func (j *journal) EventsFrom(_ context.Context, _ string, from int) ([]engine.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]engine.Event(nil), j.events[from:]...), nil
}

func (j *journal) SaveState(_ context.Context, _ string, n int, state []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at, j.state = n, state
	return nil
}

func (j *journal) LoadState(context.Context, string) (int, []byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.at, j.state, nil
}

// graph gives a program whose root is a DAG: needs[i] are the tasks before task i.
func graph(needs [][]int) *program.Program {
	g := &program.Graph{}
	for i, n := range needs {
		g.Calls = append(g.Calls, program.Call{Name: fmt.Sprintf("t%d", i), Template: program.TemplateRef{Scope: "local", Name: "task"}, Needs: n})
	}
	return programOf(map[string]*program.Template{"main": {Graph: g}, "task": {Task: &program.Body{Kind: program.Containers, Containers: []program.Container{{Name: "main"}}}}})
}

func programOf(templates map[string]*program.Template) *program.Program {
	p := &program.Program{Language: "argo", Name: "test", Templates: map[string]*program.Template{}, Entry: program.Call{Template: program.TemplateRef{Scope: "local", Name: "main"}}}
	for name, t := range templates {
		t.Key, t.Name = "local/"+name, name
		p.Templates[t.Key] = t
	}
	return p
}

// rig is a process that runs one run: what is lost when it is killed.
type rig struct {
	t       testing.TB
	runner  *runner.Runner
	job     runner.Job
	close   func()
	program *program.Program
}

func newRig(t testing.TB, p *program.Program, j *journal, w *dummy.World, change ...func(*runner.Config)) *rig {
	t.Helper()
	if len(j.events) == 0 {
		j.events = []engine.Event{{Time: time.Unix(1e9, 0).UTC(), Seed: 1, Start: &engine.Start{Run: engine.Run{Name: "run", UID: uid, ArtifactRoot: "/artifacts"}}}}
	}
	machine, err := engine.New(p, argoexpr.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	hub := runner.NewHub()
	backend := w.Open(hub)
	cfg := runner.Config{Hub: hub, Backend: backend, Journal: j, SnapshotEvery: -1}
	for _, c := range change {
		c(&cfg)
	}
	return &rig{
		t: t, runner: runner.New(cfg), program: p, job: runner.Job{UID: uid, Program: p, Machine: machine},
		close: func() {
			if err := backend.Close(); err != nil {
				t.Error(err)
			}
		},
	}
}

func (r *rig) open() *runner.Active {
	r.t.Helper()
	a, err := r.runner.Open(r.t.Context(), r.job)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// run goes on with the run to its end.
func (r *rig) run() (*engine.State, runner.End, error) {
	r.t.Helper()
	defer r.close()
	a := r.open()
	end, err := a.Run(r.t.Context())
	return a.State(), end, err
}

func phases(s *engine.State) map[string]engine.Phase {
	out := map[string]engine.Phase{"": s.Phase}
	for n := range s.Nodes() {
		out[n.Path] = n.Phase
	}
	return out
}

var errBusy = errors.New("busy")
