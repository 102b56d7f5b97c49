package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
)

// What -p gave and what a parameter file gave stay apart when a run is resumed.
func TestOptionsSurviveTheStore(t *testing.T) {
	want := options{
		Options: submission.Options{Parameters: map[string]any{"flag": submission.Given("1"), "file": "1", "number": int64(1), "object": map[string]any{"a": []any{1.5}}},
			Labels: map[string]string{"a": "b"}}, Parallelism: 3,
	}
	args, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := storedOptions(store.Run{Submission: store.Submission{Args: args}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("options (-before +after):\n%s", d)
	}
}

func TestParameterFile(t *testing.T) {
	got, err := parameterFile(store.Document{Name: "p", Data: []byte("a: 1\nb: x\nc: [1, 2.5]\nd: {e: 12345678901234}\n")})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": int64(1), "b": "x", "c": []any{int64(1), 2.5}, "d": map[string]any{"e": int64(12345678901234)}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("parameters (-want +got):\n%s", d)
	}
	for _, text := range []string{"- a\n- b\n", ": :", "just text"} {
		if _, err := parameterFile(store.Document{Name: "p", Data: []byte(text)}); err == nil || !strings.HasPrefix(err.Error(), "p: ") {
			t.Errorf("%q: %v, want an error that names the file", text, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	old := options{Options: submission.Options{Parameters: map[string]any{"a": "1", "b": "1"}, Labels: map[string]string{"x": "1"}, Entrypoint: "main"}, Parallelism: 2}
	got := overlay(old, options{Options: submission.Options{Parameters: map[string]any{"b": "2"}, Name: "new"}})
	want := options{Options: submission.Options{Parameters: map[string]any{"a": "1", "b": "2"}, Labels: map[string]string{"x": "1"}, Entrypoint: "main", Name: "new"}, Parallelism: 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("overlay (-want +got):\n%s", d)
	}
	if old.Parameters["b"] != "1" {
		t.Error("the earlier run's options were changed")
	}
}
