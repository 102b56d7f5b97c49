package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/artifact/artifacttest"
	"github.com/sluice-ml/sluice/internal/program"
)

// testStore is what every store that can be written must do. listed is false for those that know no trees.
func testStore(t *testing.T, block program.JSON, opts Options, listed bool) {
	t.Helper()
	ctx := t.Context()
	s, err := Open(block, opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of nothing: %v", err)
	}
	if _, err := s.Get(ctx, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Get of nothing: %v", err)
	}
	if err := s.Delete(ctx, ""); err != nil {
		t.Errorf("Delete of nothing: %v", err)
	}
	for _, size := range []int64{5, -1} {
		if err := s.Put(ctx, "", strings.NewReader("hello"), size); err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || string(data) != "hello" {
			t.Errorf("Get: %q %v", data, err)
		}
	}
	if info, err := s.Stat(ctx, ""); err != nil || info.Size != 5 || info.Tree {
		t.Errorf("Stat: %+v %v", info, err)
	}
	if err := s.Delete(ctx, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(ctx, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat after Delete: %v", err)
	}
	testTransfers(t, block, opts, listed)
}

// testTransfers saves and fetches a file and a folder in every form.
func testTransfers(t *testing.T, block program.JSON, opts Options, listed bool) {
	t.Helper()
	ctx := t.Context()
	from := t.TempDir()
	file, folder := filepath.Join(from, "file"), filepath.Join(from, "folder")
	content := strings.Repeat("content ", 100)
	write := func(name, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(file, content)
	write(filepath.Join(folder, "a"), "1")
	write(filepath.Join(folder, "b", "c"), "2")
	for _, archive := range []string{"tar", "zip", "none"} {
		for _, what := range []string{file, folder} {
			if what == folder && archive == "none" && !listed {
				continue
			}
			t.Run(archive+" "+filepath.Base(what), func(t *testing.T) {
				a := program.Artifact{Name: "x", Store: block, Archive: archive}
				saved, err := Save(ctx, what, "name", a, opts)
				if err != nil {
					t.Fatal(err)
				}
				again, err := Save(ctx, what, "name", a, opts)
				if err != nil || again.Digest != saved.Digest || again.Size != saved.Size || saved.Size == 0 {
					t.Errorf("not the same again: %+v %+v %v", saved, again, err)
				}
				local := filepath.Join(t.TempDir(), "local")
				if err := Fetch(ctx, saved, local, opts); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tree(t, what), tree(t, local)); diff != "" {
					t.Error(diff)
				}
				if ok, err := Exists(ctx, saved, opts); !ok || err != nil {
					t.Errorf("Exists: %v %v", ok, err)
				}
				if what == folder && archive == "none" {
					testListing(t, saved, opts)
				}
				s, err := OpenArtifact(saved, opts)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Delete(ctx, ""); err != nil {
					t.Fatal(err)
				}
				if ok, err := Exists(ctx, saved, opts); ok || err != nil {
					t.Errorf("Exists after Delete: %v %v", ok, err)
				}
			})
		}
	}
}

func testListing(t *testing.T, a program.Artifact, opts Options) {
	t.Helper()
	s, err := OpenArtifact(a, opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Info{{Key: "a", Size: 1}, {Key: "b/c", Size: 1}}, got); diff != "" {
		t.Error(diff)
	}
	a.SubPath = "b"
	local := filepath.Join(t.TempDir(), "local")
	if err := Fetch(t.Context(), a, local, opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"./": "", "c": "2"}, tree(t, local)); diff != "" {
		t.Error(diff)
	}
}

func block(t *testing.T, kind string, body map[string]any) program.JSON {
	t.Helper()
	data, err := json.Marshal(map[string]any{kind: body})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFolderStore(t *testing.T) {
	testStore(t, block(t, "folder", map[string]any{"path": filepath.Join(t.TempDir(), "deep", "x")}), Options{}, true)
}

func TestHTTPStore(t *testing.T) {
	o := artifacttest.NewObjects()
	server := httptest.NewServer(o)
	defer server.Close()
	opts := Options{Secrets: func(name, key string) (string, error) { return name + "." + key, nil }}
	testStore(t, block(t, "http", map[string]any{
		"url": server.URL + "/x.tgz", "headers": []any{map[string]any{"name": "X-Test", "value": "yes"}},
		"auth": map[string]any{"basicAuth": map[string]any{
			"usernameSecret": map[string]any{"name": "s", "key": "user"}, "passwordSecret": map[string]any{"name": "s", "key": "pass"},
		}},
	}), opts, false)
	for _, h := range o.Seen() {
		if h.Get("X-Test") != "yes" || h.Get("Authorization") != "Basic cy51c2VyOnMucGFzcw==" {
			t.Fatalf("headers: %v", h)
		}
	}
}

func TestHTTPStoreSaysWhatIsWrong(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not for you", http.StatusForbidden)
	}))
	defer server.Close()
	err := Fetch(t.Context(), program.Artifact{Name: "x", URI: server.URL + "/x"}, filepath.Join(t.TempDir(), "x"), Options{})
	if err == nil || !strings.Contains(err.Error(), "status 403 Forbidden: not for you") {
		t.Error(err)
	}
}

