package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/program"
)

// entry is one entry of a hand-made archive.
type entry struct {
	name, link, body string
	kind             byte
	mode             int64
}

func makeTar(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		if e.mode == 0 {
			e.mode = 0o644
		}
		h := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Size: int64(len(e.body)), Mode: e.mode}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func makeZip(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		switch e.kind {
		case tar.TypeSymlink:
			h.SetMode(fs.ModeSymlink | 0o777)
			e.body = e.link
		case tar.TypeChar:
			h.SetMode(fs.ModeDevice | fs.ModeCharDevice | 0o666)
		default:
			h.SetMode(0o644)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// stored is an artifact whose bytes are in a file.
func stored(t testing.TB, data []byte, archive string) program.Artifact {
	t.Helper()
	file := filepath.Join(t.TempDir(), "artifact")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return folderArtifact(file, archive)
}

func folderArtifact(file, archive string) program.Artifact {
	block, _ := json.Marshal(map[string]any{"folder": map[string]string{"path": file}})
	return program.Artifact{Name: "a", Store: block, Archive: archive}
}

// tree reads a file or folder: contents by path, links as "-> target", folders with a slash.
func tree(t testing.TB, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			found[rel+"/"] = ""
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			found[rel] = "-> " + target
			return err
		default:
			data, err := os.ReadFile(name)
			found[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFetchUnpacks(t *testing.T) {
	var gz bytes.Buffer
	z := gzip.NewWriter(&gz)
	if _, err := z.Write([]byte("only text")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	plainTar := func(data []byte) []byte {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := out.ReadFrom(r); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	one := makeTar(t, entry{name: "f", body: "x"})
	several := makeTar(t, entry{name: "d/", kind: tar.TypeDir, mode: 0o755}, entry{name: "d/f", body: "x"}, entry{name: "g", body: "y"})
	tests := map[string]struct {
		data    []byte
		archive string
		sub     string
		want    map[string]string
	}{
		"a single file":                {data: one, want: map[string]string{".": "x"}},
		"several entries":              {data: several, want: map[string]string{"./": "", "d/": "", "d/f": "x", "g": "y"}},
		"below a path":                 {data: several, sub: "d", want: map[string]string{"./": "", "f": "x"}},
		"left alone":                   {data: one, archive: "none", want: map[string]string{".": string(one)}},
		"a plain tar when asked":       {data: plainTar(one), archive: "tar", want: map[string]string{".": "x"}},
		"a plain tar is not looked at": {data: plainTar(one), want: map[string]string{".": string(plainTar(one))}},
		"gzip without a tar":           {data: gz.Bytes(), want: map[string]string{".": gz.String()}},
		"text":                         {data: []byte("hello"), want: map[string]string{".": "hello"}},
		"nothing":                      {data: nil, want: map[string]string{".": ""}},
		"zip":                          {data: makeZip(t, entry{name: "d/f", body: "x"}), want: map[string]string{"./": "", "f": "x"}},
		"an empty tar":                 {data: makeTar(t), want: map[string]string{"./": ""}},
		"links that stay inside": {
			data: makeTar(t, entry{name: "d/f", body: "x"}, entry{name: "d/l", kind: tar.TypeSymlink, link: "f"}, entry{name: "d/h", kind: tar.TypeLink, link: "d/f"}),
			want: map[string]string{"./": "", "f": "x", "l": "-> f", "h": "x"},
		},
		"a later entry wins": {
			data: makeTar(t, entry{name: "f", kind: tar.TypeSymlink, link: "g"}, entry{name: "f", body: "x"}),
			want: map[string]string{".": "x"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a := stored(t, test.data, test.archive)
			a.SubPath = test.sub
			local := filepath.Join(t.TempDir(), "deep", "local")
			if err := Fetch(t.Context(), a, local, Options{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, tree(t, local)); diff != "" {
				t.Error(diff)
			}
			if entries, err := os.ReadDir(filepath.Dir(local)); err != nil || len(entries) != 1 {
				t.Errorf("left beside it: %v %v", entries, err)
			}
		})
	}
}

func TestHostileArchives(t *testing.T) {
	zeros := strings.Repeat("\x00", 8<<20)
	tests := map[string]struct {
		data   []byte
		limits Limits
		want   error
	}{
		"tar climbs up":               {data: makeTar(t, entry{name: "../evil", body: "x"}), want: transfer.ErrHostile},
		"tar climbs up inside":        {data: makeTar(t, entry{name: "a/../../evil", body: "x"}), want: transfer.ErrHostile},
		"tar absolute":                {data: makeTar(t, entry{name: "/tmp/evil", body: "x"}), want: transfer.ErrHostile},
		"tar absolute link":           {data: makeTar(t, entry{name: "l", kind: tar.TypeSymlink, link: "/etc/passwd"}, entry{name: "f"}), want: transfer.ErrHostile},
		"tar link climbs up":          {data: makeTar(t, entry{name: "d/l", kind: tar.TypeSymlink, link: "../../x"}, entry{name: "f"}), want: transfer.ErrHostile},
		"tar writes through a link":   {data: makeTar(t, entry{name: "l", kind: tar.TypeSymlink, link: "."}, entry{name: "l/f", body: "x"}), want: transfer.ErrHostile},
		"tar hard link outside":       {data: makeTar(t, entry{name: "l", kind: tar.TypeLink, link: "../../etc/passwd"}), want: transfer.ErrHostile},
		"tar hard link to a link":     {data: makeTar(t, entry{name: "d/s", kind: tar.TypeSymlink, link: "f"}, entry{name: "d/h", kind: tar.TypeLink, link: "d/s"}), want: transfer.ErrHostile},
		"tar device":                  {data: makeTar(t, entry{name: "dev", kind: tar.TypeChar}), want: transfer.ErrHostile},
		"tar fifo":                    {data: makeTar(t, entry{name: "fifo", kind: tar.TypeFifo}), want: transfer.ErrHostile},
		"tar link out of its top":     {data: makeTar(t, entry{name: "top/l", kind: tar.TypeSymlink, link: ".."}), want: transfer.ErrHostile},
		"tar links add up":            {data: makeTar(t, entry{name: "a/b/c", kind: tar.TypeSymlink, link: "../.."}, entry{name: "a/b/l", kind: tar.TypeSymlink, link: "c/../x"}, entry{name: "f"}), want: transfer.ErrHostile},
		"tar too many entries":        {data: makeTar(t, entry{name: "a"}, entry{name: "b"}, entry{name: "c"}), limits: Limits{Entries: 2}, want: ErrTooLarge},
		"tar too many bytes":          {data: makeTar(t, entry{name: "a", body: zeros}), limits: Limits{Bytes: 1 << 20}, want: ErrTooLarge},
		"tar unpacks to far too much": {data: makeTar(t, entry{name: "a", body: zeros}), limits: Limits{RatioFloor: 1 << 20}, want: ErrTooLarge},
		"zip climbs up":               {data: makeZip(t, entry{name: "../evil", body: "x"}), want: transfer.ErrHostile},
		"zip absolute link":           {data: makeZip(t, entry{name: "l", kind: tar.TypeSymlink, link: "/etc/passwd"}), want: transfer.ErrHostile},
		"zip device":                  {data: makeZip(t, entry{name: "dev", kind: tar.TypeChar}), want: transfer.ErrHostile},
		"zip unpacks to far too much": {data: makeZip(t, entry{name: "a", body: zeros}), limits: Limits{RatioFloor: 1 << 20}, want: ErrTooLarge},
		"zip of nonsense":             {data: []byte("PK\x03\x04 nonsense"), want: zip.ErrFormat},
		"tar cut off":                 {data: makeTar(t, entry{name: "a", body: zeros})[:2000], want: nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			outside := t.TempDir()
			local := filepath.Join(outside, "in", "local")
			err := Fetch(t.Context(), stored(t, test.data, ""), local, Options{Limits: test.limits})
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			want := map[string]string{"./": "", "in/": ""}
			if diff := cmp.Diff(want, tree(t, outside)); diff != "" {
				t.Errorf("something is left: %s", diff)
			}
		})
	}
}

func TestModesAreTamed(t *testing.T) {
	data := makeTar(t, entry{name: "d/", kind: tar.TypeDir, mode: 0o555}, entry{name: "d/f", body: "x", mode: 0o4755})
	local := filepath.Join(t.TempDir(), "local")
	if err := Fetch(t.Context(), stored(t, data, ""), local, Options{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(local, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(makeTar(f, entry{name: "d/f", body: "x"}, entry{name: "d/l", kind: tar.TypeSymlink, link: "f"}, entry{name: "h", kind: tar.TypeLink, link: "d/f"}), false)
	f.Add(makeTar(f, entry{name: "../f", body: "x"}), true)
	f.Add(makeZip(f, entry{name: "d/f", body: "x"}, entry{name: "l", kind: tar.TypeSymlink, link: "d"}), true)
	f.Fuzz(func(t *testing.T, data []byte, plain bool) {
		// Compressed bytes are hard to change in a way that keeps them valid, so the fuzzer may also make the tar itself.
		archive := ""
		if plain {
			archive = "tar"
		}
		outside := t.TempDir()
		local := filepath.Join(outside, "in", "local")
		err := Fetch(context.Background(), stored(t, data, archive), local, Options{Limits: Limits{Bytes: 1 << 24, Entries: 1000}})
		entries, e := os.ReadDir(outside)
		if e != nil || len(entries) != 1 {
			t.Fatalf("outside: %v %v", entries, e)
		}
		inside, e := os.ReadDir(filepath.Join(outside, "in"))
		if e != nil || err != nil && len(inside) != 0 || err == nil && len(inside) != 1 {
			t.Fatalf("beside: %v %v after %v", inside, e, err)
		}
		if err != nil {
			return
		}
		// Whatever came out, no link in it leads outside.
		if info, err := os.Lstat(local); err != nil || !info.IsDir() {
			return
		}
		root, err := os.OpenRoot(local)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink == 0 {
				return err
			}
			if _, err := root.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("link %s: %v", name, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
