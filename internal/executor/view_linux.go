package executor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// enterView makes the root of this process, which is the first of its own mount and pid namespaces, a copy-on-write view
// of the machine: what is written goes to the upper folder, and vanishes with it. Everything that was opened before stays
// open. The mounts vanish with the namespace.
func enterView(task spec.Spec) (warnings []string, err error) {
	b := &viewBuilder{box: *task.Sandbox, view: task.Sandbox.Upper}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("sandbox: make the mounts private: %w", err)
	}
	if b.box.Memory {
		if err := unix.Mount("tmpfs", b.view, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
	}
	if err := b.build(); err != nil {
		return b.warnings, fmt.Errorf("sandbox: %w", err)
	}
	places, err := openMounts(task.Mounts)
	if err != nil {
		return b.warnings, fmt.Errorf("sandbox: %w", err)
	}
	if err := enterRoot(b.view); err != nil {
		return b.warnings, fmt.Errorf("sandbox: %w", err)
	}
	for i, m := range task.Mounts {
		if err := attach(places[i], m.Path, m.ReadOnly); err != nil {
			return b.warnings, fmt.Errorf("sandbox: mount a volume at %s: %w", m.Path, err)
		}
	}
	for path, target := range task.Sandbox.Links {
		if err := os.Symlink(target, path); err != nil && !errors.Is(err, fs.ErrExist) {
			b.warnings = append(b.warnings, fmt.Sprintf("%s is not there for the task: %v", path, err))
		}
	}
	return b.warnings, nil
}

// viewBuilder mounts the parts of a view. The view is mounted over the upper folder itself; the working directory stays in
// the folder below, so that what layers need can be made there.
type viewBuilder struct {
	box      spec.Sandbox
	view     string
	warnings []string
}

// missing warns of a layer that the task has not. One that was taken away since the machine was looked at, as the mounts of
// containers are, is nothing that it could have.
func (b *viewBuilder) missing(path string, why error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return
	}
	b.warnings = append(b.warnings, fmt.Sprintf("%s is not there for the task: %v", path, why))
}

func (b *viewBuilder) build() error {
	view := b.view
	if err := os.Chdir(view); err != nil {
		return err
	}
	if b.box.User {
		if err := unix.Mount("tmpfs", view, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return fmt.Errorf("new root: %w", err)
		}
		for _, name := range []string{"dev", "proc", "sys"} {
			if err := os.Mkdir(filepath.Join(view, name), 0o755); err != nil {
				return err
			}
		}
	} else if err := b.overlay("/", view, 0); err != nil {
		return err
	}
	for i, layer := range b.box.Layers {
		if err := b.place(layer, filepath.Join(view, layer.Path), i+1); err != nil {
			b.missing(layer.Path, err)
		}
	}
	return b.devices(view)
}

// place puts one layer into the view.
func (b *viewBuilder) place(layer spec.Layer, target string, number int) error {
	switch {
	case layer.Link != "":
		return os.Symlink(layer.Link, target)
	case layer.Make:
		return os.MkdirAll(target, 0o755)
	case layer.Fresh:
		return b.fresh(layer.Path, target, number)
	}
	info, err := os.Stat(layer.Path)
	if err != nil {
		return err
	}
	if err := makePoint(target, info.IsDir()); err != nil {
		return err
	}
	if !layer.Bind {
		err := b.overlay(layer.Path, target, number)
		if err == nil {
			return nil
		}
		b.warnings = append(b.warnings, fmt.Sprintf("%s cannot be made private (%v): what the task writes there stays", layer.Path, err))
	}
	return unix.Mount(layer.Path, target, "", unix.MS_BIND|unix.MS_REC, "")
}

