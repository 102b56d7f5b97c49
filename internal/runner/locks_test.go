package runner_test

import (
	"context"
	"sync"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

// gate grants locks when it is opened.
type gate struct {
	hub *runner.Hub

	mu    sync.Mutex
	asked []engine.AcquireLocks
	seen  chan struct{}
}

func (g *gate) Acquire(_ context.Context, _ engine.Run, _ *program.Program, cmd engine.AcquireLocks) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, cmd)
	g.seen <- struct{}{}
}

func (g *gate) Release(engine.Run, engine.ReleaseLocks) {}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cmd := range g.asked {
		g.hub.Tell(uid, engine.Event{Acquired: &engine.Acquired{Node: cmd.Node}})
	}
	g.asked = nil
}

// A run that is resumed asks for the locks that it held once more, and starts nothing below them before it has them.
func TestLocksAreRegainedBeforeTasksStart(t *testing.T) {
	p := graph([][]int{nil})
	p.Templates["local/task"].Locks = []program.Lock{{Name: "m"}}
	first := make(chan struct{})
	w := dummy.NewWorld(func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{Hang: true} })
	j := &journal{}
	g := &gate{seen: make(chan struct{}, 10)}
	with := func(c *runner.Config) { g.hub, c.Locks = c.Hub, g }

	r := newRig(t, p, j, w, with)
	r.job.Observers = []runner.Observer{observer(func(v runner.View) {
		for n := range v.State.Nodes() {
			if n.Kind == engine.Leaf && n.Phase == engine.RunningPhase && w.Runs(uid, n.Path) == 1 {
				select {
				case <-first:
				default:
					close(first)
				}
			}
		}
	})}
	a := r.open()
	go func() {
		<-g.seen
		g.open()
		<-first
		a.Interrupt(false)
	}()
	if end, err := a.Run(t.Context()); err != nil || end != runner.Interrupted {
		t.Fatalf("%v, %v", end, err)
	}
	r.close()

	r = newRig(t, p, j, w, with)
	a = r.open()
	go func() {
		<-g.seen
		if n := w.Runs(uid, "run.t0"); n != 1 {
			t.Errorf("the task was started %d times before its lock was held again", n)
		}
		g.open()
		// A start follows; the task hangs and is stopped.
		for w.Runs(uid, "run.t0") != 2 {
			if err := a.Ask(t.Context(), func(*engine.State) ([]engine.Event, error) { return nil, nil }); err != nil {
				t.Error(err)
				return
			}
		}
		a.Interrupt(false)
	}()
	if end, err := a.Run(t.Context()); err != nil || end != runner.Interrupted {
		t.Fatalf("%v, %v", end, err)
	}
	r.close()
}
