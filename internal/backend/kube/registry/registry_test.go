package registry

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
)

// world is a registry that counts what it is asked, and lets in who has a password where there is one.
type world struct {
	host     string
	asked    atomic.Int64
	password atomic.Pointer[string]
	hang     atomic.Pointer[chan struct{}] // answers wait for it
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	handler := memory.New(memory.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		w.asked.Add(1)
		if hang := w.hang.Load(); hang != nil {
			<-*hang
		}
		if want := w.password.Load(); want != nil {
			if _, got, _ := in.BasicAuth(); got != *want {
				out.Header().Set("WWW-Authenticate", `Basic realm="x"`)
				http.Error(out, "no", http.StatusUnauthorized)
				return
			}
		}
		handler.ServeHTTP(out, in)
	}))
	t.Cleanup(server.Close)
	w.host = strings.TrimPrefix(server.URL, "http://")
	return w
}

func image(t *testing.T, c v1.Config) v1.Image {
	t.Helper()
	i, err := mutate.Config(empty.Image, c)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// push stores an image or index and gives its name.
func (w *world) push(t *testing.T, as string, what remote.Taggable) string {
	t.Helper()
	ref, err := name.ParseReference(w.host + "/" + as)
	if err != nil {
		t.Fatal(err)
	}
	if index, ok := what.(v1.ImageIndex); ok {
		err = remote.WriteIndex(ref, index)
	} else if one, ok := what.(v1.Image); ok {
		err = remote.Write(ref, one)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ref.String()
}

func TestImage(t *testing.T) {
	w := newWorld(t)
	ref := w.push(t, "a/b:1", image(t, v1.Config{Entrypoint: []string{"/run"}, Cmd: []string{"-x"}, User: "7", WorkingDir: "/w"}))
	want := pod.Image{Entrypoint: []string{"/run"}, Cmd: []string{"-x"}, User: "7", WorkingDir: "/w"}
	now := time.Now()
	images := New(Config{Now: func() time.Time { return now }})
	look := func(ref string) (pod.Image, error) { return images.Image(t.Context(), "ns", nil, "", ref) }
	var asked int64
	for _, step := range []struct {
		name  string
		after time.Duration
		asks  bool
	}{{"first", 0, true}, {"again", time.Minute, false}, {"when the tag may have moved", tagLife, true}} {
		now = now.Add(step.after)
		got, err := look(ref)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if n := w.asked.Load(); (n > asked) != step.asks {
			t.Errorf("%s: the registry was asked %d times after %d", step.name, n, asked)
		} else {
			asked = n
		}
	}
	w.push(t, "a/b:1", image(t, v1.Config{Cmd: []string{"new"}}))
	now = now.Add(tagLife)
	if got, err := look(ref); err != nil || len(got.Cmd) != 1 || got.Cmd[0] != "new" {
		t.Errorf("after the tag has moved: %+v, %v", got, err)
	}
}

func TestFailuresAreRemembered(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	images := New(Config{Now: func() time.Time { return now }})
	ref := w.host + "/none:1"
	if _, err := images.Image(t.Context(), "ns", nil, "", ref); err == nil {
		t.Fatal("there is no such image")
	}
	asked := w.asked.Load()
	if _, err := images.Image(t.Context(), "ns", nil, "", ref); err == nil || w.asked.Load() != asked {
		t.Errorf("%v; asked %d times after %d", err, w.asked.Load(), asked)
	}
	w.push(t, "none:1", image(t, v1.Config{Cmd: []string{"x"}}))
	now = now.Add(failureLife)
	if _, err := images.Image(t.Context(), "ns", nil, "", ref); err != nil {
		t.Error(err)
	}
	if _, err := images.Image(t.Context(), "ns", nil, "", "Not A Reference"); err == nil {
		t.Error("accepted")
	}
}

// broken is the way to a registry while there is none.
type broken struct{ asked int }

func (b *broken) RoundTrip(*http.Request) (*http.Response, error) {
	b.asked++
	return nil, errors.New("no route")
}

func TestUnreachable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {&url.Error{Err: errors.New("no route")}, true}, {fmt.Errorf("x: %w", &url.Error{Err: context.DeadlineExceeded}), true},
		{&url.Error{Err: context.Canceled}, false}, {&transport.Error{StatusCode: 500}, false}, {errors.New("no manifest"), false},
	} {
		if got := unreachable(test.err); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
	}
}

// One image after the other of a registry that cannot be reached does not wait for it.
func TestRegistriesOutOfReach(t *testing.T) {
	way, now := &broken{}, time.Now()
	images := New(Config{Transport: way, Now: func() time.Time { return now }})
	asks := func(ref string) bool {
		before := way.asked
		if _, err := images.Image(t.Context(), "ns", nil, "", ref); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Error(err)
		}
		return way.asked > before
	}
	for _, step := range []struct {
		ref   string
		after time.Duration
		asks  bool
	}{
		{"away.example/a:1", 0, true}, {"away.example/b:1", 0, false}, {"other.example/b:1", 0, true},
		{"away.example/c:1", failureLife, true}, {"away.example/d:1", failureLife, false}, {"away.example/e:1", failureLife, true},
	} {
		now = now.Add(step.after)
		if got := asks(step.ref); got != step.asks {
			t.Errorf("%s after %s: asked %v", step.ref, step.after, got)
		}
	}
}

