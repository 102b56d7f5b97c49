package taskhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

func TestSignature(t *testing.T) {
	at := time.Unix(1769860800, 0)
	body := []byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview"}`)
	header := http.Header{}
	taskhook.Sign(header, []byte("open sesame"), body, at)

	// docs/hooks.md has this very example.
	docs, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?m)^v1=[0-9a-f]{64}$").FindString(string(docs))
	if got := header.Get(v1alpha1.HeaderSignature); got != example || !strings.Contains(string(docs), "Sluice-Timestamp: "+header.Get(v1alpha1.HeaderTimestamp)) {
		t.Errorf("signature is %s, the documentation has %s", got, example)
	}

	secrets := [][]byte{nil, []byte("an older one"), []byte("open sesame")}
	for name, test := range map[string]struct {
		change func(h http.Header, body *[]byte, at *time.Time)
		want   string
	}{
		"good":           {func(http.Header, *[]byte, *time.Time) {}, ""},
		"a little late":  {func(_ http.Header, _ *[]byte, at *time.Time) { *at = at.Add(4 * time.Minute) }, ""},
		"a little early": {func(_ http.Header, _ *[]byte, at *time.Time) { *at = at.Add(-4 * time.Minute) }, ""},
		"late":           {func(_ http.Header, _ *[]byte, at *time.Time) { *at = at.Add(6 * time.Minute) }, "too old"},
		"early":          {func(_ http.Header, _ *[]byte, at *time.Time) { *at = at.Add(-6 * time.Minute) }, "too old, or the clocks differ"},
		"another body":   {func(_ http.Header, b *[]byte, _ *time.Time) { *b = append(*b, ' ') }, "does not fit"},
		"another time":   {func(h http.Header, _ *[]byte, _ *time.Time) { h.Set(v1alpha1.HeaderTimestamp, "1769860801") }, "does not fit"},
		"no time":        {func(h http.Header, _ *[]byte, _ *time.Time) { h.Del(v1alpha1.HeaderTimestamp) }, "not signed"},
		"no signature":   {func(h http.Header, _ *[]byte, _ *time.Time) { h.Del(v1alpha1.HeaderSignature) }, "not signed"},
		"a strange time": {func(h http.Header, _ *[]byte, _ *time.Time) { h.Set(v1alpha1.HeaderTimestamp, "noon") }, "no number"},
		"another way":    {func(h http.Header, _ *[]byte, _ *time.Time) { h.Set(v1alpha1.HeaderSignature, "v2=00") }, "not of the form"},
	} {
		h, b, now := header.Clone(), append([]byte(nil), body...), at
		test.change(h, &b, &now)
		err := taskhook.Verify(h, secrets, b, now, 0)
		if (err == nil) != (test.want == "") || (err != nil && !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if taskhook.Verify(header, [][]byte{nil, {}}, body, at, 0) == nil {
		t.Error("an empty secret fits")
	}
}

// plugin answers by a function.
type plugin func(r *taskhook.Request) (*taskhook.Response, error)

func (p plugin) Pre(_ context.Context, r *taskhook.Request) (*taskhook.Response, error)  { return p(r) }
func (p plugin) Post(_ context.Context, r *taskhook.Request) (*taskhook.Response, error) { return p(r) }

var quiet = slog.New(slog.DiscardHandler)

func post(t *testing.T, h http.Handler, body string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func review(t *testing.T, point v1alpha1.Point) string {
	t.Helper()
	data, err := json.Marshal(v1alpha1.TaskReview{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview},
		Request:  hooktest.Sample("test", point, "u1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestHandlerTurnsFaultsIntoStatus500(t *testing.T) {
	for name, test := range map[string]struct {
		plugin plugin
		status int
		want   string
	}{
		"an error":     {func(*taskhook.Request) (*taskhook.Response, error) { return nil, errors.New("no disk") }, 500, "no disk"},
		"a panic":      {func(*taskhook.Request) (*taskhook.Response, error) { panic("oh no") }, 500, "the plugin panicked: oh no"},
		"a bad answer": {func(*taskhook.Request) (*taskhook.Response, error) { return taskhook.Done(), nil }, 500, "response.decision"},
		"what is no JSON": {func(*taskhook.Request) (*taskhook.Response, error) {
			return taskhook.Run(map[string]any{"f": func() {}}), nil
		}, 500, "cannot be written"},
		"no answer": {func(*taskhook.Request) (*taskhook.Response, error) { return nil, nil }, 200, `"decision":"Run"`}, //nolint:nilnil // allowed
	} {
		status, text := post(t, taskhook.Handler(test.plugin, taskhook.Options{Logger: quiet}), review(t, v1alpha1.Pre))
		if status != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: %d %s, want %d and %q", name, status, text, test.status, test.want)
		}
	}
}

func TestHandlerRefuses(t *testing.T) {
	h := taskhook.Handler(greeter{}, taskhook.Options{Logger: quiet, MaxBytes: 64 << 10})
	for body, want := range map[string]string{
		"":                                 "400 the request is not JSON",
		"[]":                               "400 the request is not JSON",
		`{"kind":"Pod","apiVersion":"v1"}`: "400 apiVersion: must be",
		`{"kind":"TaskReviewList","apiVersion":"sluice.dev/v1alpha1","items":[{}]}`: "400 items[0].request: is missing",
		strings.Repeat(" ", 65<<10): "413 the request has more than 65536 bytes",
	} {
		status, text := post(t, h, body)
		if got := fmt.Sprint(status, " ", text); !strings.HasPrefix(got, want) {
			t.Errorf("%.40q: %s, want %s", body, got, want)
		}
	}
}

// One review of a list that cannot be answered does not spoil the others.
func TestHandlerAnswersListsOneByOne(t *testing.T) {
	p := plugin(func(r *taskhook.Request) (*taskhook.Response, error) {
		if r.UID == "b" {
			panic("oh no")
		}
		return taskhook.Run(map[string]any{"template": string(r.Task.TemplateSpec)}), nil
	})
	list := v1alpha1.TaskReviewList{
		TypeMeta:  v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReviewList},
		Templates: map[string]json.RawMessage{"d1": json.RawMessage(`{"name":"x"}`)},
	}
	points := map[string]v1alpha1.Point{}
	for _, uid := range []string{"a", "b", "c"} {
		r := hooktest.Sample("test", v1alpha1.Pre, uid)
		r.Task.TemplateSpec, r.Task.TemplateDigest = nil, map[string]string{"a": "d1", "b": "d1", "c": "d2"}[uid]
		list.Items = append(list.Items, v1alpha1.TaskReviewItem{Request: r})
		points[uid] = v1alpha1.Pre
	}
	body, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	status, text := post(t, taskhook.Handler(p, taskhook.Options{Logger: quiet}), string(body))
	if status != http.StatusOK {
		t.Fatal(status, text)
	}
	got, err := v1alpha1.DecodeResponseList([]byte(text), points)
	if err != nil {
		t.Fatal(err)
	}
	if a := got["a"]; a.Err != nil || a.Response.Placeholders["template"] != `{"name":"x"}` {
		t.Errorf("a: %+v", a)
	}
	if b := got["b"]; b.Err == nil || b.Err.Error() != "the plugin failed: the plugin panicked: oh no" {
		t.Errorf("b: %+v", b)
	}
	if c := got["c"]; c.Err != nil || c.Response.Template != v1alpha1.TemplateSend {
		t.Errorf("c: %+v", c)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	entered, ended := make(chan struct{}), make(chan error, 1)
	slow := plugin(func(*taskhook.Request) (*taskhook.Response, error) {
		close(entered)
		<-ctx.Done() // it is asked to end while it works; the answer is still sent
		return taskhook.Run(nil), nil
	})
	go func() { ended <- taskhook.ServeListener(ctx, listener, slow, taskhook.Options{Logger: quiet}) }()
	go func() {
		<-entered
		cancel(nil)
	}()
	response, err := http.Post("http://"+listener.Addr().String(), "application/json", strings.NewReader(review(t, v1alpha1.Pre)))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if _, err := v1alpha1.DecodeResponse(text, v1alpha1.Pre, "u1"); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
