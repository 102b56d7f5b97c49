package spec

import (
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
		lines := []string{StartedLine(at), ExitedLine(name, code), DoneLine(stopped, timedOut)}
		steps := []State{
			{Exited: map[string]int{}},
			{Started: at, Exited: map[string]int{}},
			{Started: at, Exited: map[string]int{name: code}},
			{Started: at, Exited: map[string]int{name: code}, Done: true, Stopped: stopped, TimedOut: timedOut},
		}
		text := lines[0] + lines[1] + lines[2]
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

func TestProcess(t *testing.T) {
	p := Process{PID: 12, Start: 345, Boot: "b-1"}
	got, err := ParseProcess(p.String())
	if err != nil || got != p {
		t.Errorf("%+v %v", got, err)
	}
	for _, text := range []string{"", "12", "12 345", "x 1 b\n"} {
		if _, err := ParseProcess(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
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
