package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

// patience is how long a task waits for something before that is worth a line.
const patience = 2 * time.Second

// progressLines shows a run as one line for each change of a task.
type progressLines struct {
	mu    sync.Mutex
	late  map[engine.NodeID]*time.Timer // waits that are not worth a line yet
	w     io.Writer
	paint func(colour, string) string
	now   func() time.Time
	model *model
	said  map[engine.NodeID]string
	whole string
}

func (a *app) newProgressLines(w io.Writer) *progressLines {
	return &progressLines{w: w, paint: a.paint, now: time.Now, model: newModel(), said: map[engine.NodeID]string{}, late: map[engine.NodeID]*time.Timer{}}
}

// Changed implements [runner.Observer].
func (p *progressLines) Changed(v runner.View) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.model.update(v) {
		if r.kind != engine.Leaf && r.kind != engine.AbsentNode {
			continue
		}
		p.line(r)
	}
	whole := ""
	switch {
	case v.Stopping:
		whole = "stopping the tasks; Ctrl-C again kills them"
	case v.Waiting && p.model.held:
		whole = "the run is suspended: sluice resume " + p.model.name
	case v.State.Run.Name != "" && v.State.Message != "" && !v.State.Phase.Ended():
		whole = v.State.Message
	}
	if whole != p.whole && whole != "" {
		p.print(p.paint(yellow, "ǁ"), whole, "")
	}
	p.whole = whole
}

func (p *progressLines) line(r *row) {
	if t := p.late[r.id]; t != nil {
		t.Stop()
		delete(p.late, r.id)
	}
	if r.waits == "" || r.suspended {
		p.say(r)
		return
	}
	if r.phase == engine.RunningPhase && p.said[r.id] == "" {
		quiet := *r
		quiet.waits, quiet.message = "", ""
		p.say(&quiet)
	}
	p.late[r.id] = time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.model.rows[r.id] == r {
			p.say(r)
		}
	})
}

// close forgets what was not worth a line.
func (p *progressLines) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.late {
		t.Stop()
	}
	clear(p.late)
}

func (p *progressLines) say(r *row) {
	note := r.note()
	what := string(r.phase) + note
	if r.phase == engine.Pending && note == "" || p.said[r.id] == what {
		return
	}
	p.said[r.id] = what
	if r.phase.Ended() {
		delete(p.said, r.id) // nothing more comes
		if d, ok := took(r.started, r.finished, r.finished); ok && r.kind == engine.Leaf && !r.reused {
			note = short(d) + sep(note) + note
		}
	}
	sign, c := mark(r)
	p.print(p.paint(c, sign), p.model.label(r), note)
}

func (p *progressLines) print(sign, what, note string) {
	if note != "" {
		note = "  " + p.paint(grey, oneLine(note))
	}
	fmt.Fprintf(p.w, "%s %s %s%s\n", p.paint(grey, p.now().Format(time.TimeOnly)), sign, what, note)
}

func sep(note string) string {
	if note == "" {
		return ""
	}
	return ", "
}
