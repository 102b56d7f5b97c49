package transfer

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

func newBytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// maxLink is the longest target that a link in a zip may have.
const maxLink = 4096

// unzip unpacks a zip to a path that does not exist. A zip's table of contents is at its end, so it goes to a file
// first.
func unzip(ctx context.Context, r io.Reader, next string, limits Limits) (err error) {
	spool := next + ".zip"
	if err := writeFile(spool, r); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(spool)) }()
	f, err := os.Open(spool)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(f, info.Size())
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	folder := next + ".unpacked"
	x, err := newExtraction(folder, newMeter(limits, &counter{n: info.Size()}))
	if err != nil {
		return err
	}
	if err := x.finish(x.zip(ctx, z)); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return x.settle(folder, next)
}

func (x *extraction) zip(ctx context.Context, z *zip.Reader) error {
	for _, entry := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.zipEntry(entry); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) zipEntry(entry *zip.File) error {
	mode := entry.Mode()
	switch {
	case mode.IsDir():
		return x.folder(entry.Name, mode)
	case !mode.IsRegular() && mode&fs.ModeSymlink == 0:
		return fmt.Errorf("%w: entry %q is neither file, folder nor link", ErrHostile, entry.Name)
	}
	r, err := entry.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if mode.IsRegular() {
		return x.file(entry.Name, mode, r)
	}
	target, err := io.ReadAll(io.LimitReader(r, maxLink+1))
	if err != nil {
		return err
	}
	if len(target) > maxLink {
		return fmt.Errorf("%w: link %q is too long", ErrHostile, entry.Name)
	}
	return x.symlink(entry.Name, string(target))
}