func TestOAuth2(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "id" || password != "se%2Fcret" || r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "a b" || r.FormValue("k") != "v" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, `{"access_token":"tok"}`)
	})
	mux.HandleFunc("GET /x", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	server := httptest.NewServer(mux)
	defer server.Close()
	secrets := map[string]string{"id": "id", "secret": "se/cret", "url": server.URL + "/token"}
	ref := func(key string) map[string]any { return map[string]any{"name": "s", "key": key} }
	a := program.Artifact{Store: block(t, "http", map[string]any{"url": server.URL + "/x", "auth": map[string]any{"oauth2": map[string]any{
		"clientIDSecret": ref("id"), "clientSecretSecret": ref("secret"), "tokenURLSecret": ref("url"), "scopes": []string{"a", "b"},
		"endpointParams": []any{map[string]any{"key": "k", "value": "v"}},
	}}})}
	local := filepath.Join(t.TempDir(), "x")
	if err := Fetch(t.Context(), a, local, Options{Secrets: func(_, key string) (string, error) { return secrets[key], nil }}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{".": "Bearer tok"}, tree(t, local)); diff != "" {
		t.Error(diff)
	}
}

func TestS3Store(t *testing.T) {
	server := httptest.NewServer(artifacttest.NewObjects())
	defer server.Close()
	opts := Options{Secrets: func(name, key string) (string, error) { return "secret" + key, nil }}
	testStore(t, block(t, "s3", map[string]any{
		"endpoint": strings.TrimPrefix(server.URL, "http://"), "insecure": true, "bucket": "bucket", "key": "deep/x", "region": "us-east-1",
		"accessKeySecret": map[string]any{"name": "s", "key": "a"}, "secretKeySecret": map[string]any{"name": "s", "key": "b"},
	}), opts, true)
}

