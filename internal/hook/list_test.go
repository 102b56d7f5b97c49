package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// listServer records the lists that it gets, and answers each item by a function.
type listServer struct {
	*httptest.Server
	mu    sync.Mutex
	lists []*v1alpha1.TaskReviewList
}

func newListServer(t *testing.T, answer func(call int, r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem) *listServer {
	s := &listServer{}
	s.Server = serving(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		list, err := v1alpha1.DecodeReviewList(data, v1alpha1.RefuseUnknown)
		if err != nil {
			t.Errorf("bad request: %v", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.lists = append(s.lists, list)
		n := len(s.lists)
		s.mu.Unlock()
		out := v1alpha1.TaskReviewList{TypeMeta: list.TypeMeta}
		for _, item := range list.Items {
			out.Items = append(out.Items, answer(n, item.Request))
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	return s
}

func run(r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem {
	return v1alpha1.TaskReviewItem{Response: &v1alpha1.TaskReviewResponse{UID: r.UID, Decision: v1alpha1.Run}}
}

// A fan-out goes in lists, each template is sent once, and each review gets its own answer.
func TestLists(t *testing.T) {
	server := newListServer(t, func(_ int, r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem {
		item := run(r)
		item.Response.Placeholders = map[string]any{"uid": r.UID}
		return item
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, "batch: 50", "maxConcurrency: 1")))
	const n = 500
	for i := range n {
		cmd := ask(fmt.Sprintf("u%d", i))
		cmd.Node = engine.NodeID(i)
		d.Ask(context.Background(), testRun, testProgram, cmd)
	}
	for range n {
		if a := sink.next(t); a.Answer.Placeholders["uid"] != fmt.Sprintf("u%d", a.Node) {
			t.Fatalf("node %d got %+v", a.Node, a)
		}
	}
	templates := 0
	for _, list := range server.lists {
		templates += len(list.Templates)
		if len(list.Items) > 50 {
			t.Errorf("a list of %d", len(list.Items))
		}
		for _, item := range list.Items {
			if item.Request.Task.TemplateSpec != nil || item.Request.Task.TemplateDigest == "" {
				t.Fatal("an item of a list has its template in full")
			}
		}
	}
	if templates != 1 {
		t.Errorf("the template was sent %d times", templates)
	}
	if len(server.lists) > 2*n/50 {
		t.Errorf("%d reviews took %d lists", n, len(server.lists))
	}
}

// What is wrong with one answer of a list costs that review alone a retry.
func TestOneBadAnswerDoesNotSpoilAList(t *testing.T) {
	server := newListServer(t, func(call int, r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem {
		switch {
		case call > 1:
			return run(r)
		case r.UID == "u1":
			return v1alpha1.TaskReviewItem{Failure: &v1alpha1.TaskReviewFailure{UID: "u1", Message: "no space left"}}
		case r.UID == "u2":
			return v1alpha1.TaskReviewItem{} // none at all
		case r.UID == "u3":
			return v1alpha1.TaskReviewItem{Response: &v1alpha1.TaskReviewResponse{UID: "u3", Decision: "Maybe"}}
		}
		return run(r)
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, "batch: 10", "retry: {limit: 1, backoff: {duration: 1ms}}")))
	for i := range 5 {
		d.Ask(context.Background(), testRun, testProgram, ask(fmt.Sprintf("u%d", i)))
	}
	for range 5 {
		if a := sink.next(t); a.Failure != "" {
			t.Errorf("failed: %s", a.Failure)
		}
	}
	notes := fmt.Sprint(sink.messages())
	wantText(t, "the notes", notes, "the plugin failed: no space left, attempt 1", `no answer for uid "u2"`, `"Maybe"`)
}

// A plugin that has lost its templates asks for them, which is no failure.
func TestRestartedPluginGetsItsTemplatesAgain(t *testing.T) {
	options := taskhook.Options{Logger: slog.New(slog.DiscardHandler)}
	handler := taskhook.Handler(echo{}, options)
	var mu sync.Mutex
	server := serving(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	})
	for _, batch := range []string{"batch: 5", "batch: 1"} {
		d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, batch, "retry: {limit: 0}")))
		for i := range 3 {
			d.Ask(context.Background(), testRun, testProgram, ask(fmt.Sprintf("u%d", i)))
			a := sink.next(t)
			if a.Failure != "" || a.Answer.Placeholders["template"] != string(trainTemplate.Source) {
				t.Errorf("%s, review %d: %+v", batch, i, a)
			}
			mu.Lock()
			handler = taskhook.Handler(echo{}, options) // restarted: it knows nothing
			mu.Unlock()
		}
	}
}

// Polls of pending reviews go together.
func TestPollsCoalesce(t *testing.T) {
	server := newListServer(t, func(_ int, r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem {
		if time.Since(r.Asked) < 300*time.Millisecond {
			return v1alpha1.TaskReviewItem{Response: &v1alpha1.TaskReviewResponse{UID: r.UID, Pending: &v1alpha1.Pending{RetryAfterSeconds: 0.1}}}
		}
		return run(r)
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, "batch: 100")))
	const n = 60
	for i := range n {
		d.Ask(context.Background(), testRun, testProgram, ask(fmt.Sprintf("u%d", i)))
	}
	for range n {
		sink.next(t)
	}
	if calls := len(server.lists); calls > n/2 {
		t.Errorf("%d reviews that were polled about three times took %d calls", n, calls)
	}
}

// What is too much for one message goes in several.
func TestLargeListsAreSplit(t *testing.T) {
	server := newListServer(t, func(_ int, r *v1alpha1.TaskReviewRequest) v1alpha1.TaskReviewItem { return run(r) })
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL, "batch: 100", "maxConcurrency: 1")))
	const n = 12
	for i := range n {
		cmd := ask(fmt.Sprintf("u%d", i))
		cmd.Inputs = engine.Inputs{Parameters: map[string]any{"big": strings.Repeat("x", 1<<20)}}
		d.Ask(context.Background(), testRun, testProgram, cmd)
	}
	for range n {
		if a := sink.next(t); a.Failure != "" {
			t.Fatal(a.Failure)
		}
	}
	for _, list := range server.lists {
		if len(list.Items) > 8 {
			t.Errorf("a list of %d MiB", len(list.Items))
		}
	}
}
