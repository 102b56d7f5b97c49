package hook

import (
	"context"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

func TestAsksAndAnswers(t *testing.T) {
	var got *v1alpha1.TaskReviewRequest
	server := answering(t, func(r *v1alpha1.TaskReviewRequest) *v1alpha1.TaskReviewResponse {
		got = r
		return &v1alpha1.TaskReviewResponse{Decision: v1alpha1.Run, Placeholders: map[string]any{"n": 3, "x": 1.5}, State: []byte(`{"a":1}`)}
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	want := engine.Answered{Node: 7, Point: engine.Pre, Hook: "lineage", Answer: engine.Answer{
		Decision: engine.DecideRun, Placeholders: map[string]any{"n": int64(3), "x": 1.5}, State: []byte(`{"a":1}`),
	}}
	if diff := cmp.Diff(want, sink.next(t)); diff != "" {
		t.Error(diff)
	}
	if got.Task.Template != "train" || string(got.Task.TemplateSpec) != string(trainTemplate.Source) || got.Workflow.Name != "flow" {
		t.Errorf("the plugin was shown %+v", got)
	}
}

func TestFailedCallsAreExplained(t *testing.T) {
	server := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "database is down", http.StatusInternalServerError)
	})
	d, sink := dispatcher(t, Config{}, load(t, httpHook(server.URL)))
	d.Ask(context.Background(), testRun, testProgram, ask("u1"))
	if got, want := sink.next(t).Failure, "HTTP 500: database is down, attempt 3 of 3"; got != want {
		t.Errorf("failure is %q, want %q", got, want)
	}
	want := []string{
		"waiting for hook lineage: HTTP 500: database is down, attempt 1",
		"waiting for hook lineage: HTTP 500: database is down, attempt 2",
	}
	if diff := cmp.Diff(want, sink.messages()); diff != "" {
		t.Error(diff)
	}
}
