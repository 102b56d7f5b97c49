package cli

import (
	"github.com/spf13/cobra"
)

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sluice",
		Short: "Run ML pipelines: Argo Workflows and Kubeflow Pipelines, as you have them",
		Long: `sluice runs Argo Workflow manifests and compiled Kubeflow Pipelines (IR) on this machine, with no service to set up.

Exit codes: 0 when the run succeeded or the command did what was asked, 1 when the run failed or the command could
not do it, 2 for bad input: an invalid manifest, an unknown flag, a run that is not there.

Everything is kept under $SLUICE_HOME (by default ~/.local/share/sluice).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			a.begun = true
			if err := a.findHome(); err != nil {
				return err
			}
			return a.setUpLog()
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%w; see %s --help", err, c.CommandPath())
	})
	f := root.PersistentFlags()
	f.StringVar(&a.home, "home", "", "folder that holds everything local (default $SLUICE_HOME)")
	f.StringVar(&a.logLevel, "log-level", "", "what to log to standard error: debug, info, warn or error (default $SLUICE_LOG_LEVEL, else warn)")
	f.BoolVar(&a.noColour, "no-color", false, "no colours (also by the variable NO_COLOR)")
	root.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "look", Title: "Look:"},
		&cobra.Group{ID: "steer", Title: "Steer:"},
		&cobra.Group{ID: "more", Title: "More:"},
	)
	for group, commands := range map[string][]*cobra.Command{ // cobra sorts them by name
		"run":   {a.runCommand(), a.lintCommand(), a.retryCommand(), a.resubmitCommand(), a.resumeCommand()},
		"look":  {a.listCommand(), a.getCommand(), a.watchCommand(), a.waitCommand(), a.logsCommand()},
		"steer": {a.stopCommand(), a.terminateCommand(), a.suspendCommand(), a.deleteCommand()},
		"more":  {a.hooksCommand(), a.cacheCommand(), a.artifactsCommand(), a.lineageCommand(), a.installCommand(), a.controllerCommand(), a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	return root
}
