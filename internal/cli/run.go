package cli

import (
	"github.com/spf13/cobra"
)

// viewFlags say how a run in the foreground is shown.
type viewFlags struct {
	output            string
	noProgress        bool
	watch             bool
	showLogs          bool
	exitWhenSuspended bool
}

func (v *viewFlags) add(c *cobra.Command) {
	outputFlag(c, &v.output, "json", "yaml", "name", "wide")
	f := c.Flags()
	f.BoolVar(&v.noProgress, "no-progress", false, "show nothing while the run goes on")
	f.BoolVarP(&v.watch, "watch", "w", false, "show a live tree even where standard error is no terminal")
	f.BoolVar(&v.showLogs, "log", false, "show what the tasks print, each line with its task")
	f.BoolVar(&v.exitWhenSuspended, "exit-when-suspended", false, "end with exit code 0 once the run only waits for a person; sluice resume goes on with it")
}

func (a *app) runCommand() *cobra.Command {
	var submit submitFlags
	var view viewFlags
	var dryRun bool
	c := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a manifest on this machine and wait for it",
		Long: `Run an Argo Workflow manifest, or a compiled Kubeflow pipeline, on this machine, and wait for its end. FILE may be -
for standard input. Nothing has to be installed or started first.

While it runs, a live tree (on a terminal) or a line for each change goes to standard error; at the end a summary of
the tasks, the outputs, and, where it failed, the command that tries again. -o json or yaml writes the run in the form
of its own tools to standard output: an Argo Workflow with its status, or a Kubeflow v2beta1 Run.

A run that waits for a person (an Argo suspend task without a duration) keeps waiting: sluice resume, from another
terminal, lets it go on. With --exit-when-suspended the command ends instead, and sluice resume goes on with the run.

Ctrl-C stops the tasks gently and leaves the run as it is; sluice resume goes on with it. A second Ctrl-C kills them.

Exit codes: 0 the run succeeded, 1 it failed or was interrupted, 2 the input was bad and nothing was started.`,
		Example: `  sluice run hello-world.yaml
  sluice run pipeline.yaml -p epochs=3 --hooks hooks.yaml
  sluice run workflow.yaml -f templates.yaml -o json >result.json`,
		Args: exactly(1, "one manifest"),
		RunE: func(c *cobra.Command, args []string) error {
			opts, err := submit.settle(a)
			if err != nil {
				return err
			}
			sub, err := submit.read(a, args[0])
			if err != nil {
				return err
			}
			if dryRun {
				return a.dryRun(c.Context(), sub, opts, args[0], view.output)
			}
			return a.submit(c.Context(), sub, opts, args[0], view)
		},
	}
	submit.add(c)
	view.add(c)
	c.Flags().BoolVar(&dryRun, "dry-run", false, "check everything and show what would be run, but start nothing")
	return c
}
