package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// Form is how an artifact's bytes lie in its store: Archive and SubPath as program.Artifact has them.
type Form struct{ Archive, SubPath string }

// Fetch brings what a store holds to a local path, in place of what is there; artifact.Fetch says how. A folder that is a
// mount point, or that lies where this process may make nothing, stays and gets the contents.
func Fetch(ctx context.Context, s Store, form Form, local string, limits Limits) error {
	if err := os.MkdirAll(filepath.Dir(local), 0o777); err != nil {
		return err
	}
	// Everything is built beside its place and renamed, so that a crash leaves nothing half done.
	work, err := os.MkdirTemp(filepath.Dir(local), ".fetch-*")
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fetchInto(ctx, s, form, local, limits, err)
	}
	if err != nil {
		return err
	}
	next, err := bring(ctx, s, form, work, limits)
	if err == nil {
		err = Replace(next, local)
		if errors.Is(err, syscall.EBUSY) { // a mount point
			err = pour(next, local)
		}
	}
	return errors.Join(err, os.RemoveAll(work))
}

// fetchInto is Fetch for a folder beside which nothing can be made, for a reason.
func fetchInto(ctx context.Context, s Store, form Form, local string, limits Limits, reason error) error {
	work, err := os.MkdirTemp(local, ".fetch-*")
	if err != nil {
		return reason
	}
	next, err := bring(ctx, s, form, work, limits)
	if err == nil {
		err = empty(local, filepath.Base(work))
	}
	if err == nil {
		err = pour(next, local)
	}
	return errors.Join(err, os.RemoveAll(work))
}

// empty removes what lies in a folder, but for one name.
func empty(folder, but string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if e.Name() != but {
			err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
		}
	}
	return err
}

// pour moves what lies in one folder to another.
func pour(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is a folder that cannot be replaced, and the artifact is a file", to)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		err := os.Rename(source, target)
		if errors.Is(err, syscall.EXDEV) {
			err = CopyTree(context.Background(), source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bring gets an artifact's bytes into the folder work and gives the path of what is wanted.
func bring(ctx context.Context, s Store, form Form, work string, limits Limits) (string, error) {
	next := filepath.Join(work, "artifact")
	sub := path.Clean("/" + form.SubPath)[1:]
	if sub != "" {
		info, err := s.Stat(ctx, "")
		if err == nil && info.Tree {
			return next, bringTree(ctx, s, sub, next)
		}
		// An object: the path leads into the archive, or, where there is no object, below a prefix.
		if err != nil {
			return next, bringAny(ctx, s, sub, form, next, limits)
		}
	}
	if err := bringAny(ctx, s, "", form, next, limits); err != nil {
		return "", err
	}
	if sub == "" {
		return next, nil
	}
	root, err := os.OpenRoot(next)
	if err != nil {
		return "", fmt.Errorf("sub-path %s: %w", sub, err)
	}
	defer root.Close()
	if _, err := root.Stat(filepath.FromSlash(sub)); err != nil {
		return "", fmt.Errorf("sub-path: %w", err)
	}
	return filepath.Join(next, filepath.FromSlash(sub)), nil
}

// bringAny gets an object, unpacked where it is an archive, or a tree.
func bringAny(ctx context.Context, s Store, key string, form Form, next string, limits Limits) error {
	r, err := s.Get(ctx, key)
	if errors.Is(err, ErrTree) {
		return bringTree(ctx, s, key, next)
	}
	if err != nil {
		return err
	}
	err = unpack(ctx, r, form.Archive, next, limits)
	return errors.Join(err, r.Close())
}

// bringTree gets a tree.
func bringTree(ctx context.Context, s Store, key, next string) error {
	if tree, ok := s.(TreeStore); ok {
		return tree.GetTree(ctx, key, next)
	}
	objects, err := s.List(ctx, key)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		r, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		return errors.Join(writeFile(next, r), r.Close())
	}
	if err := os.Mkdir(next, 0o777); err != nil {
		return err
	}
	root, err := os.OpenRoot(next)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, o := range objects {
		if err := bringObject(ctx, s, path.Join(key, o.Key), root, filepath.FromSlash(o.Key)); err != nil {
			return err
		}
	}
	return nil
}

// bringObject writes one object of a tree; the root keeps hostile keys inside.
func bringObject(ctx context.Context, s Store, key string, root *os.Root, name string) error {
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return err
		}
	}
	r, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func writeFile(name string, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

// unpack writes a stream to a path that does not exist, unpacked as archive says.
func unpack(ctx context.Context, r io.Reader, archive, next string, limits Limits) error {
	buffered := bufio.NewReaderSize(r, 64<<10)
	switch archive {
	case "none":
		return writeFile(next, buffered)
	case "tar":
		return untar(ctx, buffered, next, limits)
	case "zip":
		return unzip(ctx, buffered, next, limits)
	case "":
	default:
		return fmt.Errorf("unknown archive %q: use tar, zip or none", archive)
	}
	// What cannot be read to its end yet is decided by the bytes that are there.
	head, err := buffered.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case isZip(head):
		return unzip(ctx, buffered, next, limits)
	case isGzip(head):
		return untarOrFile(ctx, buffered, next, limits)
	}
	return writeFile(next, buffered)
}
