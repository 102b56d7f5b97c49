package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// What the list shows of runs that have not ended, in place of their phase.
const (
	suspendedStatus   = "Suspended"   // waits for a person
	interruptedStatus = "Interrupted" // no process goes on with it
)

var allStatuses = []string{
	string(engine.Pending), string(engine.RunningPhase), suspendedStatus, interruptedStatus,
	string(engine.SucceededPhase), string(engine.FailedPhase), string(engine.ErrorPhase),
}

// statusOf is a run's status in one word.
func statusOf(r store.Run) string {
	switch {
	case r.Summary.Suspended:
		return suspendedStatus
	case r.Summary.Interrupted:
		return interruptedStatus
	}
	return string(r.Phase)
}

// phasesOf are the phases that runs of some statuses have in the store.
func phasesOf(statuses []string) []engine.Phase {
	var out []engine.Phase
	for _, s := range statuses {
		for _, p := range []engine.Phase{engine.Pending, engine.RunningPhase, engine.Phase(s)} {
			open := s == suspendedStatus || s == interruptedStatus
			if open == (p != engine.Phase(s)) && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// listRuns gives a page of runs with a status of those given, or of any. Whether a process goes on with a run is not in the
// store, so more is read until the page is full.
func (a *app) listRuns(ctx context.Context, f store.Filter, statuses []string) ([]store.Run, string, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, "", err
	}
	f.Phases = phasesOf(statuses)
	var out []store.Run
	for limit := f.Limit; ; {
		runs, next, err := st.List(ctx, f)
		if err != nil {
			return nil, "", err
		}
		for _, r := range runs {
			r.Summary.Interrupted = !r.Phase.Ended() && !a.owned(r.UID)
			if len(statuses) == 0 || slices.Contains(statuses, statusOf(r)) {
				out = append(out, r)
			}
		}
		if next == "" || len(out) == limit {
			return out, next, nil
		}
		f.After, f.Limit = next, limit-len(out)
	}
}

func (a *app) listCommand() *cobra.Command {
	var out, labels, prefix, language, since, after string
	var statuses []string
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
			for _, s := range statuses {
				if !slices.Contains(allStatuses, s) {
					return usage("--status %s: must be one of %s", s, strings.Join(allStatuses, ", "))
				}
			}
			if since != "" {
				d, err := time.ParseDuration(since)
				if err != nil {
					return usage("--since %s: give a duration such as 30m or 24h", since)
				}
				f.Since = time.Now().Add(-d)
			}
			runs, next, err := a.listRuns(c.Context(), f, statuses)
			if err != nil {
				return err
			}
			return a.printRuns(out, runs, next)
		},
	}
	outputFlag(c, &out, "json", "yaml", "name", "wide")
	fl := c.Flags()
	fl.StringVarP(&labels, "selector", "l", "", "only runs whose labels match: `key=value,...`")
	fl.StringVar(&prefix, "prefix", "", "only runs whose name begins so")
	fl.StringSliceVar(&statuses, "status", nil, "only runs with these statuses: "+strings.Join(allStatuses, ", "))
	fl.StringVar(&language, "language", "", "only argo or only kfp")
	fl.StringVar(&since, "since", "", "only runs created in this time, as 24h")
	fl.IntVar(&limit, "limit", 0, "at most `n` runs")
	fl.StringVar(&after, "continue", "", "go on where an earlier list with --limit ended: the `cursor` that it printed")
	_ = c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(allStatuses, cobra.ShellCompDirectiveNoFileComp))
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
		status := statusOf(r)
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
