package cli

import (
	"context"
	"fmt"
	"maps"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

func (a *app) resubmitCommand() *cobra.Command {
	var submit submitFlags
	var view viewFlags
	c := &cobra.Command{
		Use:   "resubmit RUN",
		Short: "Run the manifest of an earlier run once more, as a new run",
		Long: `Run the manifest of an earlier run once more, as it was then, with the same files and options, as a new run. Options that
are given here go before those of the earlier run.`,
		Args:              exactly(1, "one run"),
		ValidArgsFunction: a.completeRuns(false),
		RunE: func(c *cobra.Command, args []string) error {
			uid, err := a.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			st, err := a.openStore(c.Context())
			if err != nil {
				return err
			}
			old, err := st.Get(c.Context(), uid)
			if err != nil {
				return err
			}
			opts, err := storedOptions(old)
			if err != nil {
				return err
			}
			if err := a.retriedParameters(c.Context(), uid, &opts); err != nil {
				return err
			}
			now, err := submit.settle(a)
			if err != nil {
				return err
			}
			opts.Resubmitted = true
			sub := old.Submission
			more, err := submit.others(a)
			if err != nil {
				return err
			}
			sub.Documents = append(append([]store.Document{}, sub.Documents...), more...)
			if len(submit.hooks) > 0 {
				if sub.Hooks, err = submit.readHooks(a); err != nil {
					return err
				}
			}
			file := old.File
			if file == "" {
				file = fmt.Sprintf("the manifest of %s", old.Name)
			}
			return a.submit(c.Context(), sub, overlay(opts, now), file, view)
		},
	}
	submit.add(c)
	view.add(c)
	return c
}

// retriedParameters adds the parameters that retries have given to a run.
func (a *app) retriedParameters(ctx context.Context, uid string, opts *options) error {
	st, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	events, err := st.Events(ctx, uid)
	if err != nil {
		return err
	}
	if opts.Parameters == nil {
		opts.Parameters = map[string]any{}
	}
	for _, e := range events {
		if e.RetryRun != nil {
			maps.Copy(opts.Parameters, e.RetryRun.Parameters)
		}
	}
	return nil
}

// overlay puts the options that are given now over those of an earlier run.
func overlay(old, now options) options {
	out := old
	out.Parameters = maps.Clone(old.Parameters)
	if out.Parameters == nil {
		out.Parameters = map[string]any{}
	}
	maps.Copy(out.Parameters, now.Parameters)
	if len(now.Artifacts) > 0 {
		out.Artifacts = maps.Clone(old.Artifacts)
		if out.Artifacts == nil {
			out.Artifacts = map[string][]program.Artifact{}
		}
		maps.Copy(out.Artifacts, now.Artifacts)
	}
	if len(now.Labels) > 0 {
		out.Labels = maps.Clone(old.Labels)
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		maps.Copy(out.Labels, now.Labels)
	}
	for _, p := range []struct {
		to   *string
		from string
	}{
		{&out.Name, now.Name}, {&out.GenerateName, now.GenerateName}, {&out.Namespace, now.Namespace}, {&out.Entrypoint, now.Entrypoint},
		{&out.ServiceAccount, now.ServiceAccount}, {&out.Runtime, now.Runtime}, {&out.Sandbox, now.Sandbox}, {&out.ArtifactRoot, now.ArtifactRoot},
	} {
		if p.from != "" {
			*p.to = p.from
		}
	}
	if now.Parallelism > 0 {
		out.Parallelism = now.Parallelism
	}
	out.Limits = out.Limits || now.Limits
	return out
}
