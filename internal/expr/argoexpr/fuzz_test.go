package argoexpr_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"{{workflow.name}}", "{{ inputs.parameters.my-param }}", "{{=1 + 1}}", "{{inputs.parameters.{{item}}}}", "{{{{{{",
		"{{=}}", "{{={a: {b: 1}}}}", "}}{{", "{{- with {{ secret \"{{inputs.parameters.message}}\" -}} }}", "{{=foo", "{{item.a.b.c}}",
		"{{=jsonpath(workflow.parameters.json, '$[0].value')}}", "{{workflow.creationTimestamp.s}}", "{{inputs.artifacts.data.metadata.a.b}}",
	} {
		f.Add(s)
	}
	l := argoexpr.New()
	f.Fuzz(func(t *testing.T, src string) {
		got, err := l.Text(src, env(sample()))
		if err == nil && !strings.Contains(src, "{{") && got != src {
			t.Errorf("%q became %q", src, got)
		}
		again, err2 := l.Text(src, env(sample()))
		if got != again || (err == nil) != (err2 == nil) {
			t.Errorf("%q: %q, %v and then %q, %v", src, got, err, again, err2)
		}
		if _, err := argoexpr.References(src); err == nil {
			if err := argoexpr.CheckText(src); err != nil {
				t.Errorf("%q: references, but %v", src, err)
			}
		}
	})
}

func FuzzWhen(f *testing.F) {
	for _, s := range []string{
		"", "true", "{{steps.flip.outputs.result}} == heads", "'a' == \"b\"", "a in (b, c)", "!(1 < 2) || x =~ y", "1 + 2 * 3 == 7",
		"my-value != /tmp/x", "2024-01-31 == x", "[a b] == 'a b'", "a ? b : c", "((((", "!!!!", "'\\''", "a\\ b == x", "{{=1==1}}",
		"1<<99999999999 == 0", "-'a'", "a ?? b",
	} {
		f.Add(s)
	}
	l := argoexpr.New()
	f.Fuzz(func(t *testing.T, src string) {
		c := program.Condition{Form: "when", Source: src}
		got, err := l.Condition(c, env(sample()))
		again, err2 := l.Condition(c, env(sample()))
		if got != again || (err == nil) != (err2 == nil) {
			t.Errorf("%q: %v, %v and then %v, %v", src, got, err, again, err2)
		}
		if err != nil && utf8.ValidString(src) && !utf8.ValidString(err.Error()) {
			t.Errorf("%q: the error is no text: %q", src, err)
		}
	})
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{
		"1 + 1", "inputs.parameters['my-param']", "item?.no ?? 'x'", "let a = 1; a", "map(1..10, # * 2)", "sprig.repeat(3, 'ab')",
		"sprig.until(10)", "toJson({a: [1]})", "jsonpath('{\"a\":[1,2]}', '$..a[?(@>1)]')", "now().Format('2006')", "$env['item']",
		"reduce(1..9, #acc + #)", "sprig.dict('a', 1)", "'a' matches 'b+'", "sortBy([{a: 2}, {a: 1}], .a)", "groupBy([1, 2], # % 2)",
		"sprig.regexReplaceAll('a', 'b', 'c')", "if true {1} else {2}", "sprig.dig('a', 'b', item)", "uniq(concat([1], [1]))",
		"let r = 1..1000; count(r, {count(r, {# > 3}) > 0})", "'%' + string([1, {a: 2}])", "date('2024-01-02') - duration('1h')",
	} {
		f.Add(s)
	}
	l := argoexpr.New()
	f.Fuzz(func(t *testing.T, src string) {
		v, err := l.Value(src, env(sample()))
		if err != nil {
			return
		}
		// What comes out is a JSON value that a parameter can hold.
		if _, err := l.Parameter(v, ""); err != nil {
			t.Errorf("%q gave %v: %v", src, v, err)
		}
		l.ItemName(v)
	})
}

func FuzzArtifact(f *testing.F) {
	f.Add(`{"name":"x","s3":{"bucket":"b","key":"k"},"archive":{"none":{}}}`)
	f.Add(`{"uri":"s3://b/k","metadata":{"a":1e99}}`)
	l := argoexpr.New()
	f.Fuzz(func(t *testing.T, text string) {
		a, err := l.DecodeArtifact(text)
		if err != nil {
			return
		}
		encoded, err := l.EncodeArtifact(a)
		if err != nil {
			t.Fatalf("%q was decoded, but not encoded: %v", text, err)
		}
		if _, err := l.DecodeArtifact(encoded); err != nil {
			t.Errorf("%q became %s: %v", text, encoded, err)
		}
	})
}
