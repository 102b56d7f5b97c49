package executor

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// catchSignals turns signals into messages.
func catchSignals(which ...os.Signal) chan os.Signal {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, which...)
	return signals
}

// dead is a child that ended.
type dead struct {
	pid, code int
	cpu       time.Duration
	memory    int64 // largest resident size, bytes
}

// reaper waits for every child of this process, also for the orphans of the task that it inherits. It blocks in wait
// and polls nothing.
type reaper struct {
	dead chan dead
	wake chan struct{}
}

func newReaper() *reaper {
	r := &reaper{dead: make(chan dead, 16), wake: make(chan struct{}, 1)}
	go r.run()
	return r
}

// started wakes the reaper up: there is a child to wait for.
func (r *reaper) started() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reaper) run() {
	for range r.wake {
		for {
			var status syscall.WaitStatus
			var usage syscall.Rusage
			pid, err := syscall.Wait4(-1, &status, 0, &usage)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil {
				break // no child is left
			}
			r.dead <- dead{pid: pid, code: exitCode(status), cpu: cpuTime(usage), memory: maxMemory(usage)}
		}
	}
}

func exitCode(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

func cpuTime(u syscall.Rusage) time.Duration {
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxMemory in bytes; Linux counts kilobytes, the BSDs bytes.
func maxMemory(u syscall.Rusage) int64 {
	if runtime.GOOS == "darwin" {
		return u.Maxrss
	}
	return u.Maxrss << 10
}

// lookPath finds a container's program in the PATH of its own environment.
func lookPath(c spec.Container) (string, error) {
	if len(c.Argv) == 0 {
		return "", errors.New("no command")
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, v := range c.Env {
		if rest, ok := strings.CutPrefix(v, "PATH="); ok {
			path = rest
		}
	}
	for _, folder := range filepath.SplitList(path) {
		if folder == "" {
			folder = "."
		}
		if !filepath.IsAbs(folder) {
			folder = filepath.Join(c.Dir, folder)
		}
		file := filepath.Join(folder, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("no program %q in PATH=%s", name, path)
}
