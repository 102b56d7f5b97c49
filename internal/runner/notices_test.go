package runner_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

// deafHooks are hooks that never answer, as those of a process that is killed before its calls are made.
type deafHooks struct{ asked []string }

func (*deafHooks) Select(map[string]string) ([]engine.Hook, error) { return nil, nil }

func (h *deafHooks) Ask(_ context.Context, _ engine.Run, _ *program.Program, cmd engine.AskHook) {
	text := string(cmd.Point) + " of " + cmd.Path
	if cmd.Notify {
		text += ", not waited for"
	}
	h.asked = append(h.asked, text)
}

func (*deafHooks) Cancel(engine.Run, engine.CancelHook) {}

// The notices of a terminated run may not have gone out when its process was killed, so whoever opens the run again, though
// it has ended, sends them again.
func TestNoticesOfAnEndedRunAreSentAgain(t *testing.T) {
	p := graph([][]int{nil})
	j := &journal{}
	s := engine.NewState()
	w := dummy.NewWorld(nil)
	var node engine.NodeID
	first := newRig(t, p, j, w)
	tell := func(e engine.Event) {
		t.Helper()
		if e.Start == nil {
			e.Time = j.events[0].Time
			j.events = append(j.events, e)
		}
		commands, err := first.job.Machine.Step(s, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if start, ok := c.(engine.StartTask); ok {
				node = start.Node
			}
		}
	}
	j.events[0].Start.Run.Hooks = []engine.Hook{{Name: "h", Post: true, Task: true}}
	tell(j.events[0])
	tell(engine.Event{Shutdown: &engine.Shutdown{Terminate: true}})
	tell(engine.Event{Finished: &engine.Finished{Node: node, Result: engine.Result{Phase: engine.FailedPhase}}})
	first.close()
	if s.Phase != engine.FailedPhase {
		t.Fatalf("the run is %s", s.Phase)
	}

	hooks := &deafHooks{}
	_, end, err := newRig(t, p, j, w, func(c *runner.Config) { c.Hooks = hooks }).run()
	if err != nil || end != runner.Ended {
		t.Fatalf("end %v, %v", end, err)
	}
	if d := cmp.Diff([]string{"Post of run.t0, not waited for"}, hooks.asked); d != "" {
		t.Error(d)
	}
}
