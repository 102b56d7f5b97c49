package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func phaseColour(p engine.Phase) colour {
	switch p {
	case engine.SucceededPhase:
		return green
	case engine.FailedPhase, engine.ErrorPhase:
		return red
	case engine.RunningPhase:
		return blue
	}
	return yellow
}

// writeRun shows a run for people: its header, tree and outputs.
func writeRun(w io.Writer, s *engine.State, note string, c colourMode, width int, wide bool, now time.Time) error {
	m := modelOf(s)
	m.waiting = strings.HasPrefix(note, "waiting")
	var b strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", value)
		}
	}
	status := c.paint(phaseColour(s.Phase), string(s.Phase))
	if note != "" {
		status += " (" + note + ")"
	}
	field("Name", s.Run.Name)
	if wide {
		field("UID", s.Run.UID)
	}
	if s.Run.Namespace != "default" {
		field("Namespace", s.Run.Namespace)
	}
	field("Status", status)
	field("Message", oneLine(s.Message))
	if wide {
		field("Created", stamp(s.Run.Created))
	}
	field("Started", stamp(s.Started))
	field("Finished", stamp(s.Finished))
	if d, ok := took(s.Started, s.Finished, now); ok {
		field("Duration", short(d))
	}
	progress := fmt.Sprintf("%d/%d", m.counts.Done, m.counts.Tasks)
	if m.counts.Failed > 0 {
		progress += fmt.Sprintf(", %d failed", m.counts.Failed)
	}
	if m.counts.Reused > 0 {
		progress += fmt.Sprintf(", %d reused", m.counts.Reused)
	}
	field("Tasks", progress)
	section(&b, "Parameters", s.Parameters, nil)
	if len(m.roots) > 0 {
		b.WriteByte('\n')
		table := m.table(m.lines(everything), c, width, wide, now)
		table[0] = c.paint(bold, table[0])
		for _, line := range table {
			b.WriteString(line + "\n")
		}
	}
	out := s.Outputs
	if root := s.Node(s.Root); root != nil {
		out = merged(root.Outputs, s.Outputs)
	}
	if out.Result != nil {
		out.Parameters["result"] = *out.Result
	}
	section(&b, "Outputs", out.Parameters, out.Artifacts)
	_, err := io.WriteString(w, b.String())
	return err
}

// merged puts the run's global outputs over those of its root.
func merged(a, b engine.Outputs) engine.Outputs {
	out := engine.Outputs{Parameters: map[string]any{}, Artifacts: map[string][]program.Artifact{}, Result: a.Result}
	maps.Copy(out.Parameters, a.Parameters)
	maps.Copy(out.Parameters, b.Parameters)
	maps.Copy(out.Artifacts, a.Artifacts)
	maps.Copy(out.Artifacts, b.Artifacts)
	return out
}

func section(b *strings.Builder, title string, values map[string]any, artifacts map[string][]program.Artifact) {
	if len(values)+len(artifacts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", title)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(b, "  %s: %s\n", name, clip(oneLine(valueText(values[name])), 200))
	}
	for _, name := range slices.Sorted(maps.Keys(artifacts)) {
		for _, art := range artifacts[name] {
			fmt.Fprintf(b, "  %s: %s\n", name, artifactText(art))
		}
	}
}

func valueText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func artifactText(art program.Artifact) string {
	text := art.URI
	if text == "" {
		text = string(art.Store)
	}
	if art.Type != "" {
		text += " (" + art.Type + ")"
	}
	return text
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 -0700")
}
