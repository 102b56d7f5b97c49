package runner_test

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

func succeed(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{} }

func TestRunsAGraph(t *testing.T) {
	r := newRig(t, graph([][]int{nil, {0}, {0}, {1, 2}}), &journal{}, dummy.NewWorld(succeed))
	s, end, err := r.run()
	if err != nil || end != runner.Ended {
		t.Fatalf("end %v, %v", end, err)
	}
	want := map[string]engine.Phase{"": "Succeeded", "run": "Succeeded", "run.t0": "Succeeded", "run.t1": "Succeeded", "run.t2": "Succeeded", "run.t3": "Succeeded"}
	if d := cmp.Diff(want, phases(s)); d != "" {
		t.Errorf("phases (-want +got):\n%s", d)
	}
}

// A process that is killed at any append, before it is written or after, loses nothing: those that follow come to the
// same end, and no command is started twice.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(rt, "tasks")
		needs := make([][]int, n)
		for i := range needs {
			for j := range i {
				if rapid.IntRange(0, 3).Draw(rt, "need") == 0 {
					needs[i] = append(needs[i], j)
				}
			}
		}
		bad := rapid.IntRange(0, 20).Draw(rt, "bad")
		script := func(_ engine.Run, cmd engine.StartTask) dummy.Act {
			h := fnv.New32()
			_, _ = h.Write([]byte(cmd.Path))
			if bad > 0 && int(h.Sum32())%bad == 1 {
				return dummy.Act{Result: dummy.Failed(1, "no")}
			}
			return dummy.Act{}
		}
		p := graph(needs)
		p.Templates["local/main"].Graph.FailFast = false
		want, _, err := newRig(t, p, &journal{}, dummy.NewWorld(script)).run()
		if err != nil {
			rt.Fatal(err)
		}

		j, w := &journal{}, dummy.NewWorld(script)
		every := rapid.IntRange(1, 5).Draw(rt, "snapshotEvery")
		var got *engine.State
		for range 100 {
			die := rapid.IntRange(1, 6).Draw(rt, "dies at append")
			after := rapid.Bool().Draw(rt, "after it is written")
			j.calls = 0
			j.fault = func(call int) (error, error) {
				switch {
				case call != die:
					return nil, nil
				case after:
					return nil, crash{}
				}
				return crash{}, nil
			}
			r := newRig(t, p, j, w, func(c *runner.Config) { c.SnapshotEvery = every })
			s, end, err := r.run()
			if err == nil {
				if end != runner.Ended {
					rt.Fatalf("end %v", end)
				}
				got = s
				break
			}
			if !errors.Is(err, crash{}) {
				rt.Fatal(err)
			}
		}
		if got == nil {
			rt.Fatal("never came to its end")
		}
		if d := cmp.Diff(phases(want), phases(got)); d != "" {
			rt.Fatalf("phases (-without a crash +with):\n%s", d)
		}
		for n := range got.Nodes() {
			if runs := w.Runs(uid, n.Path); n.Kind == engine.Leaf && runs > 1 {
				rt.Fatalf("%s was started %d times", n.Path, runs)
			}
		}
		j.fault = nil
		again, _, err := runner.Replay(t.Context(), j, newRig(t, p, j, w).job.Machine, uid)
		if err != nil {
			rt.Fatal(err)
		}
		if d := cmp.Diff(phases(got), phases(again)); d != "" {
			rt.Fatalf("replay (-run +replay):\n%s", d)
		}
	})
}

func TestABusyJournalIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{fault: func(call int) (error, error) {
			if call == 1 || call == 2 {
				return errBusy, nil
			}
			return nil, nil
		}}
		s, _, err := newRig(t, graph([][]int{nil}), j, dummy.NewWorld(succeed)).run()
		if err != nil || s.Phase != engine.SucceededPhase {
			t.Fatalf("%s, %v", s.Phase, err)
		}
	})
}

func TestAJournalThatRefusesForGoodEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{fault: func(int) (error, error) { return errBusy, nil }}
		_, end, err := newRig(t, graph([][]int{nil}), j, dummy.NewWorld(succeed)).run()
		if !errors.Is(err, errBusy) || end != runner.Interrupted {
			t.Fatalf("end %v, %v; want the journal's error", end, err)
		}
	})
}

