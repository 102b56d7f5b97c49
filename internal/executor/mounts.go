package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// placeMounts puts folders of the host at paths of the task. Without a sandbox that is a symbolic link, and only where
// nothing lies already; the link is taken away again when the task has ended.
func (j *job) placeMounts() {
	if j.task.Sandbox != nil {
		return // bound when the view was built
	}
	for _, m := range j.task.Mounts {
		err := os.MkdirAll(filepath.Dir(m.Path), 0o777)
		if err == nil {
			err = os.Symlink(m.From, m.Path)
		}
		switch {
		case err == nil:
			j.links = append(j.links, m.Path)
		case errors.Is(err, fs.ErrExist) && sameFile(m.From, m.Path):
		case errors.Is(err, fs.ErrExist):
			j.warnings = append(j.warnings, fmt.Sprintf("%s exists on this machine and is used as it is: without a sandbox a volume cannot be mounted over it", m.Path))
		default:
			j.warnings = append(j.warnings, fmt.Sprintf("volume at %s: %v", m.Path, err))
		}
	}
}

// removeLinks takes away the links of placeMounts.
func (j *job) removeLinks() {
	for _, link := range j.links {
		if err := os.Remove(link); err != nil {
			j.warnings = append(j.warnings, fmt.Sprintf("take away the link for a volume: %v", err))
		}
	}
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
