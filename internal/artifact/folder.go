package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/program"
)

// folderStore is a file or folder of this machine.
type folderStore struct{ path string }

type folderBlock struct {
	Path string `json:"path"`
}

// openFolder opens a folder of this machine, if that is among those that may be.
func openFolder(body program.JSON, opts Options) (Store, error) {
	var block folderBlock
	if err := json.Unmarshal(body, &block); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(block.Path) {
		return nil, fmt.Errorf("path %q must be absolute", block.Path)
	}
	file := filepath.Clean(block.Path)
	if opts.Roots != nil && !slices.ContainsFunc(opts.Roots, func(root string) bool { return below(root, file) }) {
		return nil, fmt.Errorf("%w: %s", ErrOutside, file)
	}
	return folderStore{path: file}, nil
}

// below says whether a path is a folder or lies in it.
func below(folder, file string) bool {
	rel, err := filepath.Rel(folder, file)
	return err == nil && filepath.IsLocal(rel)
}

// file is a key's path; a key cannot leave the location.
func (s folderStore) file(key string) (string, error) {
	if key == "" {
		return s.path, nil
	}
	local := filepath.FromSlash(key)
	if !filepath.IsLocal(local) {
		return "", fmt.Errorf("key %q leaves its artifact", key)
	}
	return filepath.Join(s.path, local), nil
}

func (s folderStore) Stat(_ context.Context, key string) (Info, error) {
	file, err := s.file(key)
	if err != nil {
		return Info{}, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return Info{}, err
	}
	if info.IsDir() {
		return Info{Size: -1, Tree: true}, nil
	}
	return Info{Size: info.Size()}, nil
}

func (s folderStore) Get(_ context.Context, key string) (io.ReadCloser, error) {
	file, err := s.file(key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s %w", file, ErrTree)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (s folderStore) Put(_ context.Context, key string, r io.Reader, _ int64) error {
	file, err := s.file(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(file), ".put-*")
	if err != nil {
		return err
	}
	_, err = io.Copy(next, r)
	err = errors.Join(err, next.Chmod(0o644), next.Close())
	if err == nil {
		err = transfer.Replace(next.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

func (s folderStore) Delete(_ context.Context, key string) error {
	file, err := s.file(key)
	if err != nil {
		return err
	}
	return os.RemoveAll(file)
}

func (s folderStore) List(ctx context.Context, key string) ([]Info, error) {
	base, err := s.file(key)
	if err != nil {
		return nil, err
	}
	var found []Info
	err = filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if d.IsDir() || name == base {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(base, name)
		if err != nil {
			return err
		}
		found = append(found, Info{Key: filepath.ToSlash(rel), Size: info.Size()})
		return nil
	})
	slices.SortFunc(found, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
	return found, err
}

func (s folderStore) GetTree(ctx context.Context, key, local string) error {
	file, err := s.file(key)
	if err != nil {
		return err
	}
	resolved, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	return transfer.CopyTree(ctx, resolved, local)
}

func (s folderStore) PutTree(ctx context.Context, key, local string) error {
	file, err := s.file(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	next, err := os.MkdirTemp(filepath.Dir(file), ".put-*")
	if err != nil {
		return err
	}
	tree := filepath.Join(next, "tree")
	err = transfer.CopyTree(ctx, local, tree)
	if err == nil {
		err = transfer.Replace(tree, file)
	}
	return errors.Join(err, os.RemoveAll(next))
}
