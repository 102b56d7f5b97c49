package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// Saved says what was stored; artifact.Save says of what Digest is.
type Saved struct {
	Digest string
	Size   int64
}

// Save puts a local file or folder into a store, in place of what is there; artifact.Save says how.
func Save(ctx context.Context, s Store, local, name, archive string, level int) (Saved, error) {
	info, err := os.Stat(local)
	if err != nil {
		return Saved{}, err
	}
	sum := &summer{hash: sha256.New()}
	switch {
	case archive == "tar" || archive == "zip":
		err = savePacked(ctx, s, local, name, archive, sum, level)
	case archive != "none" && archive != "":
		err = fmt.Errorf("unknown archive %q: use tar, zip or none", archive)
	case info.IsDir():
		err = saveTree(ctx, s, local, sum)
	default:
		err = saveFile(ctx, s, "", local, sum)
	}
	if err != nil {
		return Saved{}, err
	}
	return Saved{Digest: sum.digest(), Size: sum.size}, nil
}

// summer takes digest and size of what passes.
type summer struct {
	hash hash.Hash
	size int64
}

func (s *summer) Write(p []byte) (int, error) {
	s.size += int64(len(p))
	return s.hash.Write(p)
}

func (s *summer) digest() string { return "sha256:" + hex.EncodeToString(s.hash.Sum(nil)) }

func savePacked(ctx context.Context, s Store, local, name, archive string, sum *summer, level int) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(ctx, io.MultiWriter(w, sum), local, name, archive, level)
		_ = w.CloseWithError(err) // never fails
		packed <- err
	}()
	err := s.Put(ctx, "", r, -1)
	_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // never fails; ends the packing where the store gave up
	if packing := <-packed; err == nil {
		return packing
	}
	return err
}

func saveFile(ctx context.Context, s Store, key, local string, sum io.Writer) error {
	f, err := os.Open(local)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return s.Put(ctx, key, io.TeeReader(f, sum), info.Size())
}

func saveTree(ctx context.Context, s Store, local string, sum *summer) error {
	tree, whole := s.(TreeStore)
	if whole {
		if err := tree.PutTree(ctx, "", local); err != nil {
			return err
		}
	} else if err := s.Delete(ctx, ""); err != nil {
		return err
	}
	return walk(ctx, local, "", func(file, entry string, info fs.FileInfo) error {
		if info.IsDir() {
			return nil
		}
		one := &summer{hash: sha256.New()}
		var err error
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			if !whole {
				return nil // other stores have no links
			}
			var target string
			if target, err = os.Readlink(file); err == nil {
				_, err = io.WriteString(one.hash, target)
			}
		case whole:
			err = copyInto(one, file, info)
		default:
			err = saveFile(ctx, s, path.Clean(filepath.ToSlash(entry)), file, one)
		}
		sum.size += one.size
		if err == nil {
			_, err = fmt.Fprintf(sum.hash, "%x %s\n", one.hash.Sum(nil), entry)
		}
		return err
	})
}
