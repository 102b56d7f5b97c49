// Command sluice-executor wraps a task's commands where they run. Its argument is the task folder.
package main

import (
	"fmt"
	"os"

	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sluice-executor TASK-FOLDER")
		os.Exit(2)
	}
	if err := executor.Run(os.Args[1], kfpoutput.ParseExecutorOutput); err != nil {
		fmt.Fprintln(os.Stderr, "sluice-executor:", err)
		os.Exit(1)
	}
}