// fresh mounts an empty folder with the permissions of what it covers.
func (b *viewBuilder) fresh(path, target string, number int) error {
	empty := fmt.Sprintf("f%d", number)
	if err := os.Mkdir(empty, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := sameMode(path, empty); err != nil {
		return err
	}
	if err := makePoint(target, true); err != nil {
		return err
	}
	return unix.Mount(empty, target, "", unix.MS_BIND, "")
}

// devices places what is not files: /dev and /sys as they are, shared memory and processes of the task's own.
func (b *viewBuilder) devices(view string) error {
	for _, name := range []string{"/dev", "/sys"} {
		if err := unix.Mount(name, filepath.Join(view, name), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", name, err)
		}
	}
	shared := filepath.Join(view, "dev/shm")
	if _, err := os.Stat(shared); err == nil {
		if err := unix.Mount("tmpfs", shared, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			b.warnings = append(b.warnings, fmt.Sprintf("/dev/shm is the machine's: %v", err))
		}
	}
	proc := filepath.Join(view, "proc")
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		// Inside a container that hides parts of /proc a new one is refused; the old one shows the machine's processes.
		if err := unix.Mount("/proc", proc, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind /proc: %w", err)
		}
	}
	return nil
}

// overlay mounts a copy-on-write layer over lower at target. The options name folders relative to the working directory,
// so that no character of the path can be taken for a separator.
func (b *viewBuilder) overlay(lower, target string, number int) error {
	upper, work := fmt.Sprintf("u%d", number), fmt.Sprintf("w%d", number)
	for _, name := range []string{upper, work} {
		err := os.Mkdir(name, 0o755)
		if errors.Is(err, fs.ErrExist) && name == work {
			// An earlier executor's is of no use, and marks the layer as one that may not be used again.
			err = errors.Join(os.RemoveAll(name), os.Mkdir(name, 0o755))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := sameMode(lower, upper); err != nil {
		return err
	}
	if strings.ContainsAny(lower, `:,\`) {
		fd, err := unix.Open(lower, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		lower = "/proc/self/fd/" + strconv.Itoa(fd)
	}
	options := "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work
	if b.box.User {
		options += ",userxattr"
	}
	// Without volatile the whole file system of the upper folder is written to disk when the mount ends.
	err := unix.Mount("overlay", target, "overlay", 0, options+",volatile")
	if errors.Is(err, unix.EINVAL) {
		err = unix.Mount("overlay", target, "overlay", 0, options)
	}
	if err != nil {
		return fmt.Errorf("overlay of %s: %w", lower, err)
	}
	return nil
}

// sameMode gives a layer's top folder the permissions of what it covers: 1777 of /tmp, for one.
func sameMode(lower, upper string) error {
	info, err := os.Stat(lower)
	if err != nil {
		return err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSticky)
	if mode == 0o755 { // it was made so
		return nil
	}
	return os.Chmod(upper, mode)
}

// enterRoot makes a mount the root of this process.
func enterRoot(view string) error {
	if err := os.Chdir(view); err != nil {
		return err
	}
	// The old root lands on the new one and is taken away.
	if err := unix.PivotRoot(".", "."); err == nil {
		if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("let go of the old root: %w", err)
		}
	} else if err := unix.Chroot("."); err != nil { // in a chroot already
		return fmt.Errorf("enter the view: %w", err)
	}
	return os.Chdir("/")
}

// openMounts takes hold of what is to be mounted while the machine's own paths can be seen.
func openMounts(mounts []spec.Mount) ([]int, error) {
	places := make([]int, len(mounts))
	for i, m := range mounts {
		var err error
		if places[i], err = grab(m.From); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// grab takes hold of a file or folder as something that can be mounted.
func grab(from string) (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return 0, fmt.Errorf("take hold of %s: %w", from, err)
	}
	return fd, nil
}

// attach mounts what was grabbed at a path of the view, which is made where it is missing.
func attach(fd int, path string, readOnly bool) error {
	defer unix.Close(fd)
	var what unix.Stat_t
	if err := unix.Fstat(fd, &what); err != nil {
		return err
	}
	folder := what.Mode&unix.S_IFMT == unix.S_IFDIR
	if err := makePoint(path, folder); err != nil {
		return err
	}
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS); err != nil {
		return err
	}
	if readOnly {
		return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	return nil
}

// makePoint makes a mount point of the right kind.
func makePoint(path string, folder bool) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() == folder {
			return nil
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	if folder {
		return os.MkdirAll(path, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}
