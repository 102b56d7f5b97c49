package executor

import (
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// mainContainer is the container that a task's result and exit code come from.
const mainContainer = "main"

// ending is how the commands of a task ended.
type ending struct {
	Ran               bool
	Stopped, TimedOut bool
	Started           time.Time
	// Failure says what broke around the commands; empty where nothing did.
	Failure    string
	Containers []spec.ContainerResult
	CPU        time.Duration
	MaxMemory  int64
	Stdout     *string
}

// result draws the task's result from the ends of its containers; outputs are still to come.
func (e ending) result(task spec.Spec) spec.Result {
	r := spec.Result{
		Phase: spec.Succeeded, Ran: e.Ran, Stopped: e.Stopped, TimedOut: e.TimedOut, Started: e.Started,
		CPU: e.CPU, MaxMemory: e.MaxMemory, Stdout: e.Stdout,
	}
	if e.Failure != "" {
		r.Phase, r.Message = spec.Error, e.Failure
	}
	for _, c := range e.Containers {
		if c.Phase != spec.Succeeded && r.Phase == spec.Succeeded {
			r.Phase, r.Message = spec.Failed, c.Name+": "+c.Message
		}
		if c.Name == mainContainer || len(e.Containers) == 1 {
			r.ExitCode = c.ExitCode
		}
	}
	switch {
	case e.TimedOut:
		r.Phase, r.Message = spec.Failed, fmt.Sprintf("the task took longer than its timeout of %v", task.Timeout)
	case e.Stopped && r.Phase == spec.Succeeded:
		r.Phase, r.Message = spec.Failed, "the task was stopped"
	}
	if len(e.Containers) > 1 {
		r.Containers = e.Containers
	}
	return r
}

// exit records how a container's command ended.
func exit(r *spec.ContainerResult, code int) {
	r.ExitCode = &code
	r.Finished = time.Now().UTC()
	r.Phase, r.Message = spec.Succeeded, ""
	if code != 0 {
		r.Phase, r.Message = spec.Failed, fmt.Sprintf("Error (exit code %d)", code)
	}
}

// notStarted records that a container's command never ran, as one that was terminated: what waits for it was.
func notStarted(r *spec.ContainerResult, why string) {
	exit(r, exitTerminated)
	r.Message += ": " + why
}

// mainName is the name of the container whose standard output is the task's result; empty where there is none.
func mainName(task spec.Spec) string {
	if len(task.Containers) == 1 {
		return task.Containers[0].Name
	}
	for _, c := range task.Containers {
		if c.Name == mainContainer {
			return c.Name
		}
	}
	return ""
}
