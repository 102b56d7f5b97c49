package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
)

// row is what the views show of a node.
type row struct {
	id, parent        engine.NodeID
	kind              engine.NodeKind
	path, name        string
	template          string
	phase             engine.Phase
	stage             engine.Stage
	message           string
	progress          string
	started, finished time.Time
	reused, daemoned  bool
	suspended         bool // waits for a person
	waits             string
	children          []engine.NodeID
}

// model is a copy of what the views show, kept up to date change by change, so that drawing needs no look at the state.
type model struct {
	name, uid, namespace       string
	phase                      engine.Phase
	message                    string
	created, started, finished time.Time
	held                       bool // the run is suspended as a whole
	waiting, stopping          bool
	rows                       map[engine.NodeID]*row
	roots                      []engine.NodeID
	counts                     store.Summary
}

func newModel() *model { return &model{rows: map[engine.NodeID]*row{}} }

// modelOf shows a state as it is.
func modelOf(s *engine.State) *model {
	m := newModel()
	ids := []engine.NodeID{0}
	for n := range s.Nodes() {
		ids = append(ids, n.ID)
	}
	m.update(runner.View{State: s, Changed: ids})
	return m
}

// update takes over what changed and gives the rows of it.
func (m *model) update(v runner.View) []*row {
	s := v.State
	if m.held != s.Suspended {
		m.held = s.Suspended
		for _, r := range m.rows { // what waits for a slot waits for a person now, or no longer does
			if r.stage == engine.StageSlot && !r.phase.Ended() {
				r.waits = m.slotWait()
			}
		}
	}
	m.name, m.uid, m.namespace, m.created = s.Run.Name, s.Run.UID, s.Run.Namespace, s.Run.Created
	m.phase, m.message, m.started, m.finished = s.Phase, s.Message, s.Started, s.Finished
	m.waiting, m.stopping = v.Waiting, v.Stopping
	var changed []*row
	for _, id := range v.Changed {
		if id == 0 {
			continue
		}
		old := m.rows[id]
		m.count(old, -1)
		n := s.Node(id)
		if n == nil || n.Dropped {
			delete(m.rows, id)
			continue
		}
		r := m.row(n)
		m.rows[id] = r
		m.count(r, 1)
		if old == nil && r.parent == 0 {
			m.roots = append(m.roots, id)
		}
		changed = append(changed, r)
	}
	m.counts.Suspended = v.Waiting
	return changed
}

func (m *model) row(n *engine.Node) *row {
	r := &row{
		id: n.ID, parent: n.Parent, kind: n.Kind, path: n.Path, name: n.Name, phase: n.Phase, stage: n.Stage, message: n.Message,
		progress: n.Progress, started: n.Started, finished: n.Finished, reused: n.Reused, daemoned: n.Daemoned,
		children: n.Children[:len(n.Children):len(n.Children)],
	}
	t := n.Template()
	if t != nil {
		r.template = t.Name
	}
	if n.Phase.Ended() {
		return r
	}
	switch n.Stage {
	case engine.StageLocks:
		if r.waits = n.Message; r.waits == "" {
			r.waits = "waiting for locks"
		}
	case engine.StageSlot:
		r.waits = m.slotWait()
	case engine.StagePre, engine.StagePost:
		if len(n.Hooks) > 0 {
			if h := n.Hooks[len(n.Hooks)-1]; h.Answered.IsZero() {
				r.waits = fmt.Sprintf("waiting for hook %s (%s)", h.Hook, h.Point)
			}
		}
	case engine.StageBackoff:
		r.waits = "waiting before the next attempt"
	case engine.StageRun:
		if t != nil && t.Suspend != nil && t.Suspend.Duration == "" {
			r.suspended = true
			r.waits = "waiting for a person: sluice resume " + m.name
		}
	}
	return r
}

// slotWait says what a task that could start waits for.
func (m *model) slotWait() string {
	if m.held {
		return "the run is suspended: sluice resume " + m.name
	}
	return "waiting for a free slot"
}

func (m *model) count(r *row, by int) {
	if r == nil || r.kind != engine.Leaf {
		return
	}
	m.counts.Tasks += by
	if r.phase.Ended() {
		m.counts.Done += by
	}
	if r.phase.Bad() {
		m.counts.Failed += by
	}
	if r.reused {
		m.counts.Reused += by
	}
}

// label is a row's path without the run's name, for lines that stand alone.
func (m *model) label(r *row) string {
	text := strings.TrimPrefix(strings.TrimPrefix(r.path, m.name), ".")
	if text == "" {
		return m.name
	}
	return text
}

// note is what is to be said of a row besides its phase.
func (r *row) note() string {
	var parts []string
	if r.reused && !strings.HasPrefix(r.message, "reused") {
		parts = append(parts, "reused")
	}
	if r.daemoned {
		parts = append(parts, "daemon")
	}
	if r.progress != "" && !r.phase.Ended() {
		parts = append(parts, r.progress)
	}
	switch {
	case r.message != "" && (r.waits == "" || strings.HasPrefix(r.message, "waiting for")):
		parts = append(parts, r.message)
	case r.waits != "":
		parts = append(parts, r.waits)
		if r.message != "" {
			parts = append(parts, r.message)
		}
	}
	return strings.Join(parts, ", ")
}

// took is how long a row has taken so far; ok is false where it has not begun.
func took(started, finished, now time.Time) (time.Duration, bool) {
	switch {
	case started.IsZero():
		return 0, false
	case finished.IsZero():
		return max(now.Sub(started), 0), true
	}
	return max(finished.Sub(started), 0), true
}

// short writes a duration for people.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// mark is the sign and colour of a phase.
func mark(r *row) (string, colour) {
	switch r.phase {
	case engine.SucceededPhase:
		if r.reused {
			return "⟲", cyan
		}
		return "✔", green
	case engine.FailedPhase:
		return "✖", red
	case engine.ErrorPhase:
		return "⚠", red
	case engine.SkippedPhase, engine.OmittedPhase:
		return "○", grey
	case engine.RunningPhase:
		if r.suspended {
			return "ǁ", yellow
		}
		return "●", blue
	}
	return "◷", yellow
}
