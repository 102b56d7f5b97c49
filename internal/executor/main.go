package executor

import (
	"fmt"
	"io"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

const usage = `usage:
  sluice-executor FOLDER         run the task in a task folder
  sluice-executor install DEST   copy this program to DEST
  sluice-executor pod COMMAND... run the task of this container, which ` + spec.PodEnv + ` describes; COMMAND is its
                                 command, if that says none`

// Main is the executor as a program. It gives the exit code.
func Main(args []string, stderr io.Writer, host Host) int {
	var err error
	switch {
	case len(args) >= 1 && args[0] == "pod":
		return Pod(args[1:], host, stderr)
	case len(args) == 2 && args[0] == "install":
		err = Install(args[1])
	case len(args) == 1:
		err = Run(args[0], host)
	default:
		fmt.Fprintln(stderr, usage)
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, spec.Voice+err.Error())
		return 1
	}
	return 0
}
