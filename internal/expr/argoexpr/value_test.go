package argoexpr_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

const employees = `'{"employees": [{"name": "Baris", "age": 43, "friends": ["Mo", "Jai"]}, {"name": "Mo", "age": 42}, {"name": "Jai", "age": 44}]}'`

func TestValue(t *testing.T) {
	model := map[string]any{
		"name": "data", "uri": "s3://bucket/run/data.tgz", "type": "system.Dataset", "archive": map[string]any{"tar": map[string]any{}},
		"metadata": map[string]any{"rows": int64(10), "a.b": "c", "deep": map[string]any{"x": "y"}},
		"s3":       map[string]any{"bucket": "bucket", "key": "run/data.tgz"}, "key": "run/data.tgz",
	}
	withPath := map[string]any{"path": "/tmp/data"}
	maps.Copy(withPath, model)
	tests := map[string]any{
		"1 + 1":                                 int64(2),
		"1.5 + 1":                               2.5,
		"4 / 2":                                 int64(2),
		"nil":                                   nil,
		"'a' + 'b'":                             "ab",
		"[1, 'a', {b: nil}]":                    []any{int64(1), "a", map[string]any{"b": nil}},
		"inputs.parameters.n":                   "41",
		"inputs.parameters['my-param']":         "dashed",
		`inputs.parameters["n"] == '41'`:        true,
		"inputs['parameters']['n']":             "41",
		"asInt(inputs.parameters.n) + 1":        int64(42),
		"int(inputs.parameters.n)":              int64(41),
		"asFloat('1.5') * 2":                    int64(3),
		"string(12)":                            "12",
		"lastRetry.exitCode":                    "2",
		"lastRetry.exitCode != '2'":             false,
		"asInt(lastRetry.exitCode) >= 2":        true,
		"retries":                               "1",
		"tasks.flip.exitCode":                   "2",
		"tasks['flip'].status == 'Succeeded'":   true,
		"workflow.parameters.json":              `[{"name":"x","value":"1"},{"name":"y","value":"\u003c\u0026\u003e"}]`,
		"workflow.labels['a/b.c']":              "dotted",
		"workflow.creationTimestamp.Y":          "2018",
		"workflow.creationTimestamp":            "2018-08-03T05:04:09Z",
		"item":                                  map[string]any{"k": "v", "n": "3", "list": `[1,"b"]`, "a.b": "dot"},
		"item.n":                                "3",
		"item.k + item.n":                       "v3",
		"item.no ?? 'none'":                     "none",
		"item?.no ?? 'none'":                    "none",
		"item['no'] == nil":                     true,
		"tasks.skipped.outputs.result ?? 'x'":   "x",
		"tasks.skipped.outputs.result == ''":    false,
		"tasks.skipped.outputs.result == nil":   true,
		"tasks.no.outputs.result ?? 'fallback'": "fallback",
		"inputs.parameters.empty ?? 'x'":        "",
		"inputs.parameters.no ?? 'x'":           "x",
		// Only the branch that is taken needs its value.
		"steps['flip'].outputs.result == 'heads' ? steps.flip.outputs.result : steps.tails.outputs.result": "heads",
		"steps.gen.outputs.artifacts.model":                  model,
		"inputs.artifacts.data":                              withPath,
		"inputs.artifacts.data.path":                         "/tmp/data",
		"inputs.artifacts.data.metadata.rows":                int64(10),
		"inputs.artifacts.data.metadata['deep'].x":           "y",
		"len(steps.several.outputs.artifacts.models)":        int64(2),
		"steps.several.outputs.artifacts.models[1].uri":      "s3://bucket/run/data.tgz",
		"hooks.cache.hit":                                    true,
		"hooks['cache'].key":                                 "abc",
		"tasks.a.hooks.lineage.run.id + 1":                   int64(5),
		"steps.loop.outputs.result":                          `[1,{"a":1},"x"]`,
		"fromJSON(steps.loop.outputs.result)[1].a":           int64(1),
		"response.statusCode == 200":                         true,
		"response.body contains 'o'":                         true,
		"request.headers['X'][0]":                            "1",
		"toJson(inputs.parameters.json)":                     `"{\"a\":[1,2]}"`,
		"toJson({b: '<', a: 1})":                             `{"a":1,"b":"\u003c"}`,
		"toJSON([1])":                                        "[\n  1\n]",
		"map([1, 2], {# * 2})":                               []any{int64(2), int64(4)},
		"filter([1, 2], {# > 1})":                            []any{int64(2)},
		"map([1, 2], map([3], # + 1))":                       []any{[]any{int64(4)}, []any{int64(4)}},
		"let x = 2; let item = 5; x + item":                  int64(7),
		"let f = filter([{a: 1}], .a == 1); f[0].a":          int64(1),
		"[1, 2] | map(# + 1) | len()":                        int64(2),
		"inputs.parameters.message | upper()":                "HELLO WORLD",
		"inputs.parameters.message | split(' ') | join('-')": "hello-world",
		"2 in [1, 2] and 'a' not in ['b']":                   true,
		"'n' in inputs.parameters":                           true,
		"keys({a: 1})":                                       []any{"a"},
		"uniq([1, 1, 2])":                                    []any{int64(1), int64(2)},
		"uniq([[1], [1]])":                                   []any{[]any{int64(1)}},
		"now().Year()":                                       int64(2026),
		"(now() - duration('1h')).Hour()":                    int64(11),
		"date('2024-01-02').Format('02.01.2006')":            "02.01.2024",
		"now()": "2026-11-30T12:00:00Z",
		"(now() - date('2026-11-29T12:00:00Z')).Hours()":                          int64(24),
		"sprig.trim('  a ')":                                                      "a",
		"sprig.add(1, '2')":                                                       int64(3),
		"sprig.int('x')":                                                          int64(0),
		"sprig.until(3)":                                                          []any{int64(0), int64(1), int64(2)},
		"sprig.default('d', inputs.parameters.empty)":                             "d",
		"sprig.list(1, 'a')":                                                      []any{int64(1), "a"},
		"sprig.set({a: 1}, 'b', 2)":                                               map[string]any{"a": int64(1), "b": int64(2)},
		"sprig.merge({a: 1}, {a: 2, b: 3})":                                       map[string]any{"a": int64(1), "b": int64(3)},
		"sprig.join(',', ['a', 'b'])":                                             "a,b",
		"sprig.regexReplaceAll('a(x*)b', '-ab-axxb-', '${1}W')":                   "-W-xxW-",
		"sprig.b64enc('x')":                                                       "eA==",
		"sprig.now().Unix()":                                                      int64(1796040000),
		"sprig.date('2006-01-02', sprig.now())":                                   "2026-11-30",
		"sprig.date('15:04', workflow.creationTimestamp)":                         "05:04",
		"sprig.dateInZone('15:04', 0, 'UTC')":                                     "00:00",
		"sprig.ago(sprig.now())":                                                  "0s",
		"sprig.durationRound(sprig.toDate('2006-01-02', '2026-11-28'))":           "2d",
		"sprig.htmlDate(0)":                                                       "1970-01-01",
		"sprig.dig('k', 'none', item)":                                            "v",
		"sprig.ternary('yes', 'no', true)":                                        "yes",
		"sprig.get({a: 1}, 'a')":                                                  int64(1),
		"sprig.splitList(',', 'a,b')":                                             []any{"a", "b"},
		"sprig.split(',', 'a,b')":                                                 map[string]any{"_0": "a", "_1": "b"},
		"sprig.repeat(3, 'ab')":                                                   "ababab",
		"repeat('ab', 3)":                                                         "ababab",
		"$env['item'].k":                                                          "v",
		"{{inputs.parameters.n}} + 1":                                             int64(42),
		"'{{inputs.parameters.message}}' + '!'":                                   "hello world!",
		"{{= 1 + 1 }}":                                                            int64(2),
		"jsonpath(" + employees + ", '$.employees[*].name')":                      []any{"Baris", "Mo", "Jai"},
		"jsonpath(" + employees + ", '$.employees[0].friends')":                   []any{"Mo", "Jai"},
		"jsonpath(" + employees + ", '$.employees[0].age')":                       int64(43),
		"jsonpath(" + employees + ", '$.employees[?(@.name==\"Baris\")].age')":    []any{int64(43)},
		"jsonpath(" + employees + ", '$.employees[?(@.age>42 && @.age<44)].age')": []any{int64(43)},
		"jsonpath(" + employees + ", '$.employees[0:1]')":                         []any{map[string]any{"name": "Baris", "age": int64(43), "friends": []any{"Mo", "Jai"}}},
		"jsonpath(inputs.parameters.json, '$.a[-1]')":                             int64(2),
	}
	l := argoexpr.New()
	for src, want := range tests {
		t.Run(src, func(t *testing.T) {
			got, err := l.Value(src, env(sample()))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValueErrors(t *testing.T) {
	tests := map[string]string{
		"":                                  "an expression is empty",
		"1 +":                               "unexpected token EOF",
		"nofunction(1)":                     `there is no function "nofunction"`,
		"sprig.nofunction(1)":               `sprig has no function "nofunction"`,
		"sprig.env('HOME')":                 "sprig.env is not available: it would read this machine",
		"sprig.expandenv('$HOME')":          "is not available",
		"sprig.getHostByName('x')":          "is not available: it would ask the network",
		"sprig.genCA('a', 1)":               "is not available: keys and salts",
		"$env[item.k]":                      "$env can only be asked for a constant name",
		"asInt('x')":                        `asInt: cannot convert "x"`,
		"asInt(nil)":                        "cannot convert null",
		"jsonpath('{', '$')":                "the first argument is no JSON",
		"jsonpath('{}', '$.a')":             `there is no "a" in a map`,
		"jsonpath('{}', 'a')":               "does not begin with $",
		"'a' + 1":                           "cannot compute a text + a number",
		"'a'.Foo()":                         "a text has no method Foo",
		"sprig.repeat(100000000, 'xxxx')":   "bytes, and 4194304 are allowed",
		"repeat('xxxx', 100000000)":         "bytes, and 4194304 are allowed",
		"sprig.until(1000000000)":           "are allowed",
		"sprig.untilStep(0, 1000000000, 1)": "are allowed",
		"sprig.seq(1, 1000000000)":          "are allowed",
		"sprig.indent(1000000000, 'a')":     "are allowed",
		"sprig.randAlpha(1000000000)":       "are allowed",
		"1..100000000":                      "memory budget exceeded",
		"let r = 1..90000; count(r, {sum(r, #) > 0})":                 "rounds of nested loops",
		"let r = 1..90000; count(r, {sum(r) > 0})":                    "rounds of nested loops",
		"let r = 1..90000; count(r, {r == r})":                        "rounds of nested loops",
		"let r = 1..90000; count(r, {len(sort(r)) > 0})":              "bytes of memory",
		"map(1..100, sprig.derivePassword(#, 'long', 'a', 'b', 'c'))": "nested loops",
		"let r = 1..9000; count(r, {# in map(r, # + 1)})":             "nested loops",
		"sprig.fail('no')":               "no",
		"sprig.div(1, 0)":                "divide by zero",
		"sprig.trunc('a', 'b')":          "argument 1 cannot be a text",
		"sprig.trim()":                   "takes 1 arguments, not 0",
		"upper":                          "failed to resolve {{upper}}",
		"sprig":                          "failed to resolve {{sprig}}",
		strings.Repeat("(", 70000):       "is longer than the limit",
		strings.Repeat("[", 20000):       "expression",
		strings.Repeat("1+", 6000) + "1": "exceeds maximum allowed nodes",
	}
	// Each addition doubles the text.
	doubling := "let a0 = 'xxxxxxxx'; "
	for i := range 30 {
		doubling += strings.NewReplacer("#", string(rune('b'+i)), "%", map[bool]string{true: "a0", false: string(rune('a' + i))}[i == 0]).Replace("let # = % + %; ")
		if i == 20 {
			break
		}
	}
	tests[doubling+"v"] = "are allowed"
	// A list that holds another twice, and so on: small until it is written out.
	laughs := "let l0 = [1, 1]; "
	for i := range 30 {
		laughs += strings.NewReplacer("#", strings.Repeat("m", i+1), "%", map[bool]string{true: "l0", false: strings.Repeat("m", i)}[i == 0]).Replace("let # = [%, %]; ")
	}
	tests[laughs+strings.Repeat("m", 30)] = "too large when written out"
	tests[laughs+"toJson("+strings.Repeat("m", 30)+")"] = "too large when written out"
	tests[laughs+"string("+strings.Repeat("m", 30)+")"] = "too large when written out"
	l := argoexpr.New()
	for src, want := range tests {
		name := src
		if len(name) > 40 {
			name = name[:40]
		}
		t.Run(name, func(t *testing.T) {
			got, err := l.Value(src, env(sample()))
			if err == nil {
				t.Fatalf("got %v and no error", got)
			}
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to hold %q", err, want)
			}
		})
	}
}

func TestValueSkipped(t *testing.T) {
	_, err := argoexpr.New().Value("tasks.skipped.outputs.result", env(sample()))
	var unresolved *expr.UnresolvedError
	if !errors.As(err, &unresolved) || !unresolved.Skipped {
		t.Errorf("got %v", err)
	}
}

func TestRandomIsRepeatable(t *testing.T) {
	l := argoexpr.New()
	for _, src := range []string{
		"sprig.randAlphaNum(12)", "sprig.randAlpha(12)", "sprig.randNumeric(12)", "sprig.randAscii(12)", "sprig.uuidv4()",
		"sprig.randBytes(12)", "sprig.randInt(0, 1000000000)", "sprig.shuffle('abcdefghijklmnopq')",
	} {
		value := func(seed uint64, v values) any {
			t.Helper()
			got, err := l.Value(src, expr.Env{Scope: v, Now: now, Seed: seed})
			if err != nil {
				t.Fatal(src, err)
			}
			return got
		}
		first := value(1, sample())
		if again := value(1, sample()); first != again {
			t.Errorf("%s: %v, and then %v", src, first, again)
		}
		if other := value(2, sample()); first == other {
			t.Errorf("%s: %v for another seed, too", src, first)
		}
		if other := value(1, values{"node.name": "wf.b"}); first == other {
			t.Errorf("%s: %v for another node, too", src, first)
		}
	}
	got, err := l.Value("sprig.uuidv4()", env(sample()))
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := got.(string); !ok || len(id) != 36 || id[14] != '4' || !strings.Contains("89ab", id[19:20]) {
		t.Errorf("%v is no UUID of version 4", got)
	}
}

func TestExpressionCondition(t *testing.T) {
	tests := map[string]bool{
		"workflow.status == 'Failed'":                true,
		"{{= workflow.status == 'Failed' }}":         true,
		"{{=asInt(lastRetry.exitCode) >= 2}}":        true,
		"asInt(lastRetry.exitCode) > 2":              false,
		"{{lastRetry.exitCode}} > 1":                 true,
		"tasks['flip'].status == \"Succeeded\"":      true,
		"hooks.cache.hit":                            true,
		"tasks.skipped.outputs.result == 'x'":        false,
		"{{inputs.parameters.n}} == 41 && {{=true}}": true,
	}
	l := argoexpr.New()
	for src, want := range tests {
		got, err := l.Condition(program.Condition{Form: "expression", Source: src}, env(sample()))
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
	for src, want := range map[string]string{
		"1":                            "a condition must be true or false, but the result is 1",
		"tasks.no.status == 'x'":       "failed to resolve {{tasks.no.status}}",
		"tasks.skipped.outputs.result": "was skipped or omitted",
		"workflow.":                    "unexpected end of expression",
	} {
		if got, err := l.Condition(program.Condition{Form: "expression", Source: src}, env(sample())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", src, got, err)
		}
	}
	if _, err := l.Condition(program.Condition{Form: "cel", Source: "true"}, env(sample())); err == nil {
		t.Error("an unknown form has no error")
	}
}

func TestSelect(t *testing.T) {
	l := argoexpr.New()
	got, err := l.Select("value.a[0] + 1", map[string]any{"a": []any{int64(1)}})
	if err != nil || got != int64(2) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestExpressionsDoNotChangeTheScope(t *testing.T) {
	v := values{"request.body": map[string]any{"a": int64(1)}}
	l := argoexpr.New()
	for _, src := range []string{
		"sprig.set(request.body, 'a', 2)", "sprig.unset(request.body, 'a')", "sprig.merge(request.body, {b: 1})",
		"sprig.mergeOverwrite(request.body, {a: 2})",
	} {
		if _, err := l.Value(src, env(v)); err != nil {
			t.Error(src, err)
		}
		if diff := cmp.Diff(map[string]any{"a": int64(1)}, v["request.body"]); diff != "" {
			t.Error(src, diff)
		}
	}
}
