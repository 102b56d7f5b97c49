package executor

import (
	"fmt"
	"io"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Main is the executor as a program: its one argument is the task folder. It gives the exit code.
func Main(args []string, stderr io.Writer, host Host) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, spec.Voice+"the one argument is a task folder")
		return 2
	}
	if err := Run(args[0], host); err != nil {
		fmt.Fprintln(stderr, spec.Voice+err.Error())
		return 1
	}
	return 0
}
