package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

var allPhases = []string{
	string(engine.Pending), string(engine.RunningPhase), string(engine.SucceededPhase), string(engine.FailedPhase), string(engine.ErrorPhase),
}

func (a *app) listCommand() *cobra.Command {
	var out, labels, prefix, language, since, after string
	var phases []string
	var limit int
	c := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List runs, newest first",
		Args:    exactly(0, "no argument"),
		RunE: func(c *cobra.Command, _ []string) error {
			f := store.Filter{Language: language, NamePrefix: prefix, Limit: limit, After: after}
			var err error
			if f.Labels, err = parseLabelSelector(labels); err != nil {
				return usageError{err}
			}
			for _, p := range phases {
				if !slices.Contains(allPhases, p) {
					return usage("--status %s: must be one of %s", p, strings.Join(allPhases, ", "))
				}
				f.Phases = append(f.Phases, engine.Phase(p))
			}
			if since != "" {
				d, err := time.ParseDuration(since)
				if err != nil {
					return usage("--since %s: give a duration such as 30m or 24h", since)
				}
				f.Since = time.Now().Add(-d)
			}
			st, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			runs, next, err := st.List(c.Context(), f)
			if err != nil {
				return err
			}
			for i := range runs {
				r := &runs[i]
				r.Summary.Interrupted = !r.Phase.Ended() && !a.owned(r.UID)
			}
			return a.printRuns(out, runs, next)
		},
	}
	outputFlag(c, &out, "json", "yaml", "name", "wide")
	fl := c.Flags()
	fl.StringVarP(&labels, "selector", "l", "", "only runs whose labels match: `key=value,...`")
	fl.StringVar(&prefix, "prefix", "", "only runs whose name begins so")
	fl.StringSliceVar(&phases, "status", nil, "only runs in these phases: "+strings.Join(allPhases, ", "))
	fl.StringVar(&language, "language", "", "only argo or only kfp")
	fl.StringVar(&since, "since", "", "only runs created in this time, as 24h")
	fl.IntVar(&limit, "limit", 0, "at most `n` runs")
	fl.StringVar(&after, "continue", "", "go on where an earlier list with --limit ended: the `cursor` that it printed")
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(allPhases, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) printRuns(out string, runs []store.Run, next string) error {
	switch out {
	case "name":
		for _, r := range runs {
			fmt.Fprintln(a.Stdout, r.Name)
		}
		return nil
	case "json", "yaml":
		if runs == nil {
			runs = []store.Run{}
		}
		return a.printObject(out, struct {
			Runs     []store.Run `json:"runs"`
			Continue string      `json:"continue,omitempty"`
		}{runs, next})
	}
	if len(runs) == 0 {
		fmt.Fprintln(a.Stderr, "no runs")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	head := "NAME\tSTATUS\tAGE\tDURATION\tTASKS\tMESSAGE"
	if out == "wide" {
		head = "UID\tNAME\tSTATUS\tAGE\tDURATION\tTASKS\tREUSED\tKIND\tFILE\tMESSAGE"
	}
	fmt.Fprintln(w, head)
	now := time.Now()
	for _, r := range runs {
		status := string(r.Phase)
		switch {
		case r.Summary.Suspended:
			status = "Suspended"
		case r.Summary.Interrupted:
			status = "Interrupted"
		}
		duration := ""
		if d, ok := took(r.Started, r.Finished, now); ok && !r.Summary.Interrupted {
			duration = short(d)
		}
		age, tasks := short(now.Sub(r.Created)), fmt.Sprintf("%d/%d", r.Summary.Done, r.Summary.Tasks)
		message := clip(oneLine(r.Message), 80)
		if out == "wide" {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.UID, r.Name, status, age, duration, tasks, r.Summary.Reused, r.Language, r.File, message)
		} else {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, status, age, duration, tasks, message)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if next != "" {
		fmt.Fprintf(a.Stderr, "more: --continue %s\n", next)
	}
	return nil
}
