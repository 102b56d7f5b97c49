package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

// progressLines shows a run as one line for each change of a task.
type progressLines struct {
	w     io.Writer
	paint func(colour, string) string
	now   func() time.Time
	model *model
	said  map[engine.NodeID]string
	whole string
}

func (a *app) newProgressLines(w io.Writer) *progressLines {
	return &progressLines{w: w, paint: a.paint, now: time.Now, model: newModel(), said: map[engine.NodeID]string{}}
}

// Changed implements [runner.Observer].
func (p *progressLines) Changed(v runner.View) {
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
