package cli

import "github.com/spf13/cobra"

func (a *app) terminateCommand() *cobra.Command {
	return a.endCommand("terminate", "Terminate a run: its tasks are killed, no exit handler runs",
		`Terminate a run. Its tasks are killed, no exit handler runs, and Post hooks are told but not waited for.`)
}
