package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			info := struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
			}{a.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if out == "" {
				fmt.Fprintf(a.Stdout, "sluice %s (%s, %s)\n", info.Version, info.Go, info.Platform)
				return nil
			}
			return a.printObject(out, info)
		},
	}
	outputFlag(c, &out, "json", "yaml")
	return c
}
