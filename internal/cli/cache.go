package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/hook/cache/sqlcache"
)

func (a *app) cacheCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cache",
		Short: "List and remove remembered results of tasks",
		Long: `Results of tasks are remembered where the author asks for it (Argo's memoize, caching of Kubeflow pipelines), or where a
hook with the built-in plugin cache says so.`,
	}
	c.AddCommand(a.cacheListCommand(), a.cacheRemoveCommand())
	return c
}

func (a *app) cacheListCommand() *cobra.Command {
	var out string
	var limit int
	c := &cobra.Command{
		Use:     "list [KEY]",
		Aliases: []string{"ls"},
		Short:   "List remembered results, newest first; KEY is the beginning of a key",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			entries, err := a.cacheEntries(c.Context())
			if err != nil {
				return err
			}
			f := sqlcache.Filter{Limit: limit}
			if len(args) > 0 {
				f.Key = args[0]
			}
			list, err := entries.List(c.Context(), f)
			if err != nil {
				return err
			}
			return a.printCache(out, list)
		},
	}
	outputFlag(c, &out, "json", "yaml", "name")
	c.Flags().IntVar(&limit, "limit", 0, "at most `n` entries (0: 1000)")
	return c
}

// cacheEntry is an entry as it is printed.
type cacheEntry struct {
	Scope    string     `json:"scope"`
	Key      string     `json:"key"`
	Created  time.Time  `json:"created"`
	Workflow string     `json:"workflow"`
	Task     string     `json:"task"`
	Hits     int64      `json:"hits"`
	LastHit  *time.Time `json:"lastHit,omitempty"`
	Outputs  any        `json:"outputs"`
}

func (a *app) printCache(out string, list []cache.Entry) error {
	switch out {
	case "json", "yaml":
		entries := []cacheEntry{}
		for _, e := range list {
			p := cacheEntry{e.Scope, e.Key, e.Created, e.Workflow, e.Task, e.Hits, nil, e.Outputs}
			if !e.LastHit.IsZero() {
				p.LastHit = &e.LastHit
			}
			entries = append(entries, p)
		}
		return a.printObject(out, entries)
	case "name":
		for _, e := range list {
			fmt.Fprintln(a.Stdout, e.Key)
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(a.Stderr, "nothing is remembered")
		return nil
	}
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tTASK\tRUN\tAGE\tHITS")
	for _, e := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", clip(e.Key, 40), e.Task, e.Workflow, short(time.Since(e.Created)), e.Hits)
	}
	return w.Flush()
}

func (a *app) cacheRemoveCommand() *cobra.Command {
	var all bool
	var older time.Duration
	c := &cobra.Command{
		Use:   "rm [KEY...]",
		Short: "Forget remembered results; KEY is the beginning of a key",
		RunE: func(c *cobra.Command, args []string) error {
			if (all || older > 0) == (len(args) > 0) {
				return usage("name keys, or choose with --all or --older-than")
			}
			entries, err := a.cacheEntries(c.Context())
			if err != nil {
				return err
			}
			var filters []sqlcache.Filter
			for _, key := range args {
				filters = append(filters, sqlcache.Filter{Key: key})
			}
			if len(args) == 0 {
				f := sqlcache.Filter{}
				if older > 0 {
					f.Before = time.Now().Add(-older)
				}
				filters = append(filters, f)
			}
			var total int64
			for _, f := range filters {
				n, err := entries.Clear(c.Context(), f)
				if err != nil {
					return err
				}
				total += n
			}
			fmt.Fprintf(a.Stdout, "%d forgotten\n", total)
			return nil
		},
	}
	c.Flags().BoolVar(&all, "all", false, "everything")
	c.Flags().DurationVar(&older, "older-than", 0, "what was remembered longer ago than this")
	return c
}
