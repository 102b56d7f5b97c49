package hook

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// puppet does for each uid what its script says, call by call: "p" pending, "f" a failure, "s" a slow success of nothing
// but time (then a failure), and Run when the script is at its end.
type puppet struct {
	mu     sync.Mutex
	script map[string]string
	calls  map[string]int
}

func (p *puppet) Pre(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	p.mu.Lock()
	n, script := p.calls[r.UID], p.script[r.UID]
	p.calls[r.UID]++
	p.mu.Unlock()
	if n >= len(script) {
		return taskhook.Run(map[string]any{"uid": r.UID}), nil
	}
	switch script[n] {
	case 'p':
		return taskhook.Pending(7*time.Second, ""), nil
	case 's':
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Second):
		}
	}
	return nil, errors.New("as the script says")
}

func (p *puppet) Post(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	return p.Pre(ctx, r)
}

// story is a random course of events.
type story struct {
	limit, concurrency, breaker int
	seed                        uint64
	scripts                     []string
	acts                        []act
}

// act is something that happens from outside after a while: "wake", "ask" again, "cancel".
type act struct {
	after time.Duration
	what  string
	whom  int
}

func drawStory(t *rapid.T) story {
	s := story{
		limit:       rapid.IntRange(0, 3).Draw(t, "limit"),
		concurrency: rapid.IntRange(1, 4).Draw(t, "concurrency"),
		breaker:     rapid.IntRange(1, 10).Draw(t, "breaker"),
		seed:        rapid.Uint64().Draw(t, "seed"),
		scripts:     rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("pffs")), 0, 6, -1), 1, 8).Draw(t, "scripts"),
	}
	for range rapid.IntRange(0, 10).Draw(t, "acts") {
		s.acts = append(s.acts, act{
			after: time.Duration(rapid.IntRange(0, 9000).Draw(t, "after")) * time.Millisecond,
			what:  rapid.SampledFrom([]string{"wake", "ask", "cancel"}).Draw(t, "what"),
			whom:  rapid.IntRange(0, len(s.scripts)-1).Draw(t, "whom"),
		})
	}
	return s
}

// Whatever the plugin does, and whoever asks twice, wakes or cancels: each review ends in exactly one answer, its own, or,
// if it was cancelled, in none; and the number of failures in a row decides which.
func TestEveryReviewEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawStory(rt)
		var fault string
		synctest.Test(t, func(t *testing.T) { fault = tell(t, s) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

// tell plays a story and says what was wrong with its end.
func tell(t *testing.T, s story) string {
	document := builtin(fmt.Sprintf("retry: {limit: %d}", s.limit), fmt.Sprintf("maxConcurrency: %d", s.concurrency), "timeoutSeconds: 5")
	registry, err := NewRegistry(load(t, document))
	if err != nil {
		t.Fatal(err)
	}
	p := &puppet{script: map[string]string{}, calls: map[string]int{}}
	sink := newTold()
	d, err := New(Config{
		Registry: registry, Sink: sink, Builtins: map[string]Builtin{"scripted": Static(p)}, Seed: s.seed,
		Breaker: Breaker{Failures: s.breaker, First: time.Second, Longest: 3 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()

	cmds := make([]engine.AskHook, len(s.scripts))
	runs := make([]engine.Run, len(s.scripts))
	for i, script := range s.scripts {
		cmds[i], runs[i] = ask("u"+strconv.Itoa(i)), testRun
		cmds[i].Node, runs[i].UID = engine.NodeID(i), "run-"+strconv.Itoa(i%3)
		p.script[cmds[i].UID] = script
	}
	for i := range cmds {
		d.Ask(context.Background(), runs[i], testProgram, cmds[i])
	}
	cancelled := map[int]bool{}
	for _, a := range s.acts {
		time.Sleep(a.after)
		synctest.Wait()
		uid := cmds[a.whom].UID
		d.mu.Lock()
		live := d.reviews[uid] != nil
		d.mu.Unlock()
		switch {
		case a.what == "wake":
			d.Wake(uid)
		case a.what == "ask" && live: // one that has ended would be a new review
			d.Ask(context.Background(), runs[a.whom], testProgram, cmds[a.whom])
		case a.what == "cancel" && live:
			d.Cancel(testRun, cancelOf(uid))
			cancelled[a.whom] = true
		}
	}
	time.Sleep(2 * time.Hour)
	synctest.Wait()

	answers := map[int]engine.Answered{}
	for len(sink.answers) > 0 {
		a := <-sink.answers
		if _, twice := answers[int(a.Node)]; twice {
			return fmt.Sprintf("node %d was answered twice", a.Node)
		}
		answers[int(a.Node)] = a
	}
	for i, script := range s.scripts {
		a, answered := answers[i]
		switch bad := fails(script, s.limit); {
		case answered == cancelled[i]:
			return fmt.Sprintf("node %d (%q): answered %v, cancelled %v; told %q", i, script, answered, cancelled[i], sink.messages())
		case answered && bad != (a.Failure != ""):
			return fmt.Sprintf("node %d (%q, limit %d) got %+v", i, script, s.limit, a)
		case answered && !bad && a.Answer.Placeholders["uid"] != cmds[i].UID:
			return fmt.Sprintf("node %d got another's answer: %+v", i, a.Answer)
		}
	}
	return ""
}

// fails says whether a script has more failures in a row than the limit allows.
func fails(script string, limit int) bool {
	for row := range strings.SplitSeq(script, "p") {
		if len(row) > limit {
			return true
		}
	}
	return false
}
