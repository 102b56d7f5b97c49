// Package cli is the command line: one file a command. It is the only place that reads flags and the environment, and
// the one that puts the parts together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sluice-ml/sluice/internal/store/sqlite"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the run, or what was asked, failed
	exitUsage  = 2 // bad input: a manifest, a flag, a name
)

// Process is what the program gets from the operating system.
type Process struct {
	Version        string
	Args           []string // without the program's name
	Program        string   // the path of the running binary
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Env            func(string) string
	Environ        func() []string
	// Interrupts gives a signal for each Ctrl-C or request to end; stop ends that.
	Interrupts func() (signals <-chan os.Signal, stop func())
}

// System is the real process.
func System(version string) Process {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return Process{
		Version: version, Args: os.Args[1:], Program: program,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Env: os.Getenv, Environ: os.Environ,
		Interrupts: func() (<-chan os.Signal, func()) {
			c := make(chan os.Signal, 4)
			for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
				if !signal.Ignored(s) { // nohup means it
					signal.Notify(c, s)
				}
			}
			return c, func() { signal.Stop(c) }
		},
	}
}

// Main runs the program and gives its exit code.
func Main(p Process) int {
	a := &app{Process: p, logs: &logSink{w: p.Stderr}}
	root := a.root()
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(context.Background())
	if e := a.close(); e != nil && err == nil {
		err = e
	}
	return a.report(err)
}

// app is the program while a command runs.
type app struct {
	Process
	home     string
	homeFrom string // who said so
	logLevel string
	colour   colourMode
	noColour bool
	log      *slog.Logger
	logs     *logSink
	closers  []func() error
	begun    bool // a command has been found and its arguments are in order
	store    *sqlite.Store
}

// later has something done at the end, in reverse order.
func (a *app) later(f func() error) { a.closers = append(a.closers, f) }

func (a *app) close() error {
	var err error
	for _, closer := range slices.Backward(a.closers) {
		err = errors.Join(err, closer())
	}
	a.closers = nil
	return err
}

// usageError is a mistake of who called: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usage makes an error of the caller's.
func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// failure is an exit code 1 whose reason has been told already.
type failure struct{ err error }

func (e failure) Error() string { return e.err.Error() }
func (e failure) Unwrap() error { return e.err }

var errReported = errors.New("the run did not succeed")

// report prints an error and gives the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return exitOK
	}
	if _, told := errors.AsType[failure](err); told {
		return exitFailed
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.paint(red, "error:"), err)
	if sqlite.Damaged(err) {
		fmt.Fprintf(a.Stderr, "the database %s is damaged: restore a copy or move it away to begin anew, or give another home folder with --home or SLUICE_HOME\n", a.folder("sluice.db"))
	}
	if _, bad := errors.AsType[usageError](err); bad || !a.begun {
		return exitUsage
	}
	return exitFailed
}

// folder is a place under the home folder.
func (a *app) folder(parts ...string) string {
	return filepath.Join(append([]string{a.home}, parts...)...)
}

// findHome settles where everything local lives: --home, $SLUICE_HOME, the user's data folder.
func (a *app) findHome() error {
	home := a.home
	a.homeFrom = "--home"
	if home == "" {
		home, a.homeFrom = a.Env("SLUICE_HOME"), "SLUICE_HOME"
	}
	if home == "" {
		a.homeFrom = "the default"
		if data := a.Env("XDG_DATA_HOME"); data != "" {
			home = filepath.Join(data, "sluice")
		} else if user := a.Env("HOME"); user != "" {
			home = filepath.Join(user, ".local", "share", "sluice")
		} else {
			return usage("there is no home folder: set SLUICE_HOME to where runs are to be kept")
		}
	}
	abs, err := filepath.Abs(home)
	if err != nil {
		return usage("home folder %s: %w", home, err)
	}
	a.home = abs
	return nil
}

// exactly and the like are cobra's argument checks with errors of the caller's.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s takes %s; see sluice %s --help", c.Name(), what, c.Name())
		}
		return nil
	}
}

func atLeastOne(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s takes %s; see sluice %s --help", c.Name(), what, c.Name())
		}
		return nil
	}
}
