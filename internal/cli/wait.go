package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
)

func (a *app) waitCommand() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait RUN...",
		Short: "Wait until runs have ended",
		Long: `Wait until runs have ended, whichever processes run them, and print a line for each. The exit code is 0 when all have
succeeded, else 1.`,
		Args:              atLeastOne("runs"),
		ValidArgsFunction: a.completeRuns(true),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not done after %s", timeout))
				defer cancel()
			}
			var bad error
			for _, ref := range args {
				uid, err := a.find(ctx, ref)
				if err != nil {
					return err
				}
				if err := a.followRun(ctx, uid); err != nil {
					if ctx.Err() != nil {
						return fmt.Errorf("wait for %s: %w", ref, context.Cause(ctx))
					}
					if gone, ok := errors.AsType[*notRunning](err); ok {
						fmt.Fprintf(a.Stdout, "%s Interrupted\n", gone.name)
						bad = err
						continue
					}
					return err
				}
				l, err := a.look(ctx, uid)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.Stdout, "%s %s\n", l.run.Name, l.state.Phase)
				if err := outcome(l.state); err != nil && bad == nil {
					bad = err
				}
			}
			return bad
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time (0: never)")
	return c
}

// outcome is the error that makes a run's exit code.
func outcome(s *engine.State) error {
	if s.Phase.Bad() {
		return failure{errReported}
	}
	return nil
}

// failureText says why a run failed: by the first task that did and was not made good, else in its own words.
func failureText(s *engine.State) string {
	if s.Shutdown != "" && s.Message != "" {
		return s.Message // what it was doing did not fail by itself
	}
	for n := range s.Nodes() {
		if (n.Kind == engine.Leaf || n.Kind == engine.AbsentNode) && n.Message != "" && n.ID != s.Root && failsAll(s, n) {
			return n.Path + ": " + n.Message
		}
	}
	if s.Message != "" {
		return s.Message
	}
	return string(s.Phase)
}

// failsAll says whether a node failed together with all that is around it: another attempt may have succeeded.
func failsAll(s *engine.State, n *engine.Node) bool {
	for ; n != nil; n = s.Node(n.Parent) {
		if !n.Phase.Bad() {
			return false
		}
	}
	return true
}

func firstLine(s string) string {
	for i, r := range s {
		if r == '\n' {
			return s[:i]
		}
	}
	return s
}
