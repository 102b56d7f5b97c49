package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-ml/sluice/internal/engine"
)

// treeLine is a line of a drawn tree; count is set for lines that stand for several nodes.
type treeLine struct {
	indent string
	row    *row
	text   string // in place of a row
	colour colour
}

// detail says how much of a tree is drawn.
type detail int

const (
	everything   detail = iota
	foldDone            // what has succeeded is one line, with nothing below it
	countDone           // children that have succeeded are counted
	countWaiting        // children that have not begun are counted, too
)

// lines draws the tree.
func (m *model) lines(d detail) []treeLine {
	var out []treeLine
	for _, id := range m.roots {
		if r := m.rows[id]; r != nil {
			m.draw(&out, r, "", "", d)
		}
	}
	return out
}

// draw adds a row, with the sign that joins it to its parent, and what is below it.
func (m *model) draw(out *[]treeLine, r *row, join, indent string, d detail) {
	*out = append(*out, treeLine{indent: join, row: r})
	if d >= foldDone && r.phase.Ended() && !r.phase.Bad() && r.parent != 0 {
		return
	}
	var shown []*row
	var done, waiting int
	for _, c := range m.below(r) {
		switch {
		case d >= countDone && c.phase.Ended() && !c.phase.Bad():
			done++
		case d >= countWaiting && c.phase == engine.Pending:
			waiting++
		default:
			shown = append(shown, c)
		}
	}
	var counted []treeLine
	if done > 0 {
		counted = append(counted, treeLine{text: fmt.Sprintf("✔ %d done", done), colour: green})
	}
	if waiting > 0 {
		counted = append(counted, treeLine{text: fmt.Sprintf("◷ %d waiting", waiting), colour: yellow})
	}
	left := len(shown) + len(counted)
	for _, l := range counted {
		left--
		l.indent = indent + corner(left)
		*out = append(*out, l)
	}
	for _, c := range shown {
		left--
		below := "│ "
		if left == 0 {
			below = "  "
		}
		m.draw(out, c, indent+corner(left), indent+below, d)
	}
}

func corner(left int) string {
	if left == 0 {
		return "└─"
	}
	return "├─"
}

// below gives the rows that are drawn below one: rounds give way to their calls, a retry of one attempt to nothing.
func (m *model) below(r *row) []*row {
	var out []*row
	for _, id := range r.children {
		c := m.rows[id]
		switch {
		case c == nil:
		case c.kind == engine.Round:
			out = append(out, m.below(c)...)
		case r.kind == engine.RetryNode && len(r.children) == 1 && c.kind == engine.Leaf:
		case r.kind == engine.RetryNode && len(r.children) == 1:
			out = append(out, m.below(c)...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// shownAs gives what is shown for a row: a retry of one attempt shows the attempt's doings under its own name.
func (m *model) shownAs(r *row) row {
	out := *r
	if r.kind == engine.RetryNode && len(r.children) == 1 {
		if c := m.rows[r.children[0]]; c != nil {
			out.reused, out.suspended = c.reused, c.suspended
			if out.waits == "" {
				out.waits = c.waits
			}
			if out.message == "" {
				out.message = c.message
			}
			if out.template == "" {
				out.template = c.template
			}
		}
	}
	return out
}

// table draws the tree with its columns, header included. width 0 is no limit.
func (m *model) table(lines []treeLine, c colourMode, width int, wide bool, now time.Time) []string {
	type cells struct {
		name, painted, template, took, note string
	}
	head := cells{name: "STEP", painted: "STEP", template: "TEMPLATE", took: "DURATION", note: "MESSAGE"}
	all := []cells{head}
	for _, l := range lines {
		if l.row == nil {
			all = append(all, cells{name: l.indent + l.text, painted: l.indent + c.paint(l.colour, l.text)})
			continue
		}
		r := m.shownAs(l.row)
		sign, col := mark(&r)
		name := r.name
		if wide {
			name = r.path
		}
		x := cells{
			name: l.indent + sign + " " + name, painted: l.indent + c.paint(col, sign) + " " + name,
			template: r.template, note: r.note(),
		}
		if r.phase == engine.OmittedPhase && x.note == "" {
			x.note = "omitted"
		}
		if r.phase == engine.SkippedPhase && x.note == "" {
			x.note = "skipped"
		}
		if d, ok := took(r.started, r.finished, now); ok && r.kind != engine.AbsentNode {
			x.took = short(d)
		}
		all = append(all, x)
	}
	var n, t int
	for _, x := range all {
		n, t = max(n, utf8.RuneCountInString(x.name)), max(t, utf8.RuneCountInString(x.template))
	}
	n, t = min(n, 80), min(t, 30)
	out := make([]string, 0, len(all))
	for _, x := range all {
		note := oneLine(x.note)
		if width > 0 {
			room := width - (n + 2 + t + 2 + 8 + 2) - 1
			note = clip(note, max(room, 0))
		}
		line := pad(x.painted, x.name, n) + "  " + pad(clip(x.template, t), clip(x.template, t), t) + "  " + fmt.Sprintf("%-8s", x.took) + "  " + note
		out = append(out, strings.TrimRight(line, " "))
	}
	return out
}

// pad fills a text up to a width; plain is the text without colours.
func pad(text, plain string, width int) string {
	return text + strings.Repeat(" ", max(width-utf8.RuneCountInString(plain), 0))
}

func clip(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	if width < 2 {
		return ""
	}
	return string([]rune(s)[:width-1]) + "…"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
