package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// The containers of a pod see how far each other is by marks, files in a folder that they share: <container>.alive is there,
// and locked, while its executor lives, and <container> holds the exit code once the container has ended.
const (
	marksFolder = "marks"
	aliveMark   = ".alive"
	// markInterval is how often marks are looked at: nothing tells of files on every kind of volume and runtime.
	markInterval = 50 * time.Millisecond
)

// markAlive says to the others that this container's executor lives; done that it has ended, with which exit code.
// The kernel takes the lock away from an executor that dies.
func (p *pod) markAlive() (done func(code int) error, err error) {
	if len(p.spec.Containers) <= 1 && !p.spec.Sidecar && len(p.spec.Await) == 0 {
		return func(int) error { return nil }, nil // nobody looks
	}
	if err := p.makeShared(marksFolder); err != nil {
		return nil, err
	}
	name := filepath.Join(p.places.Folder, marksFolder, p.name)
	// A mark from before a restart would speak for this container, too soon.
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("mark that the container lives: %w", err)
	}
	// Under its name only when locked, so that nobody sees it without its lock.
	f, err := os.OpenFile(name+".next", os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	}
	if err == nil {
		err = os.Rename(name+".next", name+aliveMark)
	}
	if err != nil {
		return nil, fmt.Errorf("mark that the container lives: %w", err)
	}
	return func(code int) error {
		defer f.Close()
		err := os.WriteFile(name+".next", []byte(strconv.Itoa(code)), 0o644)
		if err == nil {
			err = errors.Join(os.Chmod(name+".next", 0o644), os.Rename(name+".next", name))
		}
		if err != nil {
			return fmt.Errorf("mark that the container has ended: %w", err)
		}
		return nil
	}, nil
}

// ended says whether a container of the pod has ended, and how. One whose executor was killed counts as killed.
func (p *pod) ended(container string) (code int, ended bool) {
	name := filepath.Join(p.places.Folder, marksFolder, container)
	lost := lostLock(name + aliveMark) // before the mark is looked for, which is made while the lock is held
	if text, err := os.ReadFile(name); err == nil {
		if code, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return code, true
		}
	}
	return exitKilled, lost
}

// lostLock says whether a file is there that nobody holds the lock of.
func lostLock(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}

// await waits for the containers that this one needs. It gives a reason where its command must not start.
func (p *pod) await() (why string, stopped bool) {
	waiting := slices.Clone(p.spec.Await)
	ticks := time.NewTicker(markInterval)
	defer ticks.Stop()
	for {
		for i := 0; i < len(waiting); {
			code, ended := p.ended(waiting[i])
			switch {
			case !ended:
				i++
			case code != 0:
				return fmt.Sprintf("it needs container %s, which ended with exit code %d", waiting[i], code), false
			default:
				waiting = slices.Delete(waiting, i, i+1)
			}
		}
		if len(waiting) == 0 {
			return "", false
		}
		select {
		case <-ticks.C:
		case s := <-p.signals:
			if slices.Contains(endingSignals(), s) {
				return fmt.Sprintf("it was stopped (%s) while it waited for container %s", s, strings.Join(waiting, ", ")), true
			}
		}
	}
}

// notStarted is the result of a container that never ran its command.
func (p *pod) notStarted(why string, stopped bool) spec.Result {
	c := spec.ContainerResult{Name: p.name}
	notStarted(&c, why)
	result := ending{Stopped: stopped, Containers: []spec.ContainerResult{c}}.result(p.spec.Task)
	result.Finished = c.Finished
	return result
}

// endWithOthers ends the command of a sidecar once every container that is none has ended.
func (p *pod) endWithOthers() (stop func()) {
	done := make(chan struct{})
	go func() {
		ticks := time.NewTicker(markInterval)
		defer ticks.Stop()
		for !p.othersEnded() {
			select {
			case <-ticks.C:
			case <-done:
				return
			}
		}
		select {
		case p.signals <- needless{}:
		case <-done:
		}
	}()
	return func() { close(done) }
}

func (p *pod) othersEnded() bool {
	for _, name := range p.spec.Containers {
		if _, ended := p.ended(name); !ended {
			return false
		}
	}
	return true
}
