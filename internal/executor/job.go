package executor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// job is one task in the hands of one executor.
type job struct {
	dir     *os.Root
	task    spec.Spec
	state   *os.File
	signals chan os.Signal
	parse   ParseOutput
	groups  *groups
	users   map[string]*account // by container, of those that run as someone else than this process
	pod     *pod                // nil outside of a pod

	warnings []string
	links    []string // made for mounts, to be taken away
}

// fresh runs a task from its start to its end.
func (j *job) fresh() spec.Result {
	sources, err := openSources(j.dir, j.task, j.pod)
	if err != nil {
		return broken(err.Error(), false)
	}
	defer sources.close()
	logs, err := openLogs(j.dir, j.task, j.pod.streams())
	if err != nil {
		return broken(err.Error(), false)
	}
	defer logs.close()
	if j.groups, err = openGroups(j.task.Groups); err != nil {
		return broken(err.Error(), false)
	}
	defer j.groups.close()
	if j.task.Launched {
		j.groups.shareOwn(j.task.Containers)
	}
	if err := j.enter(); err != nil {
		return broken(err.Error(), false)
	}
	j.placeMounts()
	for _, folder := range j.task.Folders {
		if err := j.owner().makeFolder(folder); err != nil {
			return broken(fmt.Sprintf("make folder for the task: %v", err), false)
		}
	}
	if err := sources.place(j.owner()); j.pod.stoppedEarly() {
		return j.pod.notStarted("it was stopped while its inputs were fetched", true)
	} else if err != nil {
		return broken(err.Error(), false)
	}
	end := j.runContainers(logs)
	result := end.result(j.task)
	if end.Ran {
		j.collect(&result)
	}
	j.removeLinks()
	result.Finished = time.Now().UTC()
	result.Warnings = j.warnings
	return result
}

// again takes the outputs of a task whose commands had ended when its executor died.
func (j *job) again(before spec.State) spec.Result {
	end := ending{Ran: true, Started: before.Started, Stopped: before.Stopped, TimedOut: before.TimedOut, Stdout: before.Stdout}
	for _, c := range j.task.Containers {
		r := spec.ContainerResult{Name: c.Name, Started: before.Started}
		if code, exited := before.Exited[c.Name]; exited {
			exit(&r, code)
		} else {
			notStarted(&r, "it was not started")
		}
		end.Containers = append(end.Containers, r)
	}
	if err := j.enter(); err != nil {
		return broken(err.Error(), true)
	}
	j.placeMounts()
	result := end.result(j.task)
	j.collect(&result)
	j.removeLinks()
	result.Finished = time.Now().UTC()
	result.Warnings = append(j.warnings, "an earlier executor died before it had taken the outputs")
	return result
}

// enter goes into the task's private view of the machine, where it has one.
func (j *job) enter() error {
	if j.task.Sandbox == nil {
		return adoptOrphans()
	}
	warnings, err := enterView(j.task)
	j.warnings = append(j.warnings, warnings...)
	return err
}

// step records a step of the task. It is written before what it tells of is acted on.
func (j *job) step(line string) error {
	if _, err := j.state.WriteString(line); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}

// stopAsked says whether the task was to end before its commands began, and how.
func (j *job) stopAsked() os.Signal {
	select {
	case s := <-j.signals:
		return s
	default:
	}
	how, err := j.dir.ReadFile(spec.StopFile)
	if err != nil { // nobody asked
		return nil
	}
	return stopSignal(string(how))
}

// stopSignal is the signal that means the same as a word of the stop file.
func stopSignal(word string) os.Signal {
	if strings.TrimSpace(word) == spec.StopForce {
		return syscall.SIGQUIT
	}
	return syscall.SIGTERM
}

// listen takes words from the stop pipe as if they were signals, until it is told to stop.
func (j *job) listen() (stop func(), err error) {
	// For reading and writing, so that there is always a writer and no end.
	pipe, err := j.dir.OpenFile(spec.StopPipe, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the stop pipe: %w", err)
	}
	go func() {
		for words := bufio.NewScanner(pipe); words.Scan(); {
			j.signals <- stopSignal(words.Text())
		}
	}()
	return func() { _ = pipe.Close() }, nil
}
