package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// spawn starts the attempt's executor and watches it.
func (a *attempt) spawn() (*process, error) {
	argv, err := a.executor()
	if err != nil {
		return nil, err
	}
	return a.watch(argv)
}

// watch starts the process that runs the executor, or waits for it, and watches it.
func (a *attempt) watch(argv []string) (*process, error) {
	p, err := startExecutor(argv, a.environ(), a.folder, a.b.view)
	if err != nil {
		return nil, err
	}
	// The executor does so, too, but not before it is up: whoever comes after us must find it from now on.
	if id, err := spec.StartTime(strconv.Itoa(p.pid)); err == nil {
		id.Boot = a.b.boot
		if err := a.record(id); err != nil {
			return nil, errors.Join(err, p.signal(syscall.SIGKILL))
		}
	}
	if err := a.b.watch.add(p); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// startExecutor starts an executor in a session of its own, so that what ends this program does not end it.
func startExecutor(argv, env []string, folder string, view *sandbox) (*process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	said, err := os.OpenFile(filepath.Join(folder, spec.LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	fd := -1
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: &fd}
	if view != nil {
		if err := os.MkdirAll(filepath.Join(folder, upperFolder), 0o755); err != nil {
			return nil, err
		}
		view.attributes(attr)
	}
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: env, Files: []uintptr{null.Fd(), null.Fd(), said.Fd()}, Sys: attr,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	p := &process{fd: fd, pid: pid, child: true}
	if fd < 0 {
		// Without a descriptor nothing can wait for it as it must.
		return nil, errors.Join(errors.New("this kernel has no process descriptors: Linux 5.4 or newer is needed"), syscall.Kill(pid, syscall.SIGKILL))
	}
	return p, nil
}
