package cli

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func (a *app) artifactsCommand() *cobra.Command {
	c := &cobra.Command{Use: "artifacts", Short: "List the artifacts of a run, and fetch them"}
	c.AddCommand(a.artifactsListCommand(), a.artifactsGetCommand())
	return c
}

// madeArtifact is an artifact and the task that made it.
type madeArtifact struct {
	Task string `json:"task"`
	Name string `json:"output"`
	program.Artifact
}

// artifactsOf gives the artifacts that the leaves of a run made, in the order of their paths.
func artifactsOf(s *engine.State) []madeArtifact {
	var out []madeArtifact
	for n := range s.Nodes() {
		if n.Kind != engine.Leaf || n.Dropped {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(n.Outputs.Artifacts)) {
			for _, art := range n.Outputs.Artifacts[name] {
				out = append(out, madeArtifact{Task: n.Path, Name: name, Artifact: art})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y madeArtifact) int { return cmp.Compare(x.Task, y.Task) })
	return out
}

func (a *app) artifactsListCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:               "list RUN",
		Aliases:           []string{"ls"},
		Short:             "List the artifacts that the tasks of a run made",
		Args:              exactly(1, "one run"),
		ValidArgsFunction: a.completeRuns(false),
		RunE: func(c *cobra.Command, args []string) error {
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			l, err := a.look(c.Context(), uid)
			if err != nil {
				return err
			}
			list := artifactsOf(l.state)
			switch out {
			case "json", "yaml":
				if list == nil {
					list = []madeArtifact{}
				}
				return a.printObject(out, list)
			case "name":
				for _, m := range list {
					fmt.Fprintf(a.Stdout, "%s %s\n", m.Task, m.Name)
				}
				return nil
			}
			if len(list) == 0 {
				fmt.Fprintf(a.Stderr, "run %s has made no artifacts\n", l.run.Name)
				return nil
			}
			w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "TASK\tARTIFACT\tTYPE\tSIZE\tWHERE")
			for _, m := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Task, m.Name, m.Type, bytesText(m.Size), cmp.Or(m.URI, string(m.Store)))
			}
			return w.Flush()
		},
	}
	outputFlag(c, &out, "json", "yaml", "name")
	return c
}

func (a *app) artifactsGetCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "get RUN [TASK] ARTIFACT",
		Short: "Fetch an artifact of a run, unpacked",
		Long: `Fetch an artifact of a run into a file or folder, unpacked where it was packed. TASK, a name or a path, says whose
artifact it is where several tasks have one of that name.`,
		Example:           "  sluice artifacts get @latest train model --to ./model",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: a.completeRunThenTasks,
		RunE: func(c *cobra.Command, args []string) error {
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			l, err := a.look(c.Context(), uid)
			if err != nil {
				return err
			}
			name, task := args[len(args)-1], ""
			if len(args) == 3 {
				task = args[1]
			}
			found, err := chooseArtifact(artifactsOf(l.state), l.run.Name, task, name)
			if err != nil {
				return err
			}
			if to == "" {
				to = name
			}
			path, err := filepath.Abs(to)
			if err != nil {
				return usage("--to %s: %w", to, err)
			}
			if err := artifact.Fetch(c.Context(), found.Artifact, path, a.artifactOptions(l.manifest)); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, to)
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "`file` or folder to write, in place of what is there (default: the artifact's name)")
	return c
}

func chooseArtifact(list []madeArtifact, run, task, name string) (madeArtifact, error) {
	var found []madeArtifact
	for _, m := range list {
		if m.Name == name && (task == "" || m.Task == task || strings.HasSuffix(m.Task, "."+task)) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 0:
		return madeArtifact{}, usage("run %s has no artifact %s; sluice artifacts list %s shows them", run, strings.TrimSpace(task+" "+name), run)
	case len(found) > 1:
		tasks := make([]string, len(found))
		for i, m := range found {
			tasks[i] = m.Task
		}
		return madeArtifact{}, usage("%d tasks of run %s have an artifact %s; say whose: %s", len(found), run, name, strings.Join(tasks, ", "))
	}
	return found[0], nil
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	if n == 0 {
		return ""
	}
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
