package executor

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// drainTime is how long to wait for output of processes that could not be ended.
const drainTime = 2 * time.Second

// streams are where a program's output goes.
type streams struct{ out, errs *os.File }

// logs are the files that the commands write to. Where one file takes all of it the commands write to it themselves;
// only what must go to two places passes through this process.
type logs struct {
	dir    *os.Root
	null   *os.File
	out    *os.File    // takes standard output
	errs   *os.File    // takes standard error; mostly the same
	main   string      // the container whose standard output is kept; empty for none
	each   bool        // each container has a log of its own, too
	stdout *tailBuffer // the end of that output
	open   []io.Closer
	pipes  []*os.File // reading ends
	ours   []*os.File // their writing ends, in this process
	done   []chan struct{}
}

// openLogs opens the files for the commands' output: those that are given, else the log of the task folder for both.
func openLogs(dir *os.Root, task spec.Spec, given *streams) (*logs, error) {
	l := &logs{dir: dir, each: len(task.Containers) > 1}
	var err error
	if l.null, err = os.Open(os.DevNull); err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	if given != nil {
		l.out, l.errs = given.out, given.errs
	} else if l.out, err = l.file(spec.LogFile); err != nil {
		return nil, err
	} else {
		l.errs = l.out
	}
	if task.Result {
		l.main = mainName(task)
	}
	l.stdout = &tailBuffer{limit: spec.MaxResult + 1} // one more for a newline that is taken off
	return l, nil
}

// file opens a file of the task folder for appending, so that writers do not overwrite each other.
func (l *logs) file(name string) (*os.File, error) {
	f, err := l.dir.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	l.open = append(l.open, f)
	return f, nil
}

// streams gives standard output and standard error for a container's command.
func (l *logs) streams(container string) (out, errs *os.File, err error) {
	outTargets, errTargets := []io.Writer{l.out}, []io.Writer{l.errs}
	if l.each {
		own, err := l.file(container + ".log")
		if err != nil {
			return nil, nil, err
		}
		outTargets, errTargets = append(outTargets, own), append(errTargets, own)
	}
	kept := container == l.main
	if kept {
		outTargets = append(outTargets, l.stdout)
	}
	if out, err = l.split(outTargets); err != nil {
		return nil, nil, err
	}
	if !kept && l.out == l.errs {
		return out, out, nil
	}
	errs, err = l.split(errTargets)
	return out, errs, err
}

// split gives a file that writes to all targets.
func (l *logs) split(targets []io.Writer) (*os.File, error) {
	if f, ok := targets[0].(*os.File); ok && len(targets) == 1 {
		return f, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	done := make(chan struct{})
	l.pipes = append(l.pipes, r)
	l.done = append(l.done, done)
	l.ours = append(l.ours, w)
	go func() {
		defer close(done)
		// A full disk must not block the command: what cannot be written is dropped.
		_, _ = io.Copy(&lossy{targets: targets}, r)
		_ = r.Close()
	}()
	return w, nil
}

// lossy writes to several targets and goes on where one fails.
type lossy struct{ targets []io.Writer }

func (w *lossy) Write(p []byte) (int, error) {
	for _, t := range w.targets {
		_, _ = t.Write(p)
	}
	return len(p), nil
}

// drain waits for the last output. All writers have ended, so this is soon; it gives up on what it could not end.
func (l *logs) drain() {
	for _, w := range l.ours {
		_ = w.Close()
	}
	for i, r := range l.pipes {
		_ = r.SetReadDeadline(time.Now().Add(drainTime))
		<-l.done[i]
	}
	for _, c := range l.open { // only now: the copiers write to these
		_ = c.Close()
	}
	l.open, l.ours, l.pipes, l.done = nil, nil, nil, nil
}

func (l *logs) close() {
	l.drain()
	_ = l.null.Close()
}

// result is the end of the main container's standard output without a last newline, where it is kept. Only after drain.
func (l *logs) result() (text string, kept bool) {
	if l.main == "" {
		return "", false
	}
	data := l.stdout.bytes()
	if n := len(data); n > 0 && data[n-1] == '\n' {
		data = data[:n-1]
	}
	return string(data[max(0, len(data)-spec.MaxResult):]), true
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	limit int
	data  []byte
}

func (b *tailBuffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	if len(b.data) > 2*b.limit {
		b.data = append(b.data[:0], b.bytes()...)
	}
	return len(p), nil
}

func (b *tailBuffer) bytes() []byte { return b.data[max(0, len(b.data)-b.limit):] }
