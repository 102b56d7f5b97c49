// Command sluice-executor wraps a task's commands where they run: by a task folder, or in a container of a task pod.
package main

import (
	"os"

	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
)

func main() {
	os.Exit(executor.Main(os.Args[1:], os.Stderr, executor.Host{Environ: os.Environ(), Parse: kfpoutput.ParseExecutorOutput}))
}
