package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// While a hook is down, its circuit opens: reviews wait without spending their retries, and one call in a while looks
// whether it is back.
func TestCircuitSpendsTimeNotRetries(t *testing.T) {
	var back atomic.Bool
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) {
		if !back.Load() {
			return nil, errors.New("connection refused")
		}
		return taskhook.Run(nil), nil
	}}
	document := builtin("retry: {limit: 3}", "maxConcurrency: 4")
	cfg := Config{Breaker: Breaker{Failures: 4, First: 10 * time.Second, Longest: 10 * time.Second}}
	bubble(t, s, cfg, document, func(t *testing.T, d *Dispatcher, sink *told) {
		const n = 100
		for i := range n {
			cmd := ask(fmt.Sprintf("u%d", i))
			cmd.Node = engine.NodeID(i + 1)
			d.Ask(context.Background(), testRun, testProgram, cmd)
		}
		synctest.Wait()
		opened := s.count() // four failures open it, and three more calls may have been under way
		if opened < 4 || opened > 7 {
			t.Fatalf("%d calls before the circuit opened, want 4 to 7", opened)
		}
		if !slices.Contains(sink.messages(), "waiting for hook lineage: connection refused; it is not called until it recovers") {
			t.Errorf("those behind the circuit are not told: %q", sink.messages()[:5])
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.count() - opened; got < 4 || got > 8 {
			t.Errorf("%d calls in a minute, want one in about 10s", got)
		}
		back.Store(true)
		time.Sleep(13 * time.Second)
		synctest.Wait()
		if len(sink.answers) != n {
			t.Fatalf("%d answers after it came back, want %d", len(sink.answers), n)
		}
		for range n {
			if a := <-sink.answers; a.Failure != "" {
				t.Errorf("node %d failed: %s", a.Node, a.Failure)
			}
		}
	})
}

// A cancelled probe says nothing about the hook: the next one is sent.
func TestCancelledProbe(t *testing.T) {
	s := &scripted{answer: func(n int, _ *taskhook.Request) (*taskhook.Response, error) {
		switch n {
		case 1:
			return nil, errors.New("down")
		case 2:
			time.Sleep(time.Second)
		}
		return taskhook.Run(nil), nil
	}}
	cfg := Config{Breaker: Breaker{Failures: 1, First: 10 * time.Second}}
	bubble(t, s, cfg, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		d.Ask(context.Background(), testRun, testProgram, ask("u1"))
		for s.count() < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		d.Ask(context.Background(), testRun, testProgram, ask("u2"))
		d.Cancel(testRun, cancelOf("u1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(sink.answers) != 1 {
			t.Errorf("%d answers, want that of u2", len(sink.answers))
		}
	})
}

// A hook that is down does not hold up another.
func TestHooksDoNotHoldUpEachOther(t *testing.T) {
	s := &scripted{answer: func(_ int, r *taskhook.Request) (*taskhook.Response, error) {
		if r.Hook == "lineage" {
			return nil, errors.New("down")
		}
		return taskhook.Run(nil), nil
	}}
	other := "---\napiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: other}\nspec: {builtin: {name: scripted}}\n"
	bubble(t, s, Config{}, builtin()+other, func(t *testing.T, d *Dispatcher, sink *told) {
		began := time.Now()
		for i := range 50 {
			cmd := ask(fmt.Sprintf("l%d", i))
			d.Ask(context.Background(), testRun, testProgram, cmd)
			cmd = ask(fmt.Sprintf("o%d", i))
			cmd.Hook = "other"
			d.Ask(context.Background(), testRun, testProgram, cmd)
		}
		for range 50 {
			if a := <-sink.answers; a.Hook != "other" || a.Failure != "" {
				t.Errorf("got %+v", a)
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the other hook's answers took %s", took)
		}
	})
}

// A fan-out of one workflow leaves room for another's single task.
func TestWorkflowsAreServedInTurn(t *testing.T) {
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) {
		time.Sleep(time.Second)
		return taskhook.Run(nil), nil
	}}
	bubble(t, s, Config{}, builtin("maxConcurrency: 1"), func(t *testing.T, d *Dispatcher, sink *told) {
		for i := range 100 {
			d.Ask(context.Background(), testRun, testProgram, ask(fmt.Sprintf("big-%d", i)))
		}
		small := testRun
		small.UID = "run-2"
		cmd := ask("small")
		cmd.Node = 99
		began := time.Now()
		d.Ask(context.Background(), small, testProgram, cmd)
		for a := range sink.answers {
			if a.Node == 99 {
				break
			}
		}
		if waited := time.Since(began); waited > 3*time.Second {
			t.Errorf("the other workflow's task waited %s", waited)
		}
	})
}
