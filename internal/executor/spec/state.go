package spec

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is what the steps of earlier executors of a task folder tell: it decides what a new one may still do.
type State struct {
	// Started says that a command was about to be started, at a time.
	Started time.Time
	// Exited are the containers whose command has ended, with the exit code.
	Exited map[string]int
	// Done says that all commands have ended and that all they printed is written.
	Done bool
	// Stopped and TimedOut say why they ended, see [Result].
	Stopped, TimedOut bool
}

// The lines of a state file. Each is written with one write call, so a line is there in full or not at all.
func StartedLine(at time.Time) string { return "started " + at.UTC().Format(time.RFC3339Nano) + "\n" }

// ExitedLine records the end of a container's command.
func ExitedLine(container string, code int) string {
	return fmt.Sprintf("exited %d %s\n", code, container)
}

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

// String is the form of a pid file.
func (p Process) String() string { return fmt.Sprintf("%d %d %s\n", p.PID, p.Start, p.Boot) }

// ParseProcess reads a pid file.
func ParseProcess(text string) (Process, error) {
	var p Process
	if n, err := fmt.Sscanf(text, "%d %d %s\n", &p.PID, &p.Start, &p.Boot); err != nil {
		return Process{}, fmt.Errorf("pid file: %d of 3 fields in %q: %w", n, text, err)
	}
	return p, nil
}
