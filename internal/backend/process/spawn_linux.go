package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func (a *attempt) spawn() (*process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	said, err := os.OpenFile(filepath.Join(a.folder, errorFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	fd := -1
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: &fd}
	if a.b.view != nil {
		a.b.view.attributes(attr)
	}
	argv := append(append([]string{}, a.b.cfg.Executor...), a.folder)
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOGC=off", "GOMAXPROCS=2"}, Files: []uintptr{null.Fd(), null.Fd(), said.Fd()}, Sys: attr,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	p := &process{fd: fd, pid: pid, child: true}
	if fd < 0 {
		return nil, errors.New("this kernel has no process descriptors; Linux 5.4 is the oldest that will do")
	}
	if err := a.b.watch.add(p); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}