// What is stopped by an interrupt runs again after a resume; what had ended does not.
func TestInterruptAndResume(t *testing.T) {
	for name, force := range map[string]bool{"gently": false, "by force": true} {
		t.Run(name, func(t *testing.T) {
			first := true
			script := func(_ engine.Run, cmd engine.StartTask) dummy.Act {
				return dummy.Act{Hang: first && cmd.Path == "run.t1", Deaf: force}
			}
			j, w := &journal{}, dummy.NewWorld(script)
			p := graph([][]int{nil, {0}, {1}})
			r := newRig(t, p, j, w)
			hung := make(chan struct{})
			r.job.Observers = []runner.Observer{observer(func(v runner.View) {
				for n := range v.State.Nodes() {
					if n.Path == "run.t1" && n.Phase == engine.RunningPhase {
						select {
						case <-hung:
						default:
							close(hung)
						}
					}
				}
			})}
			a := r.open()
			go func() {
				<-hung
				a.Interrupt(force)
			}()
			end, err := a.Run(t.Context())
			if err != nil || end != runner.Interrupted {
				t.Fatalf("end %v, %v", end, err)
			}
			r.close()
			if a.State().Phase != engine.RunningPhase {
				t.Fatalf("an interrupted run is %s", a.State().Phase)
			}

			first = false
			s, end, err := newRig(t, p, j, w).run()
			if err != nil || end != runner.Ended || s.Phase != engine.SucceededPhase {
				t.Fatalf("after the resume: %v, %s, %v", end, s.Phase, err)
			}
			for path, want := range map[string]int{"run.t0": 1, "run.t1": 2, "run.t2": 1} {
				if got := w.Runs(uid, path); got != want {
					t.Errorf("%s was started %d times, want %d", path, got, want)
				}
			}
		})
	}
}

// observer makes a function an [runner.Observer].
type observer func(runner.View)

func (o observer) Changed(v runner.View) { o(v) }

func TestRetryRunsOnlyWhatFailed(t *testing.T) {
	good := false
	script := func(_ engine.Run, cmd engine.StartTask) dummy.Act {
		if cmd.Path == "run.t1" && !good {
			return dummy.Act{Result: dummy.Failed(1, "no")}
		}
		return dummy.Act{}
	}
	j, w := &journal{}, dummy.NewWorld(script)
	p := graph([][]int{nil, {0}, {1}})
	s, _, err := newRig(t, p, j, w).run()
	if err != nil || s.Phase != engine.FailedPhase {
		t.Fatalf("%s, %v", s.Phase, err)
	}
	good = true
	r := newRig(t, p, j, w)
	a := r.open()
	if err := a.Retry(t.Context(), func(*engine.State) (engine.RetryRun, error) { return engine.RetryRun{}, nil }); err != nil {
		t.Fatal(err)
	}
	end, err := a.Run(t.Context())
	r.close()
	if err != nil || end != runner.Ended || a.State().Phase != engine.SucceededPhase {
		t.Fatalf("after the retry: %v, %s, %v", end, a.State().Phase, err)
	}
	if n := w.Runs(uid, "run.t0"); n != 1 {
		t.Errorf("t0, which had succeeded, was started %d times", n)
	}
}

func TestRestartRunsWhatDependsOnItAgain(t *testing.T) {
	j, w := &journal{}, dummy.NewWorld(succeed)
	p := graph([][]int{nil, {0}, {1}, nil})
	if _, _, err := newRig(t, p, j, w).run(); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, p, j, w)
	a := r.open()
	err := a.Retry(t.Context(), func(s *engine.State) (engine.RetryRun, error) {
		for n := range s.Nodes() {
			if n.Path == "run.t1" {
				return engine.RetryRun{Restart: []engine.NodeID{n.ID}}, nil
			}
		}
		return engine.RetryRun{}, errors.New("no t1")
	})
	if err != nil {
		t.Fatal(err)
	}
	end, err := a.Run(t.Context())
	r.close()
	if err != nil || end != runner.Ended || a.State().Phase != engine.SucceededPhase {
		t.Fatalf("%v, %s, %v", end, a.State().Phase, err)
	}
	total := map[string]int{}
	for n := range a.State().Nodes() {
		if n.Kind == engine.Leaf && !n.Dropped {
			total[n.Name] = w.Runs(uid, n.Path)
			if n.Identity != "" {
				total[n.Name] += w.Runs(uid, n.Identity)
			}
		}
	}
	if d := cmp.Diff(map[string]int{"t0": 1, "t1": 2, "t2": 2, "t3": 1}, total); d != "" {
		t.Errorf("starts (-want +got):\n%s", d)
	}
}

func suspendProgram(duration string) *program.Program {
	return programOf(map[string]*program.Template{"main": {Suspend: &program.Suspend{Duration: duration}}})
}

func TestTimersFireOnTheRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		j := &journal{events: []engine.Event{{Time: start.UTC(), Seed: 1, Start: &engine.Start{Run: engine.Run{Name: "run", UID: uid}}}}}
		s, end, err := newRig(t, suspendProgram("3600"), j, dummy.NewWorld(succeed)).run()
		if err != nil || end != runner.Ended || s.Phase != engine.SucceededPhase {
			t.Fatalf("%v, %s, %v", end, s.Phase, err)
		}
		if took := time.Since(start); took != time.Hour {
			t.Errorf("took %v, want an hour", took)
		}
	})
}

func TestStopWhenWaiting(t *testing.T) {
	r := newRig(t, suspendProgram(""), &journal{}, dummy.NewWorld(succeed))
	r.job.StopWhenWaiting = true
	a := r.open()
	if !a.Waits() {
		t.Error("an opened run that waits for a person does not say so")
	}
	end, err := a.Run(t.Context())
	r.close()
	if err != nil || end != runner.Waiting || a.State().Phase != engine.RunningPhase {
		t.Fatalf("%v, %s, %v", end, a.State().Phase, err)
	}
}

func TestAsk(t *testing.T) {
	r := newRig(t, suspendProgram(""), &journal{}, dummy.NewWorld(succeed))
	a := r.open()
	var wg sync.WaitGroup
	wg.Go(func() {
		no := errors.New("no")
		if err := a.Ask(t.Context(), func(*engine.State) ([]engine.Event, error) { return nil, no }); !errors.Is(err, no) {
			t.Errorf("Ask gives %v, want the question's own error", err)
		}
		err := a.Ask(t.Context(), func(s *engine.State) ([]engine.Event, error) {
			return []engine.Event{{Resume: &engine.Resume{}}}, nil
		})
		if err != nil {
			t.Errorf("resume: %v", err)
		}
	})
	end, err := a.Run(t.Context())
	wg.Wait()
	r.close()
	if err != nil || end != runner.Ended || a.State().Phase != engine.SucceededPhase {
		t.Fatalf("%v, %s, %v", end, a.State().Phase, err)
	}
	if err := a.Ask(t.Context(), func(*engine.State) ([]engine.Event, error) { return nil, nil }); !errors.Is(err, runner.ErrEnded) {
		t.Errorf("Ask after the end: %v, want ErrEnded", err)
	}
}

func TestOneLoopForARun(t *testing.T) {
	r := newRig(t, suspendProgram(""), &journal{}, dummy.NewWorld(succeed))
	defer r.close()
	a := r.open()
	if _, err := r.runner.Open(t.Context(), r.job); !errors.Is(err, runner.ErrActive) {
		t.Errorf("second Open: %v, want ErrActive", err)
	}
	a.Close()
	r.open().Close()
}

func TestTheEndOfTheContextStopsNothing(t *testing.T) {
	script := func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{} }
	j, w := &journal{}, dummy.NewWorld(script)
	r := newRig(t, suspendProgram(""), j, w)
	a := r.open()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := a.Run(ctx); !errors.Is(err, gone) {
		t.Fatalf("Run: %v, want the context's cause", err)
	}
	r.close()
}

func TestABackendThatRefuses(t *testing.T) {
	w := dummy.NewWorld(func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{Refuse: errors.New("no room")} })
	s, end, err := newRig(t, graph([][]int{nil}), &journal{}, w).run()
	if err != nil || end != runner.Ended || !s.Phase.Bad() {
		t.Fatalf("%v, %s, %v", end, s.Phase, err)
	}
	for n := range s.Nodes() {
		if n.Path == "run.t0" && (n.Phase != engine.ErrorPhase || n.Message != "no room") {
			t.Errorf("t0 is %s: %s", n.Phase, n.Message)
		}
	}
}

// Nothing is started before what made it start is in the journal.
func TestTheJournalIsWrittenFirst(t *testing.T) {
	j := &journal{}
	script := func(_ engine.Run, cmd engine.StartTask) dummy.Act {
		if cmd.Path != "run.t1" {
			return dummy.Act{}
		}
		events, err := j.Events(context.Background(), uid)
		ended := false
		for _, e := range events {
			ended = ended || e.Finished != nil
		}
		if err != nil || !ended {
			return dummy.Act{Result: dummy.Failed(1, "started before the end of what it depends on was written")}
		}
		return dummy.Act{}
	}
	s, _, err := newRig(t, graph([][]int{nil, {0}}), j, dummy.NewWorld(script)).run()
	if err != nil || s.Phase != engine.SucceededPhase {
		t.Fatalf("%s, %v: %s", s.Phase, err, s.Message)
	}
}
