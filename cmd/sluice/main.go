// Command sluice runs machine-learning pipelines: Argo Workflows and Kubeflow Pipelines as people already have them.
package main

import (
	"os"

	"github.com/sluice-ml/sluice/internal/cli"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(cli.Main(cli.System(version)))
}
