package submission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

func TestTyped(t *testing.T) {
	for _, c := range []struct {
		in   any
		typ  program.Type
		want any
	}{
		{Given("1"), program.String, "1"},
		{Given("1"), program.Any, "1"},
		{Given("1"), program.Integer, int64(1)},
		{Given("1.5"), program.Double, 1.5},
		{Given("2.0"), program.Double, int64(2)},
		{Given("true"), program.Boolean, true},
		{Given(`["a", 1]`), program.List, []any{"a", int64(1)}},
		{Given(`{"a": {"b": 2}}`), program.Struct, map[string]any{"a": map[string]any{"b": int64(2)}}},
		{Given("one"), program.Integer, "one"},
		{Given("1 2"), program.Integer, "1 2"},
		{"1", program.Integer, "1"},
	} {
		if d := cmp.Diff(c.want, Typed(c.in, c.typ)); d != "" {
			t.Errorf("Typed(%#v, %s) (-want +got):\n%s", c.in, c.typ, d)
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
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("CheckName(%q): %v", name, err)
		}
	}
}

// A computed label that is no label's value keeps the run from starting, as an API server would.
func TestLabelsAreLabels(t *testing.T) {
	compiled := func(expression string) *Manifest {
		m, err := Compile(store.Submission{Documents: []store.Document{{Name: "wf.yaml", Data: []byte(`
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: wf}
spec:
  entrypoint: a
  workflowMetadata: {labelsFrom: {team: {expression: "` + expression + `"}}}
  templates: [{name: a, container: {image: x}}]
`)}}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if labels, _, err := Labels(compiled("'of-' + workflow.name"), engine.Run{Name: "wf"}); err != nil || labels["team"] != "of-wf" {
		t.Errorf("got %v, %v", labels, err)
	}
	if _, _, err := Labels(compiled("'of ' + workflow.name"), engine.Run{Name: "wf"}); err == nil || !strings.Contains(err.Error(), `label team: "of wf" is not a label's value`) {
		t.Errorf("got %v", err)
	}
}
