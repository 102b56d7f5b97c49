package executor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies this program to a path, where whoever looks sees all of it or nothing, and anyone may run it.
func Install(to string) error {
	self, err := os.Executable()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = copyProgram(self, to)
	}
	if err != nil {
		return fmt.Errorf("install the executor: %w", err)
	}
	return nil
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".install-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	// The mode is set apart from the creation, which the umask has a say in.
	err = errors.Join(err, out.Chmod(0o755), out.Close())
	if err == nil {
		err = os.Rename(out.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(out.Name()))
	}
	return nil
}