func TestIndex(t *testing.T) {
	w := newWorld(t)
	add := func(system, arch, cmd string) mutate.IndexAddendum {
		return mutate.IndexAddendum{Add: image(t, v1.Config{Cmd: []string{cmd}}), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: arch}}}
	}
	both := w.push(t, "both:1", mutate.AppendManifests(empty.Index, add("windows", "amd64", "w"), add("linux", "arm64", "arm"), add("linux", "amd64", "amd")))
	arm := w.push(t, "arm:1", mutate.AppendManifests(empty.Index, add("unknown", "unknown", "attestation"), add("linux", "arm64", "arm")))
	none := w.push(t, "none:1", mutate.AppendManifests(empty.Index, add("windows", "amd64", "w")))
	for ref, want := range map[string]string{both: "amd", arm: "arm", none: ""} {
		got, err := New(Config{}).Image(t.Context(), "ns", nil, "", ref)
		if want == "" {
			if err == nil {
				t.Errorf("%s: %+v", ref, got)
			}
		} else if err != nil || got.Cmd[0] != want {
			t.Errorf("%s: %+v %v, want %s", ref, got, err, want)
		}
	}
}

func TestPullSecrets(t *testing.T) {
	w := newWorld(t)
	ref := w.push(t, "team/x:1", image(t, v1.Config{Cmd: []string{"x"}}))
	password := "right"
	w.password.Store(&password)
	secret := func(name, key, format string, args ...any) runtime.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string][]byte{key: fmt.Appendf(nil, format, args...)}}
	}
	basic := func(p string) string { return base64.StdEncoding.EncodeToString([]byte("me:" + p)) }
	client := fake.NewClientset(
		secret("right", corev1.DockerConfigJsonKey, `{"auths":{"https://%s/v1/":{"auth":%q}}}`, w.host, basic("right")),
		secret("wrong", corev1.DockerConfigJsonKey, `{"auths":{%q:{"username":"me","password":"wrong"}}}`, w.host),
		secret("old", corev1.DockerConfigKey, `{%q:{"username":"me","password":"right"}}`, w.host),
		secret("path", corev1.DockerConfigJsonKey, `{"auths":{%q:{"auth":%q},%q:{"auth":%q},%q:{"auth":%q}}}`,
			w.host, basic("wrong"), w.host+"/team", basic("right"), w.host+"/te", basic("wrong")),
		secret("other", corev1.DockerConfigJsonKey, `{"auths":{"ghcr.io":{"auth":%q}}}`, basic("right")),
		secret("broken", corev1.DockerConfigJsonKey, `{"auths":{"x":"hunter2"}}`),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "right"}}},
	)
	for _, test := range []struct {
		name    string
		secrets []string
		account string
		ok      bool
	}{
		{"none", nil, "", false},
		{"the right one", []string{"right"}, "", true},
		{"the old form", []string{"old"}, "", true},
		{"one after a wrong and a missing one", []string{"wrong", "missing", "right"}, "", true},
		{"the wrong one", []string{"wrong"}, "", false},
		{"of another registry", []string{"other"}, "", false},
		{"by path", []string{"path"}, "", true},
		{"of the service account", nil, "sa", true},
		{"not of the service account where the pod has its own", []string{"wrong"}, "sa", false},
		{"broken", []string{"broken"}, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			images := New(Config{Client: client})
			_, err := images.Image(t.Context(), "ns", test.secrets, test.account, ref)
			if (err == nil) != test.ok {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
			if _, err := images.Image(t.Context(), "elsewhere", test.secrets, test.account, ref); err == nil {
				t.Error("another namespace gets it from memory")
			}
		})
	}
}

// Many who ask for the same image at once ask the registry once, and nobody waits longer than they want to.
func TestTurns(t *testing.T) {
	w := newWorld(t)
	ref := w.push(t, "x:1", image(t, v1.Config{Cmd: []string{"x"}}))
	if _, err := New(Config{}).Image(t.Context(), "ns", nil, "", ref); err != nil {
		t.Fatal(err)
	}
	before := w.asked.Load()
	if _, err := New(Config{}).Image(t.Context(), "ns", nil, "", ref); err != nil {
		t.Fatal(err)
	}
	one := w.asked.Load() - before
	hang := make(chan struct{})
	w.hang.Store(&hang)
	images := New(Config{})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := images.Image(t.Context(), "ns", nil, "", ref); err != nil {
				t.Error(err)
			}
		})
	}
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	if _, err := images.Image(gone, "ns", nil, "", ref); err == nil {
		t.Error("who has gone got an answer")
	}
	close(hang)
	all.Wait()
	if n := w.asked.Load() - before - one; n > 2*one { // once, and perhaps once more for who had gone
		t.Errorf("the registry was asked %d times, and %d are enough", n, one)
	}
}

func TestTransport(t *testing.T) {
	client := http.Client{Transport: publicTransport()}
	for _, at := range []string{"http://169.254.169.254/", "http://[fe80::1%25lo]/", "http://0.0.0.0/"} {
		if answer, err := client.Get(at); err == nil {
			answer.Body.Close()
			t.Errorf("%s was asked", at)
		} else if !strings.Contains(err.Error(), "no address of a registry") {
			t.Errorf("%s: %v", at, err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := out.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, err := New(Config{}).Image(t.Context(), "ns", nil, "", strings.TrimPrefix(server.URL, "http://")+"/x:1")
	if err == nil || !strings.Contains(err.Error(), "too long") {
		t.Error(err)
	}
}

func TestSameHost(t *testing.T) {
	for _, test := range []struct {
		pattern, host string
		same          bool
	}{
		{"docker.io", "index.docker.io", true}, {"index.docker.io", "index.docker.io", true}, {"ghcr.io", "ghcr.io", true},
		{"*.example.com", "a.example.com", true}, {"*.example.com", "a.b.example.com", false}, {"example.com", "a.example.com", false},
		{"h:5000", "h:5000", true}, {"h", "h:5000", false},
	} {
		if got := sameHost(test.pattern, test.host); got != test.same {
			t.Errorf("%s, %s: %v", test.pattern, test.host, got)
		}
	}
}
