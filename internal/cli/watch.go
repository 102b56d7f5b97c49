package cli

import (
	"time"

	"github.com/spf13/cobra"
)

func (a *app) watchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "watch RUN",
		Short:             "Watch a run until it ends",
		Long:              "Watch a run that this or another process runs, until it ends. The exit code is the run's: 0 succeeded, 1 failed.",
		Args:              exactly(1, "one run"),
		ValidArgsFunction: a.completeRuns(false),
		RunE: func(c *cobra.Command, args []string) error {
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			var followed error
			if isTerminal(a.Stderr) {
				live := newLiveTree(a.Stderr, a.colour)
				back := a.logs.redirect(live)
				followed = a.followRun(c.Context(), uid, live)
				back()
				live.close()
			} else {
				lines := a.newProgressLines(a.logs)
				followed = a.followRun(c.Context(), uid, lines)
				lines.close()
			}
			if followed != nil {
				return followed
			}
			l, err := a.look(c.Context(), uid)
			if err != nil {
				return err
			}
			width := 0
			if w, _, ok := terminalSize(a.Stdout); ok {
				width = w
			}
			if err := writeRun(a.Stdout, l.state, "", a.stdoutColour(), width, false, time.Now()); err != nil {
				return err
			}
			return outcome(l.state)
		},
	}
	return c
}
