package executor

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// lock waits until this process is the only executor of the task folder. The lock ends with the process, however it
// ends.
func lock(dir *os.Root) (unlock func(), err error) {
	f, err := dir.OpenFile(spec.LockFile, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
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
	return func() { _ = f.Close() }, nil
}
