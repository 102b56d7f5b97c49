// Package executor is the small program that wraps a task's commands where they run: it brings the inputs to their
// paths, runs the commands as its children, forwards signals, takes the outputs and leaves a result file. What it has to
// do is in a task folder, see the package spec; it knows neither engine nor cluster.
//
// It outlives the backend that started it. However often it is started on a folder, one at a time works on it (a file
// lock), a command that has exited is not run again, and one whose end nobody knows is reported as lost.
package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Run does what the task folder asks for and leaves its result there. An error means that there is no result. parse may
// be nil where no task has an executor output file.
func Run(folder string, parse ParseOutput) error {
	// Children ask to die with the thread that started them, so that thread must live as long as this process does.
	runtime.LockOSThread()
	signals := catchSignals()
	// Read before a new /proc covers the host's: the pid that others know this process by.
	self, selfErr := spec.StartTime("self")
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open the task folder: %w", err)
	}
	defer dir.Close()
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := dir.Stat(spec.ResultFile); err == nil {
		return nil
	}
	task, err := spec.Read[spec.Spec](dir, spec.SpecFile)
	if err != nil {
		return err
	}
	if selfErr == nil {
		self.Boot = task.Boot
		if err := dir.WriteFile(spec.PIDFile, []byte(self.String()), 0o600); err != nil {
			return fmt.Errorf("write the pid file: %w", err)
		}
	}
	result, err := attempt(&job{dir: dir, task: task, signals: signals, parse: parse})
	if err != nil {
		return err
	}
	return spec.Write(dir, spec.ResultFile, result)
}

// attempt goes on where an earlier executor of the folder stopped, which is nearly always at the start.
func attempt(j *job) (spec.Result, error) {
	before, err := readState(j.dir)
	if err != nil {
		return spec.Result{}, err
	}
	state, err := j.dir.OpenFile(spec.StateFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return spec.Result{}, fmt.Errorf("open the state file: %w", err)
	}
	defer state.Close()
	j.state = state
	if len(j.task.Containers) == 0 {
		return j.probe(), nil
	}
	switch {
	case before.Started.IsZero():
		return j.fresh(), nil
	case before.Done:
		return j.again(before), nil
	}
	result := broken("the task was lost: its executor died while the command was running, and how the command ended is not known", true)
	result.Started = before.Started
	return result, nil
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

func readState(dir *os.Root) (spec.State, error) {
	data, err := dir.ReadFile(spec.StateFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return spec.State{}, fmt.Errorf("read the state file: %w", err)
	}
	return spec.ParseState(string(data)), nil
}
