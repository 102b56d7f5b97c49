package transfer

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// pack writes a file or folder as an archive whose entries lie below name.
func pack(ctx context.Context, w io.Writer, local, name, archive string, level int) error {
	switch archive {
	case "tar", "":
		return packTar(ctx, w, local, name, level)
	case "zip":
		return packZip(ctx, w, local, name)
	}
	return fmt.Errorf("unknown archive %q: use tar, zip or none", archive)
}

// walk visits a file or folder and what is below, in lexical order, links unresolved. What is neither file, folder nor
// link is left out.
func walk(ctx context.Context, local, name string, visit func(file, entry string, info fs.FileInfo) error) error {
	return filepath.WalkDir(local, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode(); !mode.IsRegular() && !mode.IsDir() && mode&fs.ModeSymlink == 0 {
			return nil
		}
		rel, err := filepath.Rel(local, file)
		if err != nil {
			return err
		}
		return visit(file, path.Join(name, filepath.ToSlash(rel)), info)
	})
}

func packTar(ctx context.Context, w io.Writer, local, name string, level int) error {
	if level == 0 {
		level = gzip.BestSpeed
	}
	z, err := gzip.NewWriterLevel(w, level)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	err = walk(ctx, local, name, func(file, entry string, info fs.FileInfo) error {
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			var err error
			if target, err = os.Readlink(file); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return err
		}
		// Owners and times are this machine's and would make equal contents differ.
		h = &tar.Header{Typeflag: h.Typeflag, Name: entry, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode & 0o777}
		if info.IsDir() {
			h.Name += "/"
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		return copyInto(t, file, info)
	})
	return errors.Join(err, t.Close(), z.Close())
}

func packZip(ctx context.Context, w io.Writer, local, name string) error {
	z := zip.NewWriter(w)
	err := walk(ctx, local, name, func(file, entry string, info fs.FileInfo) error {
		h := &zip.FileHeader{Name: entry, Method: zip.Deflate}
		h.SetMode(info.Mode() & (fs.ModePerm | fs.ModeDir | fs.ModeSymlink))
		if info.IsDir() {
			h.Name, h.Method = entry+"/", zip.Store
		}
		out, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			_, err = io.WriteString(out, target)
			return err
		}
		return copyInto(out, file, info)
	})
	return errors.Join(err, z.Close())
}

// copyInto copies a regular file's bytes.
func copyInto(w io.Writer, file string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
