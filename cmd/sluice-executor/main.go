// Command sluice-executor wraps a task's commands where they run. Its argument is the task folder.
package main

import (
	"os"

	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
)

func main() {
	os.Exit(executor.Main(os.Args[1:], os.Stderr, executor.Host{Environ: os.Environ(), Parse: kfpoutput.ParseExecutorOutput}))
}
