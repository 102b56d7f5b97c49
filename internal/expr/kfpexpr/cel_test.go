package kfpexpr

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

func conditionEnv() expr.Env {
	return expr.Env{Scope: scope{tree: map[string]any{"inputs": map[string]any{
		"parameters": map[string]any{
			"s": "heads", "n": int64(5), "text_n": "7", "f": 0.5, "b": true, "l": []any{int64(1), int64(2)}, "m": map[string]any{"k": "v"}, "null": nil,
		},
		"artifacts": map[string]any{"m": []program.Artifact{{Name: "m", URI: "s3://b/m", Type: "system.Model", Metadata: map[string]any{"acc": 0.9, "n": int64(3)}}}},
	}}}}
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		src  string
		want bool
	}{
		{"inputs.parameter_values['s'] == 'heads'", true},
		{"!(inputs.parameter_values['s'] == 'heads')", false},
		{"inputs.parameter_values['s'] != 'tails'", true},
		{"inputs.parameter_values[\"s\"] == \"tails\"", false},
		{"int(inputs.parameter_values['n']) > 4", true},
		{"int(inputs.parameter_values['n']) <= 4", false},
		{"int(inputs.parameter_values['text_n']) >= int(inputs.parameter_values['n'])", true},
		{"inputs.parameter_values['n'] == 5", true},
		{"inputs.parameter_values['n'] == 5.0", true},
		{"inputs.parameter_values['f'] < 0.75", true},
		{"inputs.parameter_values['b'] == true", true},
		{"inputs.parameter_values['s'] == 5", false},
		{"inputs.parameter_values['l'][1] == 2", true},
		{"2.0 in inputs.parameter_values['l']", true},
		{"inputs.parameter_values['m'].k == 'v'", true},
		{"inputs.parameter_values['s'] == 'heads' && !(inputs.parameter_values['n'] > 5)", true},
		{"'null' in inputs.parameter_values", false},
		{"has(inputs.parameter_values.s)", true},
		{"inputs.artifacts['m'].artifacts[0].metadata['acc'] > 0.8", true},
		{"int(inputs.artifacts['m'].artifacts[0].metadata['n']) == 3", true},
		{"inputs.artifacts['m'].artifacts[0].uri.startsWith('s3://')", true},
		{"parseJson('{\"a\": [1]}').a[0] == 1", true},
	} {
		got, err := New().Condition(program.Condition{Form: "cel", Source: c.src}, conditionEnv())
		if err != nil || got != c.want {
			t.Errorf("%s: got %v, %v, want %v", c.src, got, err, c.want)
		}
	}
}

func TestBadConditions(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"inputs.parameter_values['s']", "neither true nor false"},
		{"inputs.parameter_values['nowhere'] == 1", "no such key: nowhere"},
		{"inputs.parameter_values['null'] == 1", "no such key"},
		{"inputs.parameter_values['s'] > 1", "no such overload"},
		{"inputs.parameter_values[", "Syntax error"},
		{"unknown == 1", "undeclared reference"},
		{"parseJson('{') == 1", "parseJson"},
		{"int('x') == 1", "type conversion"},
		{"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))", "cost"},
		{strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), "recursion"},
		{"true" + strings.Repeat(" && true", 10_000), "size"},
	} {
		_, err := New().Condition(program.Condition{Form: "cel", Source: c.src}, conditionEnv())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: got %v, want %q", c.src, err, c.want)
		}
	}
	if _, err := New().Condition(program.Condition{Form: "when", Source: "a == b"}, conditionEnv()); err == nil {
		t.Error("a condition of another language is accepted")
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		src   string
		value any
		want  any
	}{
		{`parseJson(string_value)["A_a"]`, map[string]any{"A_a": "1", "B_b": int64(2)}, "1"},
		{`parseJson(string_value)["B_b"]`, `{"B_b": [1, 2.5]}`, []any{int64(1), 2.5}},
		{`parseJson(string_value)["a"]["b"]`, map[string]any{"a": map[string]any{"b": true}}, true},
		{`string_value`, int64(5), "5"},
		{`string_value`, []any{"a"}, `["a"]`},
		{`number_value + 1.0`, int64(5), int64(6)},
		{`list_value[0]`, []any{"x"}, "x"},
		{`struct_value.k`, map[string]any{"k": map[string]any{"n": int64(1)}}, map[string]any{"n": int64(1)}},
		{`bool_value`, true, true},
		{`parseJson(string_value)["n"]`, `{"n": null}`, nil},
	} {
		got, err := New().Select(c.src, c.value)
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.src, diff)
		}
	}
	for _, src := range []string{`parseJson(string_value)["no"]`, `number_value`, `nothing`, `parseJson(string_value)`, `type(string_value)`} {
		if got, err := New().Select(src, "x"); err == nil {
			t.Errorf("%s of a text gives %v", src, got)
		}
	}
}

func TestChecker(t *testing.T) {
	c := NewChecker()
	if err := c.Condition("int(inputs.parameter_values['x']) > 1"); err != nil {
		t.Error(err)
	}
	if err := c.Condition("nothing"); err == nil {
		t.Error("an unknown variable is accepted")
	}
	if err := c.Selector(`parseJson(string_value)["a"]`); err != nil {
		t.Error(err)
	}
	if err := c.Selector("inputs"); err == nil {
		t.Error("a selector may read inputs")
	}
}

func FuzzCEL(f *testing.F) {
	for _, s := range []string{
		"inputs.parameter_values['s'] == 'heads'", "int(inputs.parameter_values['n']) > 1", `parseJson(string_value)["a"]`,
		"inputs.artifacts['m'].artifacts[0].metadata['acc'] > 0.5", "[1,2].map(x, x * 2)", "'a'.matches('(a+)+$')", "timestamp('x')", "b'\\x00'",
	} {
		f.Add(s)
	}
	l := New()
	f.Fuzz(func(t *testing.T, src string) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
		}()
		_, _ = l.Condition(program.Condition{Form: "cel", Source: src}, conditionEnv())
		for _, v := range []any{"{\"a\": 1}", int64(1), nil, []any{"x"}, map[string]any{"a": "b"}} {
			_, _ = l.Select(src, v)
		}
	})
}
