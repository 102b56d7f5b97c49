package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store/filelock"
)

func (a *app) resumeCommand() *cobra.Command {
	var view viewFlags
	var nodes, message string
	var outputs []string
	c := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run: after a crash or Ctrl-C, or with what waits for a person",
		Long: `Go on with a run.

A run that no process goes on with (its process was killed, or interrupted with Ctrl-C) is taken up where it was: what
has ended is not run again, tasks that still run are adopted, and the command waits for the run as sluice run does. A run
that has ended is only shown.
What waits for a person in it is resumed, too, if nothing else was under way or if it is selected with
--node-field-selector.

In a run that another process runs, what waits for a person (suspend tasks, or the run as a whole) is resumed; that
process goes on with it. --output-parameter gives the outputs that a suspend task leaves to whoever resumes it.`,
		Example: `  sluice resume @latest
  sluice resume my-run --node-field-selector displayName=approve --output-parameter decision=yes`,
		Args:              exactly(1, "one run"),
		ValidArgsFunction: a.completeRuns(false),
		RunE: func(c *cobra.Command, args []string) error {
			o := order{Do: "resume", Select: nodes, Message: message, Outputs: map[string]any{}}
			if _, err := parseNodeSelector(nodes); err != nil {
				return err
			}
			for _, p := range outputs {
				name, value, ok := strings.Cut(p, "=")
				if !ok || name == "" {
					return usage("--output-parameter %s: give it as name=value", p)
				}
				o.Outputs[name] = value
			}
			return a.resume(c.Context(), args[0], o, view)
		},
	}
	view.add(c)
	fl := c.Flags()
	fl.StringVar(&nodes, "node-field-selector", "", "only suspend tasks that match: `field=value,...`")
	fl.StringArrayVar(&outputs, "output-parameter", nil, "an output that the suspend task leaves to you: `name=value` (repeatable)")
	fl.StringVar(&message, "message", "", "message of the resumed tasks")
	return c
}

func (a *app) resume(ctx context.Context, ref string, o order, view viewFlags) error {
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
		if who, owned := filelock.Holder(a.ownerFile(uid)); owned {
			err = fmt.Errorf("%w; it is being run by %s", err, who)
		}
		return fmt.Errorf("resume %s: %w", ref, err)
	}
	e, err := a.adopt(ctx, uid, view)
	if err != nil {
		return fmt.Errorf("resume %s: %w", ref, err)
	}
	return e.execute(ctx, func(ctx context.Context, active *runner.Active) error {
		s := active.State()
		if s.Phase.Ended() {
			if o.Select != "" || len(o.Outputs) > 0 {
				return fmt.Errorf("run %s has ended: %s", e.run.Name, s.Phase)
			}
			return nil // its process may have been killed before it could say so
		}
		person := len(suspended(s, nil)) > 0 || s.Suspended
		if o.Select == "" && len(o.Outputs) == 0 && !(person && active.Waits()) {
			return nil // it only goes on
		}
		return active.Apply(ctx, func(s *engine.State) ([]engine.Event, error) {
			events, _, err := o.events(s)
			return events, err
		})
	})
}
