package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/metadata"
)

func (a *app) lineageCommand() *cobra.Command {
	var out string
	var up, down bool
	var depth int
	c := &cobra.Command{
		Use:   "lineage ARTIFACT",
		Short: "Show what an artifact was made from, and what was made from it",
		Long: `Show what an artifact was made from, and what was made from it. ARTIFACT is its URI or the end of one, its digest or the
beginning of one, its name, or its number; of several the newest is shown.`,
		Example: `  sluice lineage model.tgz
  sluice lineage sha256:9f86d081884c --up -o json`,
		Args: exactly(1, "one artifact"),
		RunE: func(c *cobra.Command, args []string) error {
			records, err := a.metadataStore(c.Context())
			if err != nil {
				return err
			}
			found, err := records.FindArtifacts(c.Context(), args[0], 10)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return usage("no artifact is known as %q; sluice artifacts list RUN shows those of a run", args[0])
			}
			o := metadata.LineageOptions{Depth: depth, Direction: metadata.Both}
			switch {
			case up && !down:
				o.Direction = metadata.Up
			case down && !up:
				o.Direction = metadata.Down
			}
			l, err := records.Lineage(c.Context(), found[0].ID, o)
			if errors.Is(err, metadata.ErrNotFound) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			if out != "" {
				return a.printObject(out, l)
			}
			if len(found) > 1 {
				fmt.Fprintf(a.Stderr, "%d artifacts match; this is the newest, %d\n", len(found), found[0].ID)
			}
			p := newLineagePrinter(a.Stdout, a.stdoutColour(), l)
			p.print(found[0].ID, o.Direction)
			if l.Truncated {
				fmt.Fprintln(a.Stderr, "there is more: give a larger --depth")
			}
			return nil
		},
	}
	outputFlag(c, &out, "json", "yaml")
	c.Flags().BoolVar(&up, "up", false, "only what it was made from")
	c.Flags().BoolVar(&down, "down", false, "only what was made from it")
	c.Flags().IntVar(&depth, "depth", 0, "at most `n` tasks on the way (0: 20)")
	return c
}

// lineagePrinter draws a lineage as two trees, with the artifact at the root of both.
type lineagePrinter struct {
	w          io.Writer
	colour     colourMode
	artifacts  map[int64]metadata.Artifact
	executions map[int64]metadata.Execution
	// by artifact: the events of it; by execution: those of it.
	of, in map[int64][]metadata.Event
	shown  map[int64]bool
}

func newLineagePrinter(w io.Writer, c colourMode, l *metadata.Lineage) *lineagePrinter {
	p := &lineagePrinter{
		w: w, colour: c, artifacts: map[int64]metadata.Artifact{}, executions: map[int64]metadata.Execution{},
		of: map[int64][]metadata.Event{}, in: map[int64][]metadata.Event{},
	}
	for _, art := range l.Artifacts {
		p.artifacts[art.ID] = art
	}
	for _, e := range l.Executions {
		p.executions[e.ID] = e
	}
	for _, e := range l.Events {
		p.of[e.ArtifactID] = append(p.of[e.ArtifactID], e)
		p.in[e.ExecutionID] = append(p.in[e.ExecutionID], e)
	}
	return p
}

func (p *lineagePrinter) print(id int64, d metadata.Direction) {
	fmt.Fprintln(p.w, p.artifact(id))
	if d != metadata.Down {
		fmt.Fprintln(p.w, p.colour.paint(bold, "made from"))
		p.shown = map[int64]bool{}
		p.walk(id, "  ", metadata.Output, metadata.Input)
	}
	if d != metadata.Up {
		fmt.Fprintln(p.w, p.colour.paint(bold, "used for"))
		p.shown = map[int64]bool{}
		p.walk(id, "  ", metadata.Input, metadata.Output)
	}
}

// walk prints the executions that an artifact is tied to by events of one type, and the artifacts behind them.
func (p *lineagePrinter) walk(id int64, indent string, to, on metadata.EventType) {
	if p.shown[id] {
		return
	}
	p.shown[id] = true
	var seen []int64
	for _, e := range p.of[id] {
		if e.Type != to || slices.Contains(seen, e.ExecutionID) {
			continue
		}
		seen = append(seen, e.ExecutionID)
		fmt.Fprintf(p.w, "%s%s\n", indent, p.execution(e.ExecutionID))
		var behind []int64
		for _, f := range p.in[e.ExecutionID] {
			if f.Type != on || f.ArtifactID == id || slices.Contains(behind, f.ArtifactID) {
				continue
			}
			behind = append(behind, f.ArtifactID)
			again := ""
			if p.shown[f.ArtifactID] {
				again = " (see above)"
			}
			fmt.Fprintf(p.w, "%s  %s%s\n", indent, p.artifact(f.ArtifactID), again)
			p.walk(f.ArtifactID, indent+"    ", to, on)
		}
	}
	if len(seen) == 0 && indent == "  " {
		fmt.Fprintf(p.w, "%snothing that is known\n", indent)
	}
}

func (p *lineagePrinter) artifact(id int64) string {
	art := p.artifacts[id]
	name, _ := art.Custom["display_name"].(string)
	if name == "" {
		name = art.Name
	}
	text := fmt.Sprintf("%s %s", p.colour.paint(cyan, "◆ "+name), art.URI)
	kind := art.Type
	if kind != "" && kind != metadata.GenericArtifact {
		text += " " + p.colour.paint(grey, kind)
	}
	return text + p.colour.paint(grey, fmt.Sprintf(" #%d", id))
}

func (p *lineagePrinter) execution(id int64) string {
	e := p.executions[id]
	path, _ := e.Custom["task_path"].(string)
	return fmt.Sprintf("%s %s %s", p.colour.paint(blue, "■ "+path), e.State, p.colour.paint(grey, e.Created.Local().Format("2006-01-02 15:04:05")))
}
