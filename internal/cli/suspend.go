package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) suspendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "suspend RUN...",
		Short: "Suspend a run: what runs goes on, nothing new is started until sluice resume",
		Long: `Suspend a run that is being run: tasks that run go on, and nothing new is started until sluice resume. A run that no
process goes on with is suspended as it is.`,
		Args:              atLeastOne("runs"),
		ValidArgsFunction: a.completeRuns(true),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			for _, ref := range args {
				err = errors.Join(err, a.suspend(c.Context(), ref))
			}
			return err
		},
	}
}

func (a *app) suspend(ctx context.Context, ref string) error {
	uid, err := a.find(ctx, ref)
	if err != nil {
		return err
	}
	done, err := a.send(ctx, uid, order{Do: "suspend"})
	switch {
	case errors.Is(err, errNotRunning):
		l, err := a.look(ctx, uid)
		if err != nil {
			return fmt.Errorf("suspend %s: %w", ref, err)
		}
		if l.state.Phase.Ended() {
			return fmt.Errorf("suspend %s: run %s has ended: %s", ref, l.run.Name, l.state.Phase)
		}
		return fmt.Errorf("suspend %s: no process goes on with it, so nothing new is started; sluice resume %s would go on with it", ref, ref)
	case err != nil:
		return fmt.Errorf("suspend %s: %w", ref, err)
	}
	fmt.Fprintf(a.Stdout, "%s: %s\n", ref, done)
	return nil
}
