package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/filelock"
	"github.com/sluice-ml/sluice/internal/submission"
)

// looked is a run as its journal has it.
type looked struct {
	run      store.Run
	manifest *submission.Manifest
	machine  *engine.Machine
	state    *engine.State
	position int
}

// find gives the UID of a run that the user named.
func (a *app) find(ctx context.Context, ref string) (string, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return "", err
	}
	uid, err := st.Find(ctx, ref)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrAmbiguous) {
		return "", usage("%w; sluice list shows the runs", err)
	}
	return uid, err
}

// look brings a run's state back without running it.
func (a *app) look(ctx context.Context, uid string) (*looked, error) {
	st, err := a.openStore(ctx)
	if err != nil {
		return nil, err
	}
	l := &looked{}
	if l.run, err = st.Get(ctx, uid); err != nil {
		return nil, err
	}
	opts, err := storedOptions(l.run)
	if err != nil {
		return nil, err
	}
	if l.manifest, err = a.load(l.run.Submission, opts, ""); err != nil {
		return nil, err
	}
	if l.machine, err = a.machine(l.manifest); err != nil {
		return nil, err
	}
	l.state, l.position, err = runner.Replay(ctx, st, l.machine, uid)
	return l, err
}

// owned says whether a process goes on with a run.
func (a *app) owned(uid string) bool {
	_, owned := filelock.Holder(a.ownerFile(uid))
	return owned
}

// completeRuns completes names of runs; args beyond the first are completed only where many are taken.
func (a *app) completeRuns(many bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many || a.findHome() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		st, err := a.openStore(c.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, _, err := st.List(c.Context(), store.Filter{NamePrefix: begun, Limit: 100})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		seen := map[string]bool{}
		for _, r := range runs {
			if !seen[r.Name] {
				seen[r.Name] = true
				out = append(out, r.Name+"\t"+string(r.Phase))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeRunThenTasks completes a run, then names of its tasks.
func (a *app) completeRunThenTasks(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeRuns(false)(c, args, begun)
	}
	if a.findHome() != nil || a.setUpLog() != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	uid, err := a.find(c.Context(), args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l, err := a.look(c.Context(), uid)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	seen := map[string]bool{}
	for n := range l.state.Nodes() {
		if n.Kind == engine.Leaf && strings.HasPrefix(n.Name, begun) && !seen[n.Name] {
			seen[n.Name] = true
			out = append(out, n.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
