package hook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// told collects what a dispatcher tells.
type told struct {
	mu      sync.Mutex
	notes   []string
	answers chan engine.Answered
}

func newTold() *told { return &told{answers: make(chan engine.Answered, 10000)} }

func (s *told) Tell(_ string, e engine.Event) {
	switch {
	case e.Noted != nil:
		s.mu.Lock()
		s.notes = append(s.notes, e.Noted.Message)
		s.mu.Unlock()
	case e.Answered != nil:
		s.answers <- *e.Answered
	}
}

func (s *told) messages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.notes...)
}

// next waits for the next answer.
func (s *told) next(t *testing.T) engine.Answered {
	t.Helper()
	select {
	case a := <-s.answers:
		return a
	case <-time.After(30 * time.Second):
		t.Fatalf("no answer; told so far: %q", s.messages())
		return engine.Answered{}
	}
}

// load reads one document, or ends the test.
func load(t *testing.T, yaml string) []Hook {
	t.Helper()
	hooks, err := LoadFile("hooks.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

// httpHook is a document for a plugin at a URL, with more lines for its spec.
func httpHook(url string, lines ...string) string {
	doc := "apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: lineage}\nspec:\n  http: {url: \"" + url + "\"}\n"
	if len(lines) == 0 {
		lines = []string{"retry: {limit: 2, backoff: {duration: 1ms}}"}
	}
	for _, line := range lines {
		doc += "  " + line + "\n"
	}
	return doc
}

// dispatcher makes one that ends with the test.
func dispatcher(t *testing.T, cfg Config, hooks []Hook) (*Dispatcher, *told) {
	t.Helper()
	registry, err := NewRegistry(hooks)
	if err != nil {
		t.Fatal(err)
	}
	sink := newTold()
	cfg.Registry, cfg.Sink = registry, sink
	d, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d, sink
}

var testRun = engine.Run{Name: "flow", UID: "run-1", Namespace: "ml", Labels: map[string]string{"team": "a"}}

var testProgram = &program.Program{Language: "argo", Name: "flow", Templates: map[string]*program.Template{}}

var trainTemplate = &program.Template{
	Key: "local/train", Name: "train", Source: program.JSON(`{"name":"train","container":{"image":"alpine"}}`),
}

// ask is a Pre review of a task.
func ask(uid string) engine.AskHook {
	return engine.AskHook{
		Node: 7, Point: engine.Pre, Hook: "lineage", Scope: "Task", UID: uid, Asked: time.Now(),
		Path: "flow.train", Name: "train", Template: trainTemplate,
		Inputs: engine.Inputs{Parameters: map[string]any{"x": "1"}},
	}
}

// askPost is its Post.
func askPost(uid string) engine.AskHook {
	cmd := ask(uid)
	cmd.Point = engine.Post
	cmd.Result = &engine.Result{Phase: engine.SucceededPhase}
	return cmd
}

// answering is a server that answers every review by a function.
func answering(t *testing.T, f func(r *v1alpha1.TaskReviewRequest) *v1alpha1.TaskReviewResponse) *httptest.Server {
	return serving(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		review, err := v1alpha1.DecodeReview(data, v1alpha1.RefuseUnknown)
		if err != nil {
			t.Errorf("bad request: %v", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		response := f(review.Request)
		if response.UID == "" {
			response.UID = review.Request.UID
		}
		writeReview(w, response)
	})
}

func writeReview(w io.Writer, response *v1alpha1.TaskReviewResponse) {
	_ = json.NewEncoder(w).Encode(v1alpha1.TaskReview{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview},
		Response: response,
	})
}

func serving(t *testing.T, f http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server
}

// wantText ends the test unless the text contains all parts.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s is %q, which lacks %q", what, text, part)
		}
	}
}

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cancelOf(uid string) engine.CancelHook {
	return engine.CancelHook{Node: 7, Hook: "lineage", UID: uid}
}
