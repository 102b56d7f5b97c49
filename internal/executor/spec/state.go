package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is what the steps of earlier executors of a task folder tell: it decides what a new one may still do.
type State struct {
	// Executor is the last one that took the folder up, or was started for it.
	Executor Process
	// Started says that a command was about to be started, at a time.
	Started time.Time
	// Exited are the containers whose command has ended, with the exit code.
	Exited map[string]int
	// Done says that all commands have ended and that all they printed is written.
	Done bool
	// Stdout is the end of the main container's standard output, where it is kept.
	Stdout *string
	// Stopped and TimedOut say why they ended, see [Result].
	Stopped, TimedOut bool
}

// ExecutorLine records that an executor takes the folder up. Like every line of a state file it is written with one write
// call, so that it is there in full or not at all.
func ExecutorLine(p Process) string {
	return fmt.Sprintf("executor %d %d %s\n", p.PID, p.Start, p.Boot)
}

// StartedLine records that a command is about to be started.
func StartedLine(at time.Time) string { return "started " + at.UTC().Format(time.RFC3339Nano) + "\n" }

// ExitedLine records the end of a container's command.
func ExitedLine(container string, code int) string {
	return fmt.Sprintf("exited %d %s\n", code, container)
}

// StdoutLine records the end of standard output.
func StdoutLine(text string) string { return "stdout " + strconv.Quote(text) + "\n" }

// DoneLine records that all commands have ended.
func DoneLine(stopped, timedOut bool) string {
	line := "done"
	if stopped {
		line += " stopped"
	}
	if timedOut {
		line += " timed-out"
	}
	return line + "\n"
}

// ParseState reads a state file. A last line that is cut off is left out.
func ParseState(text string) State {
	state := State{Exited: map[string]int{}}
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "executor":
			var p Process
			if _, err := fmt.Sscanf(rest, "%d %d %s", &p.PID, &p.Start, &p.Boot); err == nil {
				state.Executor = p
			}
		case "stdout":
			if text, err := strconv.Unquote(rest); err == nil {
				state.Stdout = &text
			}
		case "started":
			if at, err := time.Parse(time.RFC3339Nano, rest); err == nil {
				state.Started = at
			}
		case "exited":
			number, name, _ := strings.Cut(rest, " ")
			if code, err := strconv.Atoi(number); err == nil {
				state.Exited[name] = code
			}
		case "done":
			state.Done = true
			state.Stopped = strings.Contains(rest, "stopped")
			state.TimedOut = strings.Contains(rest, "timed-out")
		}
	}
	return state
}

// Process identifies a process beyond the reuse of its number.
type Process struct {
	PID int
	// Start is its start time in clock ticks since the boot, as /proc has it.
	Start uint64
	Boot  string
}
