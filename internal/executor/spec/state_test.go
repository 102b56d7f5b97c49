package spec

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever was written before a crash, what is read is a prefix of it.
func TestStateIsReadUpToWhereItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "at"), 5).UTC()
		name := rapid.StringMatching(`[a-z][a-z0-9-]{0,10}`).Draw(t, "name")
		code := rapid.IntRange(0, 255).Draw(t, "code")
		stopped, timedOut := rapid.Bool().Draw(t, "stopped"), rapid.Bool().Draw(t, "timedOut")
		p := Process{PID: rapid.IntRange(1, 1<<30).Draw(t, "pid"), Start: rapid.Uint64().Draw(t, "start"), Boot: "b-1"}
		out := rapid.String().Draw(t, "stdout")
		lines := []string{ExecutorLine(p), StartedLine(at), ExitedLine(name, code), StdoutLine(out), DoneLine(stopped, timedOut)}
		codes := map[string]int{name: code}
		steps := []State{
			{Exited: map[string]int{}},
			{Executor: p, Exited: map[string]int{}},
			{Executor: p, Started: at, Exited: map[string]int{}},
			{Executor: p, Started: at, Exited: codes},
			{Executor: p, Started: at, Exited: codes, Stdout: &out},
			{Executor: p, Started: at, Exited: codes, Stdout: &out, Done: true, Stopped: stopped, TimedOut: timedOut},
		}
		text := strings.Join(lines, "")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		whole := 0
		for end := 0; whole < len(lines); whole++ {
			if end += len(lines[whole]); end > cut {
				break
			}
		}
		if diff := cmp.Diff(steps[whole], ParseState(text[:cut])); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestStartTime(t *testing.T) {
	self, err := StartTime("self")
	if err != nil || self.PID == 0 || self.Start == 0 {
		t.Errorf("%+v %v", self, err)
	}
}

func TestWhole(t *testing.T) {
	got := Whole(map[string]any{"a": 1.0, "b": []any{1.5, 1e300}, "c": "1"})
	if diff := cmp.Diff(map[string]any{"a": int64(1), "b": []any{1.5, 1e300}, "c": "1"}, got); diff != "" {
		t.Error(diff)
	}
}
