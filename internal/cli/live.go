package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/runner"
)

// liveTree draws a run at the bottom of a terminal and keeps it up to date. What else is written through it (logs, the
// output of tasks) goes above the tree and stays.
type liveTree struct {
	w      io.Writer
	size   func() (width, height int)
	colour colourMode
	now    func() time.Time

	mu    sync.Mutex
	model *model
	dirty bool
	drawn int // lines on the screen
	took  time.Duration
	stop  chan struct{}
	done  chan struct{}
}

// newLiveTree starts drawing. It ends with close, which takes the tree off the screen.
func newLiveTree(w io.Writer, c colourMode) *liveTree {
	l := &liveTree{
		w: w, colour: c, now: time.Now, model: newModel(), stop: make(chan struct{}), done: make(chan struct{}),
		size: func() (int, int) {
			if width, height, ok := terminalSize(w); ok {
				return width, height
			}
			return 100, 40
		},
	}
	go l.loop()
	return l
}

// Changed implements [runner.Observer].
func (l *liveTree) Changed(v runner.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.model.update(v)
	l.dirty = true
}

// Write puts lines above the tree.
func (l *liveTree) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var buf bytes.Buffer
	l.erase(&buf)
	buf.Write(b)
	if len(b) > 0 && b[len(b)-1] != '\n' {
		buf.WriteByte('\n')
	}
	l.dirty = true
	l.draw(&buf)
	_, err := l.w.Write(buf.Bytes())
	return len(b), err
}

func (l *liveTree) loop() {
	defer close(l.done)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := time.Time{}
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		l.mu.Lock()
		// A second without news still moves the clocks; a tree that takes long to draw is drawn less often.
		if since := l.now().Sub(last); (l.dirty || since >= time.Second) && since > 10*l.took {
			last = l.now()
			var buf bytes.Buffer
			l.erase(&buf)
			l.draw(&buf)
			_, _ = l.w.Write(buf.Bytes())
			l.took = l.now().Sub(last)
		}
		l.mu.Unlock()
	}
}

func (l *liveTree) erase(buf *bytes.Buffer) {
	if l.drawn > 0 {
		fmt.Fprintf(buf, "\x1b[%dA\x1b[J", l.drawn)
	}
	l.drawn = 0
}

func (l *liveTree) draw(buf *bytes.Buffer) {
	l.dirty = false
	if l.model.name == "" {
		return
	}
	width, height := l.size()
	for _, line := range l.frame(width, height-1) {
		buf.WriteString(line + "\n")
		l.drawn++
	}
}

// frame draws as much as there is room for: everything, else what matters more.
func (l *liveTree) frame(width, height int) []string {
	m := l.model
	head := m.headline(l.colour, l.now())
	room := max(height-2, 3)
	var lines []treeLine
	for d := everything; d <= countWaiting; d++ {
		if lines = m.lines(d); len(lines) <= room {
			break
		}
	}
	more := len(lines) - room
	if more > 0 {
		lines = lines[:room-1]
	}
	table := m.table(lines, l.colour, width, false, l.now())
	out := append([]string{head}, table[1:]...)
	if more > 0 {
		out = append(out, l.colour.paint(grey, fmt.Sprintf("  … %d more", more+1)))
	}
	for i, line := range out {
		out[i] = clipPainted(line, width-1)
	}
	return out
}

// headline is the run in one line.
func (m *model) headline(c colourMode, now time.Time) string {
	state := string(m.phase)
	switch {
	case m.stopping:
		state = "stopping the tasks; Ctrl-C again kills them"
	case m.held && !m.phase.Ended():
		state = "Suspended: sluice resume " + m.name
	case m.waiting:
		state = "waiting for a person: sluice resume " + m.name
	case m.message != "" && !m.phase.Ended():
		state += ": " + oneLine(m.message)
	}
	d, _ := took(m.started, m.finished, now)
	return fmt.Sprintf("%s  %s  %d/%d  %s", c.paint(bold, m.name), c.paint(phaseColour(m.phase), state), m.counts.Done, m.counts.Tasks, short(d))
}

// clipPainted cuts a line with colours in it to a width.
func clipPainted(s string, width int) string {
	var b strings.Builder
	n, escape := 0, false
	for _, r := range s {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			if n++; n > width {
				b.WriteString("\x1b[0m")
				return b.String()
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}

// close takes the tree off the screen.
func (l *liveTree) close() {
	close(l.stop)
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	var buf bytes.Buffer
	l.erase(&buf)
	_, _ = l.w.Write(buf.Bytes())
}
