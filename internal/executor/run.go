// Package executor is the small program that wraps a task's commands where they run: it brings the inputs to their
// paths, runs the commands as its children, forwards signals, takes the outputs and leaves a result file. What it has to
// do is in a task folder, see the package spec; it knows neither engine nor cluster.
//
// It outlives the backend that started it. However often it is started on a folder, one at a time works on it (a file
// lock), a command that has exited is not run again, and one whose end nobody knows is reported as lost.
package executor

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Host is what an executor is given by the program that it is.
type Host struct {
	// Environ is the environment that containers inherit which ask for it.
	Environ []string
	// Parse reads executor output files; nil where no task has one.
	Parse ParseOutput
	// Places say where things lie in a pod.
	Places Places
}

// Run does what the task folder asks for and leaves its result there. An error means that there is no result.
func Run(folder string, host Host) error {
	// Children ask to die with the thread that started them, so that thread must live as long as this process does.
	runtime.LockOSThread()
	signals := catchSignals(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	// Read before a new /proc covers the host's: the pid that others know this process by.
	self, selfErr := spec.StartTime("self")
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open the task folder: %w", err)
	}
	defer dir.Close()
	state, err := lock(dir)
	if err != nil {
		return err
	}
	defer state.Close()
	if _, err := dir.Stat(spec.ResultFile); err == nil {
		return nil
	}
	task, err := spec.Read[spec.Spec](dir, spec.SpecFile)
	if err != nil {
		return err
	}
	inherit(&task, host.Environ)
	users, err := lookUsers(task)
	if err != nil {
		return spec.Write(dir, spec.ResultFile, broken(err.Error(), false))
	}
	before, err := readState(state)
	if err != nil {
		return err
	}
	j := &job{dir: dir, task: task, state: state, signals: signals, parse: host.Parse, users: users}
	if self.Boot = task.Boot; selfErr == nil && !task.Launched && self != before.Executor {
		if err := j.step(spec.ExecutorLine(self)); err != nil {
			return err
		}
	}
	result := j.attempt(before)
	if err := j.handBack(folder); err != nil {
		result.Warnings = append(result.Warnings, err.Error())
	}
	return spec.Write(dir, spec.ResultFile, result)
}

// inherit adds to containers that ask for it the environment that they have not set themselves.
func inherit(task *spec.Spec, environ []string) {
	for i, c := range task.Containers {
		if !c.Inherit {
			continue
		}
		for _, v := range environ {
			name, _, _ := strings.Cut(v, "=")
			if !slices.ContainsFunc(c.Env, func(own string) bool { return strings.HasPrefix(own, name+"=") }) {
				task.Containers[i].Env = append(task.Containers[i].Env, v)
			}
		}
	}
}

// attempt goes on where an earlier executor of the folder stopped, which is nearly always at the start.
func (j *job) attempt(before spec.State) spec.Result {
	if len(j.task.Containers) == 0 {
		return j.probe()
	}
	switch {
	case before.Started.IsZero():
		return j.fresh()
	case before.Done:
		return j.again(before)
	}
	result := broken("the task was lost: its executor died while the command was running, and how the command ended is not known", true)
	result.Started = before.Started
	return result
}

// probe only enters the view: it shows whether that is possible here.
func (j *job) probe() spec.Result {
	if err := j.enter(); err != nil {
		return broken(err.Error(), false)
	}
	return spec.Result{Phase: spec.Succeeded, Warnings: j.warnings, Finished: time.Now().UTC()}
}

// broken is the result of a task around which something broke.
func broken(message string, ran bool) spec.Result {
	return spec.Result{Phase: spec.Error, Message: message, Ran: ran, Finished: time.Now().UTC()}
}
