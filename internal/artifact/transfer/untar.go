package transfer

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

func isGzip(head []byte) bool { return len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b }

// isTar looks for the magic of a tar header; head must have at least 512 bytes of the archive.
func isTar(head []byte) bool { return len(head) >= 512 && string(head[257:262]) == "ustar" }

// untar unpacks a tar, gzipped or plain, to a path that does not exist.
func untar(ctx context.Context, r *bufio.Reader, next string, limits Limits) error {
	head, err := r.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	packed := &counter{r: r}
	if !isGzip(head) {
		return untarStream(ctx, packed, packed, next, limits)
	}
	z, err := gzip.NewReader(packed)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return untarStream(ctx, z, packed, next, limits)
}

// untarOrFile unpacks gzipped bytes if they hold a tar, else it leaves them as they are.
func untarOrFile(ctx context.Context, r *bufio.Reader, next string, limits Limits) error {
	head, err := r.Peek(r.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	first := make([]byte, 512)
	z, err := gzip.NewReader(newBytesReader(head))
	if err == nil {
		_, err = io.ReadFull(z, first)
	}
	if err != nil || !isTar(first) && !isEmptyTar(first) {
		return writeFile(next, r)
	}
	return untar(ctx, r, next, limits)
}

// isEmptyTar says whether a first block is the end mark of a tar: an archive of nothing.
func isEmptyTar(block []byte) bool {
	for _, b := range block {
		if b != 0 {
			return false
		}
	}
	return true
}

func untarStream(ctx context.Context, r io.Reader, packed *counter, next string, limits Limits) error {
	folder := next + ".unpacked"
	x, err := newExtraction(folder, newMeter(limits, packed))
	if err != nil {
		return err
	}
	if err := x.finish(x.tar(ctx, tar.NewReader(r))); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	return x.settle(folder, next)
}

func (x *extraction) tar(ctx context.Context, t *tar.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		mode := h.FileInfo().Mode()
		switch h.Typeflag {
		case tar.TypeReg:
			err = x.file(h.Name, mode, t)
		case tar.TypeDir:
			err = x.folder(h.Name, mode)
		case tar.TypeSymlink:
			err = x.symlink(h.Name, h.Linkname)
		case tar.TypeLink:
			err = x.hardlink(h.Name, h.Linkname)
		case tar.TypeXGlobalHeader:
		default:
			err = fmt.Errorf("%w: entry %q is neither file, folder nor link", ErrHostile, h.Name)
		}
		if err != nil {
			return err
		}
	}
}
