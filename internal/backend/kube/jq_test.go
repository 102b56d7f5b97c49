package kube

import (
	"strings"
	"testing"
)

func TestJQ(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(3)}, "items": []any{int64(1), "x", 1.5, nil}}
	for filter, want := range map[string]string{
		".metadata.name":       "a",
		".metadata.generation": "3",
		".items[]":             "1\nx\n1.5\nnull",
		".metadata":            `{"generation":3,"name":"a"}`,
		".missing":             "null",
		".items | length":      "4",
	} {
		if got, err := jq(t.Context(), filter, object); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", filter, got, err, want)
		}
	}
	for _, filter := range []string{".[", "$ENV.HOME | nosuch", `error("no")`, `input`} {
		if got, err := jq(t.Context(), filter, object); err == nil || !strings.Contains(err.Error(), "jqFilter") {
			t.Errorf("%s: %q %v, want an error that names the filter", filter, got, err)
		}
	}
	for _, filter := range []string{"[range(1e12)] | length", `"x" * 1e9`, "def f: f; f", "[.items | recurse(.)]", "repeat(1)", "[limit(1e12; repeat(1))]"} {
		if _, err := jq(t.Context(), filter, object); err == nil || !strings.Contains(err.Error(), "is not allowed here") {
			t.Errorf("%s: %v, want it refused", filter, err)
		}
	}
	if got, err := jq(t.Context(), ".metadata | keys[0]", object); err != nil || got != "generation" {
		t.Errorf("%q %v", got, err)
	}
}
