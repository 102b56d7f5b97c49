// Package filelock holds locks between processes. A lock is on an open file, so the kernel gives it back however its
// holder ends; what the holder wrote into the file tells others who it is.
package filelock

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// HeldError says that another process has the lock.
type HeldError struct {
	// Path is the lock's file, Holder what its holder wrote into it.
	Path, Holder string
}

func (e *HeldError) Error() string { return fmt.Sprintf("%s is locked by %s", e.Path, e.Holder) }

// Lock is a lock that is held.
type Lock struct{ f *os.File }

// Try takes the lock on the file at path, which is created where it is missing, and writes holder into it. A
// *HeldError says that another process, or another Lock of this one, has it.
func Try(path, holder string) (*Lock, error) {
	return take(path, holder, syscall.LOCK_EX|syscall.LOCK_NB)
}

// Wait is Try, but waits until the lock is free.
func Wait(path, holder string) (*Lock, error) { return take(path, holder, syscall.LOCK_EX) }

// Holder says who has the lock on the file at path; ok is false where nobody has, or the file is missing.
func Holder(path string) (holder string, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	if err := flock(f, syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return "", false
	}
	return read(f), true
}

func take(path, holder string, how int) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := flock(f, how); err != nil {
		held := &HeldError{Path: path, Holder: read(f)}
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, held
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := errors.Join(f.Truncate(0), write(f, holder)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &Lock{f}, nil
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func read(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 1024))
	if len(b) == 0 {
		return "an unknown process"
	}
	return string(b)
}

func write(f *os.File, holder string) error {
	_, err := f.WriteAt([]byte(holder), 0)
	return err
}

// Release gives the lock back. The file stays: to remove it would let two processes hold locks on two files of one name.
func (l *Lock) Release() error { return l.f.Close() }
