package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/submission"
)

func (a *app) retryCommand() *cobra.Command {
	var view viewFlags
	var nodes string
	var restart bool
	var parameters []string
	c := &cobra.Command{
		Use:   "retry RUN",
		Short: "Try a failed run again, from the tasks that failed",
		Long: `Try a failed run again. What has succeeded stays, with its outputs and what hooks answered; what failed, and all that
depends on it, runs again. With --restart-successful the nodes that --node-field-selector selects run again, too, and
so does all that depends on them.`,
		Example: `  sluice retry @latest
  sluice retry my-run --restart-successful --node-field-selector displayName=prepare`,
		Args:              exactly(1, "one run"),
		ValidArgsFunction: a.completeRuns(false),
		RunE: func(c *cobra.Command, args []string) error {
			terms, err := parseNodeSelector(nodes)
			if err != nil {
				return err
			}
			if restart != (len(terms) > 0) {
				return usage("--restart-successful and --node-field-selector go together")
			}
			given := map[string]any{}
			for _, p := range parameters {
				name, value, ok := strings.Cut(p, "=")
				if !ok || name == "" {
					return usage("-p %s: give it as name=value", p)
				}
				given[name] = value
			}
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			e, err := a.adopt(c.Context(), uid, view)
			if err != nil {
				return fmt.Errorf("retry %s: %w", args[0], err)
			}
			return e.execute(c.Context(), func(ctx context.Context, active *runner.Active) error {
				return active.Retry(ctx, func(s *engine.State) (engine.RetryRun, error) {
					return e.retryEvent(s, nodes, given)
				})
			})
		},
	}
	view.add(c)
	fl := c.Flags()
	fl.BoolVar(&restart, "restart-successful", false, "also run again the nodes that --node-field-selector selects")
	fl.StringVar(&nodes, "node-field-selector", "", "nodes to run again: `field=value,...`")
	fl.StringArrayVarP(&parameters, "parameter", "p", nil, "give a workflow parameter another value: `name=value` (repeatable)")
	return c
}

func (e *execution) retryEvent(s *engine.State, nodes string, given map[string]any) (engine.RetryRun, error) {
	r := engine.RetryRun{Parameters: given}
	if !s.Phase.Ended() {
		return r, fmt.Errorf("run %s has not ended; go on with it by: sluice resume %s", e.run.Name, e.run.Name)
	}
	if !s.Phase.Bad() && nodes == "" {
		return r, fmt.Errorf("run %s has succeeded, so that nothing is to be tried again; --restart-successful runs parts of it again", e.run.Name)
	}
	for name, v := range given {
		for _, p := range e.manifest.Program.Parameters {
			if p.Name == name {
				given[name] = submission.Typed(asGiven(v), p.Type)
			}
		}
	}
	selected, err := selectNodes(s, nodes)
	if err != nil {
		return r, err
	}
	if nodes != "" && len(selected) == 0 {
		return r, usage("no node of run %s matches %q", e.run.Name, nodes)
	}
	for _, n := range selected {
		r.Restart = append(r.Restart, n.ID)
	}
	return r, nil
}

func asGiven(v any) any {
	if s, ok := v.(string); ok {
		return submission.Given(s)
	}
	return v
}
