package artifact

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/program"
)

// Fetch brings an artifact to a local path, in place of what is there. By a's Archive it is unpacked: "none" leaves it as
// it is, "tar" and "zip" demand that form, and "" looks at the bytes: a gzipped tar and a zip are unpacked, anything
// else is left as it is, as Argo does. An archive with a single entry at its top becomes that file or folder. SubPath
// narrows to what lies below it, inside an archive too.
func Fetch(ctx context.Context, a program.Artifact, local string, opts Options) error {
	if err := fetch(ctx, a, local, opts); err != nil {
		return fmt.Errorf("fetch artifact %s: %w", describe(a), err)
	}
	return nil
}

// describe names an artifact in messages.
func describe(a program.Artifact) string {
	switch {
	case a.URI != "":
		return a.Name + " from " + a.URI
	case a.Store != nil:
		if kind, _, err := Kind(a.Store); err == nil {
			return a.Name + " from its " + kind + " store"
		}
	}
	return a.Name
}

func fetch(ctx context.Context, a program.Artifact, local string, opts Options) error {
	s, err := OpenArtifact(a, opts)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(local), 0o777); err != nil {
		return err
	}
	// Everything is built beside its place and renamed, so that a crash leaves nothing half done.
	work, err := os.MkdirTemp(filepath.Dir(local), ".fetch-*")
	if err != nil {
		return err
	}
	next, err := bring(ctx, s, a, work, opts)
	if err == nil {
		err = replace(next, local)
	}
	return errors.Join(err, os.RemoveAll(work))
}

// bring gets an artifact's bytes into the folder work and gives the path of what is wanted.
func bring(ctx context.Context, s Store, a program.Artifact, work string, opts Options) (string, error) {
	next := filepath.Join(work, "artifact")
	sub := path.Clean("/" + a.SubPath)[1:]
	if sub != "" {
		info, err := s.Stat(ctx, "")
		if err == nil && info.Tree {
			return next, bringTree(ctx, s, sub, next)
		}
		// An object: the path leads into the archive, or, where there is no object, below a prefix.
		if err != nil {
			return next, bringAny(ctx, s, sub, a, next, opts)
		}
	}
	if err := bringAny(ctx, s, "", a, next, opts); err != nil {
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
func bringAny(ctx context.Context, s Store, key string, a program.Artifact, next string, opts Options) error {
	r, err := s.Get(ctx, key)
	if errors.Is(err, ErrTree) {
		return bringTree(ctx, s, key, next)
	}
	if err != nil {
		return err
	}
	err = unpack(ctx, r, a.Archive, next, opts.Limits)
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
