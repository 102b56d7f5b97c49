//go:build !linux

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Without Linux there is no sandbox, there are no cgroups, and a process is known by its number alone. The executor's
// lock on its folder says whether it lives.

type sandbox struct{ root bool }

func openSandbox(cfg Config) (*sandbox, error) {
	const why = "only Linux has one"
	switch cfg.Sandbox {
	case On:
		return nil, errors.New("process backend: this machine allows no sandbox: " + why)
	case Auto:
		cfg.Log.Warn("tasks run without a sandbox: they see and change this machine's own files", "reason", why)
	}
	return nil, nil
}

func (v *sandbox) describe(string, *spec.Spec) {}

func bootID() string { return spec.Boot() }

type cgroups struct{}

func openCgroups(log *slog.Logger) *cgroups {
	log.Warn("limits of containers are not enforced", "reason", "only Linux has cgroups")
	return nil
}

func (g *cgroups) remove(string, int) error { return nil }

func (a *attempt) limits(*spec.Spec) error { return nil }

// process is an executor; ended is closed when it has ended.
type process struct {
	pid   int
	ended chan struct{}
	mu    sync.Mutex
	gone  bool
}

func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return nil
	}
	err := syscall.Kill(p.pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (p *process) end() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	close(p.ended)
}

type watcher struct{}

func newWatcher() (*watcher, error) { return &watcher{}, nil }

func (w *watcher) close() error { return nil }

func (w *watcher) wait(ctx context.Context, p *process) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// adopt takes up the executor that holds the lock of a task folder; nil where none does.
func (w *watcher) adopt(folder string) *process {
	lock, err := os.OpenFile(filepath.Join(folder, spec.StateFile), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	data, err := io.ReadAll(lock)
	id := spec.ParseState(string(data)).Executor
	if err != nil || id.PID == 0 {
		_ = lock.Close()
		return nil
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		_ = lock.Close() // nobody holds it
		return nil
	}
	p := &process{pid: id.PID, ended: make(chan struct{})}
	go func() {
		defer lock.Close()
		for errors.Is(syscall.Flock(int(lock.Fd()), syscall.LOCK_SH), syscall.EINTR) {
			continue
		}
		p.end()
	}()
	return p
}

// spawn starts the attempt's executor in a session of its own.
func (a *attempt) spawn() (*process, error) {
	argv, err := a.executor()
	if err != nil {
		return nil, err
	}
	return a.watch(argv)
}

// watch starts the process that runs the executor, or waits for it, and watches it.
func (a *attempt) watch(argv []string) (*process, error) {
	said, err := os.OpenFile(filepath.Join(a.folder, spec.LogFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer said.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Dir: "/", Env: a.environ(), Files: []uintptr{null.Fd(), null.Fd(), said.Fd()},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	p := &process{pid: pid, ended: make(chan struct{})}
	go func() {
		for {
			if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
				p.end()
				return
			}
		}
	}()
	if err := a.record(spec.Process{PID: pid, Boot: spec.Boot()}); err != nil {
		return nil, errors.Join(err, p.signal(syscall.SIGKILL))
	}
	return p, nil
}
