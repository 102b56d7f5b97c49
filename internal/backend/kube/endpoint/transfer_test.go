package endpoint_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// noise is so many bytes that do not pack well.
func noise(n int) []byte {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	return data
}

// made makes a file or, of several, a folder.
func made(t *testing.T, files map[string]string) string {
	t.Helper()
	top := filepath.Join(t.TempDir(), "made")
	for name, text := range files {
		file := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// read gives what is at a path: texts by relative name.
func read(t *testing.T, top string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(top, name)
		found[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestWhatGoesOutComesIn(t *testing.T) {
	large := string(noise(300 << 10)) // several chunks
	contents := map[string]map[string]string{
		"small file":   {"": "hello"},
		"empty file":   {"": ""},
		"large file":   {"": large},
		"folder":       {"a": "1", "b/c": "2"},
		"large folder": {"a": large, "b/c": "2"},
	}
	for _, store := range []string{"folder", "s3", "http", "carried s3"} {
		kind := strings.TrimPrefix(store, "carried ")
		for name, files := range contents {
			for _, archive := range []string{"none", "tar", "zip"} {
				_, single := files[""]
				if kind == "http" && !single && archive == "none" {
					continue // it has no folders
				}
				t.Run(fmt.Sprintf("%s/%s/%s", store, name, archive), func(t *testing.T) {
					w := newWorld(t, kind != store)
					var local string
					if single {
						local = filepath.Join(t.TempDir(), "made")
						if err := os.WriteFile(local, []byte(files[""]), 0o600); err != nil {
							t.Fatal(err)
						}
						files = map[string]string{".": files[""]}
					} else {
						local = made(t, files)
					}
					place := w.at(kind, "run/task/out")
					place.Archive = archive
					w.serve(output("out"), map[string]program.Artifact{"out": place}, map[string][]program.Artifact{"in": {{}, place}})
					c := w.client("mine")
					saved, err := c.Save(t.Context(), spec.Transfer{Name: "out", Archive: archive, File: "top"}, "", local)
					if err != nil {
						t.Fatal(err)
					}
					// What is reported is what storing it from here would have reported.
					direct, err := artifact.Save(t.Context(), local, "top", program.Artifact{
						Store: block(t, "folder", map[string]any{"path": filepath.Join(t.TempDir(), "x")}), Archive: archive,
					}, artifact.Options{})
					if err != nil {
						t.Fatal(err)
					}
					// A tree in a folder has links, too; there are none here.
					if saved.Digest != direct.Digest || saved.Size != direct.Size || saved.Digest == "" {
						t.Errorf("saved %+v, stored from here %s %d", saved, direct.Digest, direct.Size)
					}
					back := filepath.Join(t.TempDir(), "deep", "back")
					if err := c.Fetch(t.Context(), spec.Transfer{Name: "in", Index: 1, Archive: archive}, back); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(files, read(t, back)); diff != "" {
						t.Error(diff)
					}
					if n := w.objects.Uploads(); n != 0 {
						t.Errorf("%d uploads are unfinished", n)
					}
				})
			}
		}
	}
}

func TestFetchBelowAPath(t *testing.T) {
	w := newWorld(t, false)
	place := w.at("s3", "tree")
	w.serve(output("out"), map[string]program.Artifact{"out": place}, map[string][]program.Artifact{"in": {place}})
	c := w.client("mine")
	if _, err := c.Save(t.Context(), spec.Transfer{Name: "out", Archive: "none"}, "", made(t, map[string]string{"a": "1", "b/c": "2"})); err != nil {
		t.Fatal(err)
	}
	back := filepath.Join(t.TempDir(), "back")
	if err := c.Fetch(t.Context(), spec.Transfer{Name: "in", SubPath: "b"}, back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"c": "2"}, read(t, back)); diff != "" {
		t.Error(diff)
	}
}

// A component may choose a place beside the one that it was given; elsewhere it has stored the bytes by itself.
func TestComponentChoosesThePlace(t *testing.T) {
	w := newWorld(t, false)
	w.serve(output("out"), map[string]program.Artifact{"out": w.at("s3", "run/task/out")}, nil)
	c := w.client("mine")
	local := made(t, map[string]string{"f": "x"})
	saved, err := c.Save(t.Context(), spec.Transfer{Name: "out", Archive: "none"}, "s3://bucket/run/task/chosen", filepath.Join(local, "f"))
	if err != nil || saved.Size != 1 {
		t.Errorf("%+v, %v", saved, err)
	}
	for _, uri := range []string{"s3://bucket/run/task2/x", "s3://elsewhere/x", "s3://bucket/run/task/../x", "gs://b/x"} {
		saved, err := c.Save(t.Context(), spec.Transfer{Name: "out", Archive: "none"}, uri, filepath.Join(local, "f"))
		if err != nil || saved != (spec.Saved{}) {
			t.Errorf("%s: %+v, %v", uri, saved, err)
		}
	}
	if diff := cmp.Diff([]string{"/bucket/run/task/chosen"}, w.objects.Names()); diff != "" {
		t.Error(diff)
	}
}

// bad says which of some requests fail: never more than two in a row, and no request of a round of them always.
func bad(n int64) bool { return "x.xx..x....."[n%12] == 'x' }

// Whatever fails for a while on the way is tried again.
func TestFaultsThatPass(t *testing.T) {
	large := noise(300 << 10)
	tests := map[string]struct {
		store string
		// fault gives a status for the n-th request to the store, from 1, and before one for the n-th to the endpoint.
		fault  func(n int64, r *http.Request) int
		before func(n int64, rw http.ResponseWriter, r *http.Request) bool
	}{
		"the store is overloaded": {store: "s3", fault: func(n int64, _ *http.Request) int {
			if bad(n) {
				return http.StatusServiceUnavailable
			}
			return 0
		}},
		"a signature has run out": {store: "s3", fault: func(n int64, r *http.Request) int {
			if r.URL.Query().Has("X-Amz-Signature") && bad(n) {
				return http.StatusForbidden
			}
			return 0
		}},
		"the endpoint is replaced": {store: "folder", before: func(n int64, rw http.ResponseWriter, _ *http.Request) bool {
			if bad(n) {
				rw.Header().Set("Retry-After", "1")
				rw.WriteHeader(http.StatusServiceUnavailable)
			}
			return bad(n)
		}},
		"connections break": {store: "s3", before: func(n int64, _ http.ResponseWriter, _ *http.Request) bool {
			if bad(n) {
				panic(http.ErrAbortHandler)
			}
			return false
		}},
		"a stream breaks off": {store: "folder", before: func(n int64, rw http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != spec.DataPath || n > 6 {
				return false
			}
			if r.Method == http.MethodGet {
				rw.Header().Set("Content-Length", "1000000")
				_, _ = rw.Write(large[:100<<10])
			} else {
				_, _ = r.Body.Read(make([]byte, 100))
			}
			panic(http.ErrAbortHandler)
		}},
		"the token is renewed late": {store: "folder", before: func(n int64, rw http.ResponseWriter, _ *http.Request) bool {
			if bad(n) {
				rw.WriteHeader(http.StatusUnauthorized)
			}
			return bad(n)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			var toStore, toEndpoint atomic.Int64
			if test.fault != nil {
				w.objects.Fault = func(r *http.Request) int { return test.fault(toStore.Add(1), r) }
			}
			if test.before != nil {
				w.before = func(rw http.ResponseWriter, r *http.Request) bool { return test.before(toEndpoint.Add(1), rw, r) }
			}
			place := w.at(test.store, "run/task/out")
			w.serve(output("out"), map[string]program.Artifact{"out": place}, map[string][]program.Artifact{"in": {place}})
			local := filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(local, large, 0o600); err != nil {
				t.Fatal(err)
			}
			c := w.client("mine")
			for _, archive := range []string{"none", "tar"} {
				if _, err := c.Save(t.Context(), spec.Transfer{Name: "out", Archive: archive, File: "f"}, "", local); err != nil {
					t.Fatal(err)
				}
				back := filepath.Join(t.TempDir(), "back")
				if err := c.Fetch(t.Context(), spec.Transfer{Name: "in", Archive: archive}, back); err != nil {
					t.Fatal(err)
				}
				if data, err := os.ReadFile(back); err != nil || !bytes.Equal(data, large) {
					t.Errorf("%d bytes came back, %v", len(data), err)
				}
			}
			if n := w.objects.Uploads(); n != 0 {
				t.Errorf("%d uploads are unfinished", n)
			}
		})
	}
}

// What stays wrong ends soon, with words that help, and leaves nothing.
func TestFaultsThatStay(t *testing.T) {
	w := newWorld(t, false)
	secretless := w.at("s3", "x")
	secretless.Store = []byte(strings.ReplaceAll(string(secretless.Store), `"name":"s3"`, `"name":"gone"`))
	w.serve(program.Outputs{Artifacts: []program.OutputArtifact{{Name: "nowhere"}, {Name: "secretless"}, {Name: "s3"}, {Name: "raw"}}},
		map[string]program.Artifact{
			"secretless": secretless, "s3": w.at("s3", "x"), "raw": {Store: block(t, "raw", map[string]any{"data": "x"})},
		},
		map[string][]program.Artifact{"absent": {w.at("s3", "absent")}, "missing": {w.at("folder", "absent")}})
	w.objects.Fault = func(r *http.Request) int {
		if r.Method == http.MethodPut {
			return http.StatusForbidden
		}
		return 0
	}
	local := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(local, noise(300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.client("mine")
	for name, want := range map[string]string{
		"nowhere":    "has no place to go to: configure an artifact repository",
		"secretless": "secret gone is not there: check the secret that the artifact's store names",
		"s3":         "the artifact's store says 403 Forbidden",
		"raw":        "a raw artifact cannot be written",
		"undeclared": `this task has no output artifact "undeclared"`,
	} {
		for _, archive := range []string{"none", "tar"} {
			_, err := c.Save(t.Context(), spec.Transfer{Name: name, Archive: archive, File: "f"}, "", local)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "store output artifact "+name+": ") {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil && strings.Contains(err.Error(), "Signature") {
				t.Errorf("a signature is in %v", err)
			}
		}
	}
	for _, name := range []string{"absent", "missing"} {
		if err := c.Fetch(t.Context(), spec.Transfer{Name: name}, filepath.Join(t.TempDir(), "back")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Fetch(t.Context(), spec.Transfer{Name: "other"}, filepath.Join(t.TempDir(), "back")); err == nil || !strings.Contains(err.Error(), `this task has no input artifact "other"`) {
		t.Error(err)
	}
	if names := w.objects.Names(); len(names) != 0 || w.objects.Uploads() != 0 {
		t.Errorf("left are %v and %d uploads", names, w.objects.Uploads())
	}
}

func TestStrangerEndpointIsNotTrusted(t *testing.T) {
	w, other := newWorld(t, false), newWorld(t, false)
	w.ca = other.ca
	err := w.client("mine").PutResult(t.Context(), []byte("{}"))
	if err == nil || !strings.Contains(err.Error(), "the certificate authority that the pod was given is another's") {
		t.Error(err)
	}
}
