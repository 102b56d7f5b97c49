package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// lock opens the state file and waits until this process is the only executor of the task folder. The lock ends with the
// process, however it ends.
func lock(dir *os.Root) (*os.File, error) {
	f, err := dir.OpenFile(spec.StateFile, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the task folder: %w", err), f.Close())
	}
	return f, nil
}

func readState(f *os.File) (spec.State, error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return spec.State{}, fmt.Errorf("read the state file: %w", err)
	}
	return spec.ParseState(string(text)), nil
}
