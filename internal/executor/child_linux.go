package executor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// fork starts a command in a process group of its own. It is killed should this process die without ending it.
func (j *job) fork(c spec.Container, program string, files [3]uintptr) (int, error) {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Credential: j.users[c.Name].credential()}
	return j.groups.around(c.Name, attr, func() (int, error) {
		return syscall.ForkExec(program, c.Argv, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files[:], Sys: attr})
	})
}

// adoptOrphans makes this process the parent of whatever the task leaves running.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	return nil
}

// killAll ends what the commands left running, and takes note of it. As the first process of a pid namespace all others
// are the task's; else they are the children that this process has inherited.
func (r *reaper) killAll(namespace bool) {
	if namespace {
		_ = syscall.Kill(-1, syscall.SIGKILL) // an error is that nobody is left
		return
	}
	for hasChildren() {
		children := childrenOf(os.Getpid())
		if len(children) == 0 {
			return // the kernel does not tell
		}
		for _, pid := range children {
			// It may have ended by itself.
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		r.started()
		// Each dead child hands its own children to this process, so look again once one is gone.
		<-r.dead
	}
}

// hasChildren asks the kernel, without taking note of any child's end.
func hasChildren() bool {
	var info unix.Siginfo
	return !errors.Is(unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD)
}

// childrenOf gives the children of a process, of all its threads. Without the kernel's list of children there are none.
func childrenOf(pid int) []int {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var children []int
	for _, thread := range threads {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if err != nil {
			continue
		}
		for field := range strings.FieldsSeq(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}
