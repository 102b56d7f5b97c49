package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

func (a *app) deleteCommand() *cobra.Command {
	var labels string
	var all, completed, keepArtifacts, force bool
	c := &cobra.Command{
		Use:               "delete [RUN...]",
		Aliases:           []string{"rm"},
		Short:             "Delete runs: their state, logs and artifacts",
		Long:              "Delete runs: their state, their logs and the artifacts that lie in the home folder. A run that is being run is not\ndeleted. Artifacts that later runs have reused go with the run that made them, unless --keep-artifacts is given.",
		ValidArgsFunction: a.completeRuns(true),
		RunE: func(c *cobra.Command, args []string) error {
			terms, err := parseLabelSelector(labels)
			if err != nil {
				return usageError{err}
			}
			many := all || completed || labels != ""
			if many == (len(args) > 0) {
				return usage("name runs to delete, or choose them with --all, --completed or --selector")
			}
			st, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			var runs []store.Run
			if many {
				f := store.Filter{Labels: terms}
				if completed {
					f.Phases = []engine.Phase{engine.SucceededPhase, engine.FailedPhase, engine.ErrorPhase}
				}
				if runs, _, err = st.List(c.Context(), f); err != nil {
					return err
				}
			}
			for _, ref := range args {
				uid, err := a.find(c.Context(), ref)
				if err != nil {
					return err
				}
				run, err := st.Get(c.Context(), uid)
				if err != nil {
					return err
				}
				runs = append(runs, run)
			}
			var faults error
			for _, r := range runs {
				faults = errors.Join(faults, a.deleteRun(c.Context(), st, r, keepArtifacts, force))
			}
			return faults
		},
	}
	fl := c.Flags()
	fl.BoolVar(&all, "all", false, "all runs")
	fl.BoolVar(&completed, "completed", false, "all runs that have ended")
	fl.StringVarP(&labels, "selector", "l", "", "runs whose labels match: `key=value,...`")
	fl.BoolVar(&force, "force", false, "also runs that have not ended; what goes on of their tasks is not stopped")
	fl.BoolVar(&keepArtifacts, "keep-artifacts", false, "leave the artifacts where they are")
	return c
}

// deleteRun removes a run's files, then its row: a crash in between leaves a run that can be deleted once more.
func (a *app) deleteRun(ctx context.Context, st store.Store, r store.Run, keepArtifacts, force bool) error {
	if err := os.MkdirAll(a.runFolder(r.UID), 0o700); err != nil {
		return fmt.Errorf("delete %s: %w", r.Name, err)
	}
	owner, err := a.own(r.UID)
	if err != nil {
		return fmt.Errorf("delete %s: it is being run: %w; sluice terminate %s ends it", r.Name, err, r.Name)
	}
	if !r.Phase.Ended() && !force {
		err := fmt.Errorf("delete %s: it has not ended, and tasks of it may go on; sluice terminate %s ends it, --force deletes it all the same", r.Name, r.Name)
		return errors.Join(err, owner.Release())
	}
	folders := []string{a.runFolder(r.UID)}
	if !keepArtifacts {
		folders = append(folders, a.folder("artifacts", r.UID))
	}
	for _, f := range folders {
		err = errors.Join(err, os.RemoveAll(f))
	}
	if err == nil {
		err = st.Delete(ctx, r.UID)
	}
	if err = errors.Join(err, owner.Release()); err != nil {
		return fmt.Errorf("delete %s: %w", r.Name, err)
	}
	fmt.Fprintf(a.Stdout, "%s deleted\n", r.Name)
	return nil
}
