// Package sluicerun starts the sluice program for whole-program tests, as a person would: its own home folder, a time limit, and
// nothing left behind.
package sluicerun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Program is a sluice binary with an environment of its own.
type Program struct {
	// Binary is the absolute path of the program.
	Binary string
	// Home is the SLUICE_HOME of every call; it must exist.
	Home string
	// Path are folders to have first on PATH.
	Path []string
	// Env are further variables, "NAME=value".
	Env []string
	// Dir is the working directory; empty is Home.
	Dir string
}

// Output is what a call printed and how it ended.
type Output struct {
	Stdout, Stderr []byte
	// Exit is the exit code, or -1 where a signal ended it.
	Exit     int
	TimedOut bool
	Took     time.Duration
}

// Panicked says whether the program crashed.
func (o Output) Panicked() bool {
	return bytes.Contains(o.Stderr, []byte("\ngoroutine ")) || bytes.HasPrefix(o.Stderr, []byte("panic: "))
}

// Last gives the last lines of standard error, for reasons.
func (o Output) Last(lines int) string {
	all := strings.Split(strings.TrimSpace(string(o.Stderr)), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}

// Command prepares a call. It runs in a process group of its own, and is interrupted, then killed, when ctx ends.
func (p Program) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Binary, args...)
	cmd.Dir = p.Dir
	if cmd.Dir == "" {
		cmd.Dir = p.Home
	}
	path := strings.Join(append(append([]string{}, p.Path...), os.Getenv("PATH")), string(os.PathListSeparator))
	cmd.Env = append(os.Environ(), "SLUICE_HOME="+p.Home, "PATH="+path, "NO_COLOR=1")
	cmd.Env = append(cmd.Env, p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// Run calls the program and waits, at most for the limit.
func (p Program) Run(ctx context.Context, limit time.Duration, args ...string) (Output, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := p.Command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	started := time.Now()
	err := cmd.Run()
	o := Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Took: time.Since(started), TimedOut: ctx.Err() != nil}
	var exit *exec.ExitError
	switch {
	case err == nil, errors.As(err, &exit), o.TimedOut:
	default:
		return o, fmt.Errorf("start %s: %w", p.Binary, err)
	}
	if cmd.ProcessState != nil {
		o.Exit = cmd.ProcessState.ExitCode()
	}
	if o.TimedOut {
		p.KillRest()
	}
	return o, nil
}

// Rest lists the processes that still run with this program's home in their environment: what a call left behind.
// It finds none where there is no /proc.
func (p Program) Rest() []int {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var found []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, text...), []byte("\x00SLUICE_HOME="+p.Home+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// KillRest ends what Rest finds.
func (p Program) KillRest() {
	for _, pid := range p.Rest() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
