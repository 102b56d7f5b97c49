package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) getCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "get RUN",
		Short: "Show a run: its tasks as a tree, its parameters and outputs",
		Long: `Show a run. RUN is a name (the newest run that has it), a UID or its beginning, or @latest. -o json and yaml give the
run in the form of its own tools: an Argo Workflow with its status, or a Kubeflow v2beta1 Run.`,
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
			switch out {
			case "name":
				fmt.Fprintln(a.Stdout, l.run.Name)
				return nil
			case "json", "yaml":
				object, err := l.manifest.Project(l.state)
				if err != nil {
					return err
				}
				return a.printObject(out, object)
			}
			note := ""
			if !l.state.Phase.Ended() {
				switch {
				case !a.owned(uid):
					note = "interrupted; go on with: sluice resume " + l.run.Name
				case l.state.Suspended:
					note = "suspended; go on with: sluice resume " + l.run.Name
				case l.run.Summary.Suspended:
					note = "waiting for a person"
				}
			}
			width := 0
			if w, _, ok := terminalSize(a.Stdout); ok {
				width = w
			}
			return writeRun(a.Stdout, l.state, note, a.stdoutColour(), width, out == "wide", time.Now())
		},
	}
	outputFlag(c, &out, "json", "yaml", "name", "wide")
	return c
}
