package hook

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// scripted answers by a function, and notes when it was called. With a built-in plugin nothing waits for the network, so
// that testing/synctest's clock can be used.
type scripted struct {
	mu     sync.Mutex
	calls  []time.Time
	answer func(n int, r *taskhook.Request) (*taskhook.Response, error)
}

func (s *scripted) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	s.mu.Lock()
	s.calls = append(s.calls, time.Now())
	n := len(s.calls)
	s.mu.Unlock()
	return s.answer(n, r)
}

func (s *scripted) Post(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	return s.Pre(ctx, r)
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// builtin is a document for a built-in plugin.
func builtin(lines ...string) string {
	doc := "apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: lineage}\nspec:\n  builtin: {name: scripted}\n"
	for _, line := range lines {
		doc += "  " + line + "\n"
	}
	return doc
}

// bubble runs a test with a scripted plugin under synctest's clock.
func bubble(t *testing.T, s *scripted, cfg Config, document string, test func(t *testing.T, d *Dispatcher, sink *told)) {
	synctest.Test(t, func(t *testing.T) {
		hooks := load(t, document)
		registry, err := NewRegistry(hooks)
		if err != nil {
			t.Fatal(err)
		}
		sink := newTold()
		cfg.Registry, cfg.Sink, cfg.Builtins = registry, sink, map[string]Builtin{"scripted": Static(s)}
		d, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		test(t, d, sink)
	})
}

func TestPendingIsPolled(t *testing.T) {
	s := &scripted{answer: func(n int, _ *taskhook.Request) (*taskhook.Response, error) {
		if n < 4 {
			return taskhook.Pending(time.Hour, "a person looks at it"), nil
		}
		return taskhook.Run(nil), nil
	}}
	bubble(t, s, Config{}, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		began := time.Now()
		d.Ask(context.Background(), testRun, testProgram, ask("u1"))
		a := <-sink.answers
		if took := time.Since(began); a.Failure != "" || took != 3*time.Hour {
			t.Errorf("answer %+v after %s, want Run after 3h", a, took)
		}
		if diff := cmp.Diff([]string{"waiting for hook lineage: a person looks at it"}, sink.messages()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDeadlineCountsFromTheFirstQuestion(t *testing.T) {
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) {
		return taskhook.Pending(time.Minute, ""), nil
	}}
	bubble(t, s, Config{}, builtin("deadlineSeconds: 600"), func(t *testing.T, d *Dispatcher, sink *told) {
		cmd := ask("u1")
		cmd.Asked = time.Now().Add(-9 * time.Minute) // before a restart
		began := time.Now()
		d.Ask(context.Background(), testRun, testProgram, cmd)
		a := <-sink.answers
		if took := time.Since(began); took != time.Minute {
			t.Errorf("ended after %s, want 1m", took)
		}
		wantText(t, "the failure", a.Failure, "deadline of 10m0s", "still pending")

		// Where the deadline passed while we were away, one call is made all the same.
		before := s.count()
		cmd = ask("u2")
		cmd.Asked = time.Now().Add(-time.Hour)
		d.Ask(context.Background(), testRun, testProgram, cmd)
		if a := <-sink.answers; a.Failure == "" || s.count() != before+1 {
			t.Errorf("answer %+v after %d calls, want a failure after one", a, s.count()-before)
		}
	})
}

func TestRetriesBackOff(t *testing.T) {
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) { return nil, errors.New("out of order") }}
	document := builtin("retry: {limit: 4, backoff: {duration: 1s, factor: 3, cap: 10s}}")
	bubble(t, s, Config{Breaker: Breaker{Failures: 1000}}, document, func(t *testing.T, d *Dispatcher, sink *told) {
		d.Ask(context.Background(), testRun, testProgram, ask("u1"))
		a := <-sink.answers
		if want := "out of order, attempt 5 of 5"; a.Failure != want {
			t.Errorf("failure is %q, want %q", a.Failure, want)
		}
		for i, want := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second, 10 * time.Second} {
			if got := s.calls[i+1].Sub(s.calls[i]); got < want*8/10 || got > want*12/10 {
				t.Errorf("wait %d was %s, want %s within a fifth", i+1, got, want)
			}
		}
	})
}

func TestFailuresInARowCount(t *testing.T) {
	// Three good polls with two bad calls between each: the limit of 2 is for failures in a row.
	s := &scripted{answer: func(n int, _ *taskhook.Request) (*taskhook.Response, error) {
		switch {
		case n == 9:
			return taskhook.Run(nil), nil
		case n%3 == 0:
			return taskhook.Pending(time.Minute, ""), nil
		}
		return nil, errors.New("flaky")
	}}
	bubble(t, s, Config{}, builtin("retry: {limit: 2}"), func(t *testing.T, d *Dispatcher, sink *told) {
		d.Ask(context.Background(), testRun, testProgram, ask("u1"))
		if a := <-sink.answers; a.Failure != "" {
			t.Errorf("failed: %s", a.Failure)
		}
		// Whoever looks at the task while it is pending does not see an old failure.
		if last := sink.messages()[len(sink.messages())-1]; last != "waiting for hook lineage: flaky, attempt 2" {
			t.Errorf("last note is %q", last)
		}
		if !slices.Contains(sink.messages(), "waiting for hook lineage") {
			t.Errorf("no note takes the failure back: %q", sink.messages())
		}
	})
}

