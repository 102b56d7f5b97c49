package executor

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// place is where files can be: the task's view of the machine, or a folder.
type place interface {
	Lstat(name string) (fs.FileInfo, error)
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Mkdir(name string, perm fs.FileMode) error
	MkdirAll(name string, perm fs.FileMode) error
	Symlink(target, name string) error
	Readlink(name string) (string, error)
	Chmod(name string, mode fs.FileMode) error
	RemoveAll(name string) error
}

// view is the machine as this process sees it: absolute paths.
type view struct{}

func (view) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }
func (view) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (view) Mkdir(name string, perm fs.FileMode) error    { return os.Mkdir(name, perm) }
func (view) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (view) Symlink(target, name string) error            { return os.Symlink(target, name) }
func (view) Readlink(name string) (string, error)         { return os.Readlink(name) }
func (view) Chmod(name string, mode fs.FileMode) error    { return os.Chmod(name, mode) }
func (view) RemoveAll(name string) error                  { return os.RemoveAll(name) }

// taskView is the view without what was placed in the folders that start out empty for a task, /tmp for one: programs on
// PATH and our own folder may lie there, and are no part of what the task gives as its output.
type taskView struct {
	view
	layers []string
}

// foreign says whether a path was placed, or is a folder that only leads to what was.
func (v taskView) foreign(name string) bool {
	if slices.Contains(v.layers, name) {
		return true
	}
	if !slices.ContainsFunc(v.layers, func(l string) bool { return strings.HasPrefix(l, name+"/") }) {
		return false
	}
	entries, err := os.ReadDir(name)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !v.foreign(path.Join(name, e.Name())) })
}

// copyTree copies a file or folder. Symbolic links below from stay links; what is no file, folder or link is left out
// and named. What lies at to is replaced, folders are merged.
func copyTree(src place, from string, dst place, to string) (left []string, err error) {
	info, err := src.Lstat(from)
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil, copyFile(src, from, dst, to, mode.Perm())
	case mode.IsDir():
		return copyFolder(src, from, dst, to, mode.Perm())
	case mode&fs.ModeSymlink != 0:
		target, err := src.Readlink(from)
		if err != nil {
			return nil, err
		}
		if err := dst.RemoveAll(to); err != nil {
			return nil, err
		}
		return nil, dst.Symlink(target, to)
	}
	return []string{from}, nil
}

func copyFile(src place, from string, dst place, to string, perm fs.FileMode) (err error) {
	in, err := src.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	if old, err := dst.Lstat(to); err == nil && !old.Mode().IsRegular() {
		if err := dst.RemoveAll(to); err != nil {
			return err
		}
	}
	out, err := dst.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in) // the kernel copies by itself where it can
	return errors.Join(err, out.Close())
}

func copyFolder(src place, from string, dst place, to string, perm fs.FileMode) (left []string, err error) {
	if old, err := dst.Lstat(to); err == nil && !old.IsDir() {
		if err := dst.RemoveAll(to); err != nil {
			return nil, err
		}
	}
	if err := dst.Mkdir(to, perm|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	folder, err := src.OpenFile(from, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(-1)
	if err := errors.Join(err, folder.Close()); err != nil {
		return nil, err
	}
	for _, name := range names {
		if v, ok := src.(taskView); ok && v.foreign(path.Join(from, name)) {
			continue
		}
		more, err := copyTree(src, path.Join(from, name), dst, path.Join(to, name))
		if err != nil {
			return left, err
		}
		left = append(left, more...)
	}
	return left, nil
}

// moveTree renames what can be renamed and copies the rest.
func moveTree(folder *os.Root, from, to string) error {
	if err := os.Rename(filepath.Join(folder.Name(), from), to); err == nil {
		return nil
	}
	if _, err := copyTree(folder, from, view{}, to); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
