package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

func TestTyped(t *testing.T) {
	for _, c := range []struct {
		in   any
		typ  program.Type
		want any
	}{
		{given("1"), program.String, "1"},
		{given("1"), program.Any, "1"},
		{given("1"), program.Integer, int64(1)},
		{given("1.5"), program.Double, 1.5},
		{given("2.0"), program.Double, int64(2)},
		{given("true"), program.Boolean, true},
		{given(`["a", 1]`), program.List, []any{"a", int64(1)}},
		{given(`{"a": {"b": 2}}`), program.Struct, map[string]any{"a": map[string]any{"b": int64(2)}}},
		{given("one"), program.Integer, "one"},
		{given("1 2"), program.Integer, "1 2"},
		{"1", program.Integer, "1"},
	} {
		if d := cmp.Diff(c.want, typed(c.in, c.typ)); d != "" {
			t.Errorf("typed(%#v, %s) (-want +got):\n%s", c.in, c.typ, d)
		}
	}
}

// What -p gave and what a parameter file gave stay apart when a run is resumed.
func TestOptionsSurviveTheStore(t *testing.T) {
	want := options{
		Parameters: map[string]any{"flag": given("1"), "file": "1", "number": int64(1), "object": map[string]any{"a": []any{1.5}}},
		Labels:     map[string]string{"a": "b"}, Parallelism: 3,
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

func TestCompanions(t *testing.T) {
	maps, secrets, err := companions([]store.Document{{Name: "f", Data: []byte(`
kind: ConfigMap
metadata: {name: c}
data: {k: v}
---
kind: Secret
metadata: {name: s}
data: {a: aGVsbG8=}
stringData: {b: plain}
---
kind: Deployment
metadata: {name: d}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]map[string]string{"c": {"k": "v"}}, maps); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]map[string]string{"s": {"a": "hello", "b": "plain"}}, secrets); d != "" {
		t.Error(d)
	}
	_, _, err = companions([]store.Document{{Name: "f", Data: []byte("kind: Secret\nmetadata: {name: s}\ndata: {a: '!!'}\n")}, {Name: "g", Data: []byte("[")}})
	if err == nil || !strings.Contains(err.Error(), "f: Secret s: data.a is not base64") || !strings.Contains(err.Error(), "g: ") {
		t.Errorf("%v, want both mistakes", err)
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{"a": true, "a-b.c1": true, "": false, "-a": false, "a-": false, "A": false, "a_b": false, "a b": false, strings.Repeat("a", 254): false} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("checkName(%q): %v", name, err)
		}
	}
}

func TestOverlay(t *testing.T) {
	old := options{Parameters: map[string]any{"a": "1", "b": "1"}, Labels: map[string]string{"x": "1"}, Entrypoint: "main", Parallelism: 2}
	got := overlay(old, options{Parameters: map[string]any{"b": "2"}, Name: "new"})
	want := options{Parameters: map[string]any{"a": "1", "b": "2"}, Labels: map[string]string{"x": "1"}, Entrypoint: "main", Name: "new", Parallelism: 2}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("overlay (-want +got):\n%s", d)
	}
	if old.Parameters["b"] != "1" {
		t.Error("the earlier run's options were changed")
	}
}
