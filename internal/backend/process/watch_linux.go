package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// process is an executor, held by a file descriptor that means this process only, whatever becomes of its number.
type process struct {
	fd    int
	child bool
	pid   int
	ended chan struct{}

	mu     sync.Mutex
	closed bool
}

func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	err := unix.PidfdSendSignal(p.fd, s, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil // it has ended
	}
	return err
}

// close lets go of the process, and takes note of the end of a child so that it does not stay as a zombie.
func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	_ = unix.Close(p.fd)
}

// reap takes the end of a child.
func (p *process) reap() {
	if !p.child {
		return
	}
	for {
		_, err := syscall.Wait4(p.pid, nil, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// watcher waits for the end of any number of processes in one thread.
type watcher struct {
	epoll, wake int

	mu    sync.Mutex
	procs map[int32]*process
	done  chan struct{}
}

func newWatcher() (*watcher, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("eventfd: %w", err), unix.Close(epoll))
	}
	w := &watcher{epoll: epoll, wake: wake, procs: map[int32]*process{}, done: make(chan struct{})}
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(epoll), unix.Close(wake))
	}
	go w.run()
	return w, nil
}

func (w *watcher) run() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // closed
		}
		for _, e := range events[:n] {
			if int(e.Fd) == w.wake {
				return
			}
			w.mu.Lock()
			p := w.procs[e.Fd]
			delete(w.procs, e.Fd)
			w.mu.Unlock()
			if p == nil {
				continue
			}
			_ = unix.EpollCtl(w.epoll, unix.EPOLL_CTL_DEL, p.fd, nil)
			p.reap()
			p.close()
			close(p.ended)
		}
	}
}

// add starts watching a process.
func (w *watcher) add(p *process) error {
	p.ended = make(chan struct{})
	w.mu.Lock()
	w.procs[int32(p.fd)] = p
	w.mu.Unlock()
	err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, p.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(p.fd)})
	if err != nil {
		w.mu.Lock()
		delete(w.procs, int32(p.fd))
		w.mu.Unlock()
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// wait waits for a process to end, or for the context.
func (w *watcher) wait(ctx context.Context, p *process) error {
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close stops watching. Processes run on; children that end later are zombies until this program ends.
func (w *watcher) close() error {
	if _, err := unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}); err != nil {
		return fmt.Errorf("end the watcher: %w", err)
	}
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		p.close()
	}
	return errors.Join(unix.Close(w.epoll), unix.Close(w.wake))
}

// adopt takes up the living executor of a task folder; nil where there is none.
func (w *watcher) adopt(folder string) *process {
	data, err := os.ReadFile(filepath.Join(folder, spec.StateFile))
	if err != nil {
		return nil
	}
	id := spec.ParseState(string(data)).Executor
	if id.PID == 0 || id.Boot != spec.Boot() {
		return nil
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return nil
	}
	// The number may have been given to another process; the descriptor was opened before this look, so if it is the
	// right one now it was then.
	now, err := spec.StartTime(strconv.Itoa(id.PID))
	p := &process{fd: fd, pid: id.PID}
	if err != nil || now.Start != id.Start {
		p.close()
		return nil
	}
	if err := w.add(p); err != nil {
		p.close()
		return nil
	}
	return p
}
