package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
)

var noon = time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)

// grow builds a model: each line is "id parent kind phase name".
func grow(t *testing.T, lines ...string) *model {
	t.Helper()
	m := newModel()
	m.name, m.phase, m.started = "run", engine.RunningPhase, noon
	for _, line := range lines {
		r := &row{started: noon, template: "tmpl"}
		var kind, phase string
		if _, err := fmt.Sscan(line, &r.id, &r.parent, &kind, &phase, &r.name); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		r.kind, r.phase, r.path = engine.NodeKind(kind), engine.Phase(phase), r.name
		if r.phase.Ended() {
			r.finished = noon.Add(1500 * time.Millisecond)
		}
		m.rows[r.id] = r
		m.count(r, 1)
		if r.parent == 0 {
			m.roots = append(m.roots, r.id)
		} else {
			m.rows[r.parent].children = append(m.rows[r.parent].children, r.id)
		}
	}
	return m
}

func TestTree(t *testing.T) {
	m := grow(t,
		"1 0 Graph Running run",
		"2 1 Round Succeeded [0]",
		"3 2 Leaf Succeeded a",
		"4 2 Retry Succeeded b",
		"5 4 Leaf Succeeded b(0)",
		"6 1 Round Running [1]",
		"7 6 Retry Running c",
		"8 7 Leaf Failed c(0)",
		"9 7 Leaf Running c(1)",
		"10 6 Absent Skipped d",
	)
	m.rows[9].waits = "waiting for hook h (Pre)"
	m.rows[8].message = "main: Error\n(exit code 1)"
	got := m.table(m.lines(everything), noColour, 0, false, noon.Add(3*time.Second))
	want := []string{
		"STEP        TEMPLATE  DURATION  MESSAGE",
		"● run       tmpl      3.0s",
		"├─✔ a       tmpl      1.5s",
		"├─✔ b       tmpl      1.5s",
		"├─● c       tmpl      3.0s",
		"│ ├─✖ c(0)  tmpl      1.5s      main: Error (exit code 1)",
		"│ └─● c(1)  tmpl      3.0s      waiting for hook h (Pre)",
		"└─○ d       tmpl                skipped",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tree (-want +got):\n%s", d)
	}
}

// However large the run and small the terminal, a frame fits and shows what runs.
func TestFrameFits(t *testing.T) {
	lines := []string{"1 0 Graph Running run", "2 1 Loop Running loop"}
	for i := range 300 {
		phase := "Pending"
		switch {
		case i < 200:
			phase = "Succeeded"
		case i == 200:
			phase = "Failed"
		case i < 204:
			phase = "Running"
		}
		lines = append(lines, fmt.Sprintf("%d 2 Leaf %s item%d", i+3, phase, i))
	}
	m := grow(t, lines...)
	for _, size := range [][2]int{{80, 24}, {200, 400}, {40, 10}, {20, 5}} {
		l := &liveTree{colour: ansiColour, model: m, now: func() time.Time { return noon.Add(time.Second) }}
		frame := l.frame(size[0], size[1])
		if len(frame) > size[1] {
			t.Errorf("%v: %d lines", size, len(frame))
		}
		for _, line := range frame {
			if n := utf8.RuneCountInString(plainText(line)); n > size[0] {
				t.Errorf("%v: a line of %d: %q", size, n, line)
			}
		}
		text := plainText(strings.Join(frame, "\n"))
		if size[1] >= 10 && !strings.Contains(text, "● item201") {
			t.Errorf("%v: what runs is not shown:\n%s", size, text)
		}
		if size[1] == 24 && (!strings.Contains(text, "✔ 200 done") || !strings.Contains(text, "◷ 96 waiting") || !strings.Contains(text, "✖ item200")) {
			t.Errorf("%v: the rest is not counted:\n%s", size, text)
		}
	}
}

// plainText takes colours away.
func plainText(s string) string {
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return s
		}
		s = s[:i] + s[i+strings.IndexByte(s[i:], 'm')+1:]
	}
}

func TestLiveTreeTakesItselfAway(t *testing.T) {
	var screen strings.Builder
	l := newLiveTree(&screen, noColour)
	l.mu.Lock()
	l.model = grow(t, "1 0 Leaf Running run")
	l.mu.Unlock()
	if _, err := l.Write([]byte("a log line")); err != nil {
		t.Fatal(err)
	}
	l.close()
	text := screen.String()
	if !strings.HasPrefix(text, "a log line\n") || !strings.Contains(text, "● run") || !strings.HasSuffix(text, "\x1b[2A\x1b[J") {
		t.Errorf("the screen got %q", text)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 1234 * time.Millisecond: "1.2s", 12 * time.Second: "12s", 83 * time.Second: "1m23s", 2*time.Hour + 5*time.Minute: "2h5m", 72 * time.Hour: "3d",
	} {
		if got := short(d); got != want {
			t.Errorf("short(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestSelectors(t *testing.T) {
	n := &engine.Node{ID: 7, Name: "b(0:x)", Path: "run.b(0:x)", Phase: engine.FailedPhase, Inputs: engine.Inputs{Parameters: map[string]any{"p": int64(3)}}}
	for text, want := range map[string]bool{
		"displayName=b(0:x)": true, "displayName=b": false, "name=run.b(0:x)": true, "phase!=Failed": false, "phase==Failed": true,
		"id=7": true, "inputs.parameters.p.value=3": true, "inputs.parameters.q.value=3": false, "inputs.parameters.q.value!=3": true,
		"templateName=x": false,
	} {
		terms, err := parseNodeSelector(text)
		if err != nil || len(terms) != 1 {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := terms[0].matches(n); got != want {
			t.Errorf("%s matches: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"foo=bar", "displayName", "=x", "phase=a,b"} {
		if _, err := parseNodeSelector(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, text := range []string{"=", "a in (b)", "!"} {
		if _, err := parseLabelSelector(text); err == nil {
			t.Errorf("label selector %q was accepted", text)
		}
	}
}
