package artifact

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

	"github.com/sluice-ml/sluice/internal/program"
)

// Save stores a local file or folder where an artifact's description says, in place of what is there, and gives the
// description with Digest and Size. By a's Archive it is packed: "tar" (gzipped), "zip", or as it is for "none" and "".
// name is what the top of an archive is called: the base name of the path that the task knows it by.
//
// The digest is "sha256:" and hex: of the bytes as stored, or, for a tree, of the lines "<sha256 of file> <key>\n".
func Save(ctx context.Context, local, name string, a program.Artifact, opts Options) (program.Artifact, error) {
	saved, err := save(ctx, local, name, a, opts)
	if err != nil {
		return a, fmt.Errorf("store artifact %s: %w", describe(a), err)
	}
	return saved, nil
}

func save(ctx context.Context, local, name string, a program.Artifact, opts Options) (program.Artifact, error) {
	s, err := OpenArtifact(a, opts)
	if err != nil {
		return a, err
	}
	info, err := os.Stat(local)
	if err != nil {
		return a, err
	}
	sum := &summer{hash: sha256.New()}
	switch {
	case a.Archive == "tar" || a.Archive == "zip":
		err = savePacked(ctx, s, local, name, a.Archive, sum, opts.Level)
	case a.Archive != "none" && a.Archive != "":
		err = fmt.Errorf("unknown archive %q: use tar, zip or none", a.Archive)
	case info.IsDir():
		err = saveTree(ctx, s, local, sum)
	default:
		err = saveFile(ctx, s, "", local, sum)
	}
	if err != nil {
		return a, err
	}
	a.Digest, a.Size = sum.digest(), sum.size
	return a, nil
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
