//go:build !linux

package executor

import (
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// fork starts a command in a process group of its own.
func (j *job) fork(c spec.Container, program string, files [3]uintptr) (int, error) {
	return syscall.ForkExec(program, c.Argv, &syscall.ProcAttr{
		Dir: c.Dir, Env: c.Env, Files: files[:], Sys: &syscall.SysProcAttr{Setpgid: true, Credential: j.users[c.Name].credential()},
	})
}

// adoptOrphans does nothing: only Linux gives orphans to a process that asks for them.
func adoptOrphans() error { return nil }

// killAll does nothing here for the same reason; what stays in a container's process group has been ended with it.
func (r *reaper) killAll(bool) {}