func TestCancelledReviewsTellNothing(t *testing.T) {
	s := &scripted{answer: func(_ int, r *taskhook.Request) (*taskhook.Response, error) {
		if r.UID == "pending" {
			return taskhook.Pending(time.Minute, ""), nil
		}
		time.Sleep(time.Second)
		return taskhook.Run(nil), nil
	}}
	bubble(t, s, Config{}, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		for _, uid := range []string{"pending", "calling"} {
			d.Ask(context.Background(), testRun, testProgram, ask(uid))
		}
		synctest.Wait()
		for _, uid := range []string{"pending", "calling", "unknown"} {
			d.Cancel(testRun, engine.CancelHook{UID: uid})
		}
		d.Ask(context.Background(), testRun, testProgram, ask("calling")) // and asked anew
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(sink.answers) != 1 || s.count() != 3 {
			t.Errorf("%d answers after %d calls, want 1 after 3", len(sink.answers), s.count())
		}
	})
}

func TestAskingTwiceIsOneReview(t *testing.T) {
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) {
		time.Sleep(time.Second)
		return taskhook.Run(nil), nil
	}}
	bubble(t, s, Config{}, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		cmd := ask("u1")
		for range 3 {
			d.Ask(context.Background(), testRun, testProgram, cmd)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(sink.answers) != 1 || s.count() != 1 {
			t.Errorf("%d answers after %d calls, want one of each", len(sink.answers), s.count())
		}
	})
}

func TestWakeEndsAPoll(t *testing.T) {
	s := &scripted{answer: func(n int, _ *taskhook.Request) (*taskhook.Response, error) {
		if n == 1 {
			return taskhook.Pending(time.Hour, ""), nil
		}
		return taskhook.Run(nil), nil
	}}
	bubble(t, s, Config{}, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		began := time.Now()
		d.Ask(context.Background(), testRun, testProgram, ask("u1"))
		synctest.Wait()
		d.Wake("u1")
		d.Wake("unknown")
		<-sink.answers
		if took := time.Since(began); took != 0 {
			t.Errorf("answered after %s", took)
		}
	})
}

// A notice is sent once, its failure is nobody's business, and Close waits for it.
func TestNoticesAreSentOnce(t *testing.T) {
	s := &scripted{answer: func(_ int, r *taskhook.Request) (*taskhook.Response, error) {
		time.Sleep(time.Second)
		if r.UID == "bad" {
			return nil, errors.New("down")
		}
		return taskhook.Done(), nil
	}}
	bubble(t, s, Config{}, builtin(), func(t *testing.T, d *Dispatcher, sink *told) {
		for _, uid := range []string{"good", "bad"} {
			cmd := askPost(uid)
			cmd.Notify = true
			d.Ask(context.Background(), testRun, testProgram, cmd)
		}
		d.Ask(context.Background(), testRun, testProgram, askPost("dropped"))
		began := time.Now()
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second || s.count() != 3 {
			t.Errorf("closed after %s and %d calls, want 1s and 3", took, s.count())
		}
		if len(sink.messages()) != 0 {
			t.Errorf("told %q", sink.messages())
		}
		for len(sink.answers) > 0 {
			if a := <-sink.answers; a.Failure != "" {
				t.Errorf("told %+v", a)
			}
		}
	})
}

// Settings are those of when the run began, whatever was registered later.
func TestSettingsAreTheRunsOwn(t *testing.T) {
	s := &scripted{answer: func(int, *taskhook.Request) (*taskhook.Response, error) { return nil, errors.New("down") }}
	bubble(t, s, Config{}, builtin("retry: {limit: 1}"), func(t *testing.T, d *Dispatcher, sink *told) {
		run := testRun
		var err error
		if run.Hooks, err = d.Select(nil); err != nil {
			t.Fatal(err)
		}
		if err := d.cfg.Registry.Replace(load(t, builtin("retry: {limit: 9}"))); err != nil {
			t.Fatal(err)
		}
		d.Ask(context.Background(), run, testProgram, ask("u1"))
		if a := <-sink.answers; a.Failure != "down, attempt 2 of 2" {
			t.Errorf("failure is %q", a.Failure)
		}
	})
}

// A built-in plugin's nonsense, error or panic is a failed call like any other.
func TestBuiltinsAreNotTrusted(t *testing.T) {
	answers := map[string]func() (*taskhook.Response, error){
		"panic":    func() (*taskhook.Response, error) { panic("oh no") },
		"nonsense": func() (*taskhook.Response, error) { return taskhook.Done(), nil },
		"nil":      func() (*taskhook.Response, error) { return nil, nil }, //nolint:nilnil // allowed: Run
	}
	s := &scripted{answer: func(_ int, r *taskhook.Request) (*taskhook.Response, error) { return answers[r.UID]() }}
	bubble(t, s, Config{}, builtin("retry: {limit: 0}"), func(t *testing.T, d *Dispatcher, sink *told) {
		for uid, want := range map[string]string{
			"panic": "the plugin panicked: oh no", "nonsense": "bad answer: response.decision", "nil": "",
		} {
			d.Ask(context.Background(), testRun, testProgram, ask(uid))
			a := <-sink.answers
			wantText(t, uid, a.Failure, want)
			if want == "" && a.Answer.Decision != engine.Decision(v1alpha1.Run) {
				t.Errorf("%s: %+v", uid, a)
			}
		}
	})
}