func TestGitStore(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	repo := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		cmd.Env = append(cmd.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main")
	for i, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(repo, "f"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "f")
		git("commit", "-qm", text)
		git("tag", fmt.Sprintf("v%d", i+1))
	}
	for name, test := range map[string]struct {
		body map[string]any
		want string
	}{
		"newest":            {map[string]any{"repo": repo}, "two"},
		"a revision":        {map[string]any{"repo": repo, "revision": "v1"}, "one"},
		"shallow":           {map[string]any{"repo": "file://" + repo, "depth": 1, "revision": "v1"}, "one"},
		"a single branch":   {map[string]any{"repo": repo, "branch": "main", "singleBranch": true}, "two"},
		"with fetched refs": {map[string]any{"repo": repo, "fetch": []string{"refs/tags/v1:refs/tags/v1"}, "revision": "v1"}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			local := filepath.Join(t.TempDir(), "x")
			a := program.Artifact{Store: block(t, "git", test.body)}
			if err := Fetch(t.Context(), a, local, Options{}); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(filepath.Join(local, "f")); err != nil || string(data) != test.want {
				t.Errorf("%q %v", data, err)
			}
			a.SubPath = "f"
			if err := Fetch(t.Context(), a, local, Options{}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{".": test.want}, tree(t, local)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct{ block, want string }{
		"two kinds":       {`{"s3":{},"http":{}}`, "exactly one kind of store, has 2: http, s3"},
		"no kind":         {`{}`, "exactly one kind"},
		"no object":       {`[]`, "not an object"},
		"an unknown kind": {`{"hdfs":{}}`, `unknown kind of artifact store "hdfs": known are folder, git, http, raw, s3`},
		"relative folder": {`{"folder":{"path":"x"}}`, "must be absolute"},
		"no URL":          {`{"http":{"url":"ftp://x"}}`, "must begin with http"},
		"no repository":   {`{"git":{}}`, "repo is missing"},
		"an option":       {`{"git":{"repo":"--upload-pack=evil"}}`, "begins like an option"},
		"no bucket":       {`{"s3":{"key":"x"}}`, "bucket is missing"},
		"unknown secrets": {`{"s3":{"bucket":"b","key":"x","accessKeySecret":{"name":"n","key":"k"}}}`, "accessKeySecret: secret n: no secrets are known here"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(program.JSON(test.block), Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestFoldersStayInTheirRoots(t *testing.T) {
	root := t.TempDir()
	opts := Options{Roots: []string{root}}
	for path, may := range map[string]bool{
		root: true, root + "/run/x": true, root + "/a/../x": true,
		root + "x": false, root + "/../x": false, "/": false, "/etc/passwd": false,
	} {
		for name, a := range map[string]program.Artifact{
			"block":   {Store: block(t, "folder", map[string]any{"path": path})},
			"path":    {URI: path},
			"address": {URI: "file://" + path},
		} {
			_, err := OpenArtifact(a, opts)
			if (err == nil) != may || err != nil && (!errors.Is(err, ErrOutside) || !Lasting(err)) {
				t.Errorf("%s %s: got %v, want allowed %v", name, path, err, may)
			}
		}
	}
	if _, err := OpenArtifact(program.Artifact{URI: "/etc/passwd"}, Options{Roots: []string{}}); !errors.Is(err, ErrOutside) {
		t.Error("no root is no folder, and not any:", err)
	}
}

// Whoever opens stores for others lends its own credentials for no other bucket than it says.
func TestOwnCredentials(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "key")
	secrets := func(name, _ string) (string, error) { return name, nil }
	named := map[string]any{"accessKeySecret": map[string]any{"name": "a", "key": "k"}, "secretKeySecret": map[string]any{"name": "b", "key": "k"}}
	for name, test := range map[string]struct {
		bucket string
		more   map[string]any
		own    func(string) bool
		may    bool
	}{
		"own bucket":              {"ours", nil, func(b string) bool { return b == "ours" }, true},
		"another":                 {"theirs", nil, func(b string) bool { return b == "ours" }, false},
		"another, with a role":    {"theirs", map[string]any{"roleARN": "arn:aws:iam::1:role/x"}, func(string) bool { return false }, false},
		"another, with Secrets":   {"theirs", named, func(string) bool { return false }, true},
		"any, where nothing says": {"theirs", nil, nil, true},
	} {
		fields := map[string]any{"bucket": test.bucket, "key": "x", "endpoint": "localhost:1"}
		maps.Copy(fields, test.more)
		_, err := Open(block(t, "s3", fields), Options{Secrets: secrets, OwnCredentials: test.own})
		if (err == nil) != test.may || err != nil && (!errors.Is(err, ErrNoSecret) || !Lasting(err)) {
			t.Errorf("%s: %v, want allowed %v", name, err, test.may)
		}
	}
}

// HTTP stores are reached by the given transport, so that it can say who may be reached.
func TestTransportOfHTTPStores(t *testing.T) {
	refused := errors.New("not that one")
	s, err := Open(block(t, "http", map[string]any{"url": "http://169.254.169.254/latest"}), Options{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, refused },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), ""); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestSecretsThatCannotBeReadNow(t *testing.T) {
	for what, test := range map[string]struct {
		err  error
		want bool
	}{
		"missing":     {errors.New("there is none"), true},
		"unreachable": {fmt.Errorf("%w: no connection", ErrNotNow), false},
	} {
		_, err := Open(program.JSON(`{"s3":{"bucket":"b","key":"x","accessKeySecret":{"name":"n","key":"k"}}}`),
			Options{Secrets: func(string, string) (string, error) { return "", test.err }})
		if !errors.Is(err, test.err) || Lasting(err) != test.want {
			t.Errorf("%s: got %v, lasting %v", what, err, Lasting(err))
		}
	}
}

func TestFolderKeysStayInside(t *testing.T) {
	s, err := Open(block(t, "folder", map[string]any{"path": t.TempDir()}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), "../x"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestBlockOf(t *testing.T) {
	for uri, want := range map[string]string{
		"/a/b":                      `{"folder":{"path":"/a/b"}}`,
		"file:///a/b":               `{"folder":{"path":"/a/b"}}`,
		"https://h/x":               `{"http":{"url":"https://h/x"}}`,
		"s3://b/k/x?region=eu":      `{"s3":{"bucket":"b","key":"k/x","region":"eu"}}`,
		"minio://b/k?endpoint=h:90": `{"s3":{"bucket":"b","endpoint":"h:90","key":"k"}}`,
	} {
		got, err := BlockOf(uri)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s %v", uri, got, err)
		}
	}
	for _, uri := range []string{"", "gs://b/k", "x y"} {
		if _, err := BlockOf(uri); err == nil {
			t.Errorf("%q is accepted", uri)
		}
	}
}

func TestWithKey(t *testing.T) {
	for _, test := range [][3]string{
		{`{"s3":{"bucket":"b","key":"old"}}`, "new/key", `{"s3":{"bucket":"b","key":"new/key"}}`},
		{`{"folder":{"path":"/a/old"}}`, "new", `{"folder":{"path":"/a/new"}}`},
		{`{"folder":{"path":"/a/old"}}`, "../../new", `{"folder":{"path":"/a/new"}}`},
		{`{"http":{"url":"http://h/a/old"}}`, "new", `{"http":{"url":"http://h/a/new"}}`},
	} {
		got, err := WithKey(program.JSON(test[0]), test[1])
		if err != nil || string(got) != test[2] {
			t.Errorf("%v: %s %v", test, got, err)
		}
	}
}
