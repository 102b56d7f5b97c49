package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

func (a *app) stopCommand() *cobra.Command {
	return a.endCommand("stop", "Stop a run: its tasks end, its exit handlers and Post hooks still run",
		`Stop a run. Its tasks are told to end, nothing new is started, and its exit handlers and Post hooks still run. A run that
no process goes on with is taken up for that. With --node-field-selector only the nodes that match are stopped.`)
}

// endCommand is stop or terminate.
func (a *app) endCommand(what, short, long string) *cobra.Command {
	var message, nodes string
	c := &cobra.Command{
		Use:               what + " RUN...",
		Short:             short,
		Long:              long,
		Args:              atLeastOne("runs"),
		ValidArgsFunction: a.completeRuns(true),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := parseNodeSelector(nodes); err != nil {
				return err
			}
			var err error
			for _, ref := range args {
				err = errors.Join(err, a.steer(c.Context(), ref, order{Do: what, Select: nodes, Message: message}))
			}
			return err
		},
	}
	c.Flags().StringVar(&message, "message", "", "why: becomes the message of what is ended")
	c.Flags().StringVar(&nodes, "node-field-selector", "", "only nodes that match: `field=value,...`")
	return c
}

// steer gives an order to whoever runs a run, and takes the run up where nobody does.
func (a *app) steer(ctx context.Context, ref string, o order) error {
	uid, err := a.find(ctx, ref)
	if err != nil {
		return err
	}
	done, err := a.send(ctx, uid, o)
	if err == nil {
		fmt.Fprintf(a.Stdout, "%s: %s\n", ref, done)
		return nil
	}
	if !errors.Is(err, errNotRunning) {
		return fmt.Errorf("%s %s: %w", o.Do, ref, err)
	}
	e, err := a.adopt(ctx, uid, viewFlags{noProgress: true, output: "name", exitWhenSuspended: true})
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.Do, ref, err)
	}
	e.quiet = true
	err = e.execute(ctx, func(ctx context.Context, active *runner.Active) error {
		return active.Apply(ctx, func(s *engine.State) (events []engine.Event, err error) {
			events, done, err = o.events(s)
			return events, err
		})
	})
	var failed failure
	if err != nil && !errors.As(err, &failed) { // that a stopped run has failed is what was asked for
		return fmt.Errorf("%s %s: %w", o.Do, ref, err)
	}
	fmt.Fprintf(a.Stdout, "%s: %s\n", ref, done)
	return nil
}
