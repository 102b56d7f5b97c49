package argoexpr_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
)

func TestText(t *testing.T) {
	const data = `{"archive":{"tar":{}},"metadata":{"a.b":"c","deep":{"x":"y"},"rows":10},"name":"data",` +
		`"s3":{"bucket":"bucket","key":"run/data.tgz"},"type":"system.Dataset","uri":"s3://bucket/run/data.tgz"}`
	tests := map[string]struct{ src, want string }{
		"no tag":                  {"plain } text {", "plain } text {"},
		"one tag":                 {"{{inputs.parameters.message}}", "hello world"},
		"white space":             {"{{ inputs.parameters.message }}", "hello world"},
		"between text":            {"a {{workflow.name}} b {{workflow.name}}c", "a wf b wfc"},
		"dashes":                  {"{{steps.print-a.outputs.parameters.my-param}}", "from a"},
		"empty value":             {"<{{inputs.parameters.empty}}>", "<>"},
		"no second pass":          {"{{inputs.parameters.tricky}}", "{{workflow.name}}"},
		"label with dots":         {"{{workflow.labels.a/b.c}}", "dotted"},
		"global with dots":        {"{{workflow.outputs.parameters.global.with.a.dot}}", "g"},
		"parameters as a whole":   {"{{workflow.parameters}}", `[{"name":"x","value":"1"},{"name":"y","value":"\u003c\u0026\u003e"}]`},
		"parameters.json":         {"{{workflow.parameters.json}}", `[{"name":"x","value":"1"},{"name":"y","value":"\u003c\u0026\u003e"}]`},
		"labels.json":             {"{{workflow.labels.json}}", `{"a/b":{"c":"dotted"},"app":"demo"}`},
		"annotations.json":        {"{{workflow.annotations.json}}", `{"note":"n"}`},
		"creation":                {"{{workflow.creationTimestamp}}", "2018-08-03T05:04:09Z"},
		"creation letters":        {"{{workflow.creationTimestamp.Y}}-{{workflow.creationTimestamp.m}}-{{workflow.creationTimestamp.d}} {{workflow.creationTimestamp.H}}:{{workflow.creationTimestamp.M}}:{{workflow.creationTimestamp.S}}", "2018-08-03 05:04:09"},
		"creation words":          {"{{workflow.creationTimestamp.A}} {{workflow.creationTimestamp.a}} {{workflow.creationTimestamp.B}} {{workflow.creationTimestamp.b}} {{workflow.creationTimestamp.y}} {{workflow.creationTimestamp.I}}{{workflow.creationTimestamp.p}}", "Friday Fri August Aug 18 05AM"},
		"creation zone":           {"{{workflow.creationTimestamp.Z}} {{workflow.creationTimestamp.z}} {{workflow.creationTimestamp.L}}", "UTC +0000 .000"},
		"creation seconds":        {"{{workflow.creationTimestamp.s}}", "1533272649"},
		"creation RFC3339":        {"{{workflow.creationTimestamp.RFC3339}}", "2018-08-03T05:04:09Z"},
		"duration":                {"{{workflow.duration}}", "12.500000"},
		"failures are quoted":     {"{{workflow.failures}}", `"[{\"displayName\":\"a\"}]"`},
		"item map":                {"{{item}}", `{"a.b":"dot","k":"v","list":[1,"b"],"n":3}`},
		"item field":              {"{{item.k}}{{item.n}}{{item.list}}", `v3[1,"b"]`},
		"artifact":                {"{{inputs.artifacts.data}}", data},
		"artifact path":           {"{{inputs.artifacts.data.path}}", "/tmp/data"},
		"artifact parts":          {"{{inputs.artifacts.data.key}} {{inputs.artifacts.data.uri}} {{inputs.artifacts.data.type}}", "run/data.tgz s3://bucket/run/data.tgz system.Dataset"},
		"artifact json":           {"{{steps.gen.outputs.artifacts.model.json}}", data},
		"artifact metadata":       {"{{inputs.artifacts.data.metadata.rows}} {{inputs.artifacts.data.metadata.a.b}} {{inputs.artifacts.data.metadata.deep.x}}", "10 c y"},
		"output path":             {"{{outputs.parameters.out.path}}", "/tmp/out"},
		"retry":                   {"{{retries}} {{lastRetry.exitCode}} {{lastRetry.status}}", "1 2 Failed"},
		"names":                   {"{{pod.name}} {{node.name}} {{tasks.name}} {{steps.name}}", "wf-print-123 wf.a a a"},
		"hooks":                   {"{{hooks.cache.key}} {{hooks.cache.hit}}", "abc true"},
		"hooks of a task":         {"{{tasks.a.hooks.lineage.run}} {{tasks.a.hooks.lineage.run.id}}", `{"id":4,"name":"r"} 4`},
		"results over a loop":     {"{{steps.loop.outputs.result}}", `[1,{"a":1},"x"]`},
		"composites over a loop":  {"{{steps.loop.outputs.parameters.p}}", `[{"a":1},[2]]`},
		"texts over a loop":       {"{{steps.loop.outputs.parameters.q}}", `["1","b"]`},
		"other braces":            {"{{ .Values.x }} {{foo}} {{ item | upper }} ${{ x }} {{", "{{ .Values.x }} {{foo}} {{ item | upper }} ${{ x }} {{"},
		"root alone":              {"{{workflow}} {{inputs}}", "{{workflow}} {{inputs}}"},
		"unbound words":           {"{{status}} {{duration}} {{workflow.scheduledTime}}", "{{status}} {{duration}} {{workflow.scheduledTime}}"},
		"tag inside other braces": {`{{- with {{ secret "{{inputs.parameters.message}}" -}} }}`, `{{- with {{ secret "hello world" -}} }}`},
		"nested":                  {"{{inputs.parameters.{{inputs.parameters.which}}}}", "hello world"},
		"three braces":            {"{{{workflow.name}}}", "{wf}"},
		"line break":              {"{{workflow\n.name}}", "{{workflow\n.name}}"},
		"expression":              {"{{=inputs.parameters.message}}", "hello world"},
		"expression sum":          {"{{=asInt(inputs.parameters.n) + 1}}", "42"},
		"expression over lines":   {"{{=1 + \n1}}", "2"},
		"expression map":          {"{{={a: {b: 1}}}}", `{"a":{"b":1}}`},
		"expression with braces":  {"{{='}}'}} {{=1}}", "}} 1"},
		"expression list":         {"{{=[1, '2', {an: 'object'}]}}", `[1,"2",{"an":"object"}]`},
		"expression boolean":      {"{{=true == false}}", "false"},
		"expression escapes":      {`{{='some\\path\nx'}}`, "some\\path\nx"},
		"sprig":                   {"test {{= sprig.trunc(5, inputs.parameters.message) }}", "test hello"},
		"sprig from the end":      {"test {{= sprig.trunc(-5, inputs.parameters.message) }}", "test world"},
		"sprig.dig":               {"{{=sprig.dig('status', nil, workflow)}}", "Failed"},
	}
	l := argoexpr.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			// Twice: the second time everything comes out of the cache.
			for range 2 {
				got, err := l.Text(tt.src, env(sample()))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestTextUnresolved(t *testing.T) {
	tests := map[string]struct {
		src     string
		tag     string
		skipped bool
	}{
		"parameter":             {"a {{inputs.parameters.no}}", "inputs.parameters.no", false},
		"white space":           {"{{ steps.no.outputs.result }}", "steps.no.outputs.result", false},
		"skipped":               {"{{tasks.skipped.outputs.result}}", "tasks.skipped.outputs.result", true},
		"item field":            {"{{item.no}}", "item.no", false},
		"letter":                {"{{workflow.creationTimestamp.Q}}", "workflow.creationTimestamp.Q", false},
		"expression":            {"{{=inputs.parameters.no}}", "=inputs.parameters.no", false},
		"expression of a step":  {"{{=steps.no.outputs.result}}", "steps.no.outputs.result", false},
		"expression of nothing": {"{{=foo}}", "foo", false},
		"skipped in expression": {"{{=tasks.skipped.outputs.result}}", "=tasks.skipped.outputs.result", true},
		"operation on skipped":  {"{{=tasks.skipped.outputs.result + '-x'}}", "tasks.skipped.outputs.result", true},
		"nested":                {"{{inputs.parameters.{{inputs.parameters.n}}}}", "inputs.parameters.41", false},
	}
	l := argoexpr.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := l.Text(tt.src, env(sample()))
			var unresolved *expr.UnresolvedError
			if !errors.As(err, &unresolved) {
				t.Fatalf("got %q, %v; want an UnresolvedError", got, err)
			}
			want := &expr.UnresolvedError{Tag: tt.tag, Skipped: tt.skipped}
			if diff := cmp.Diff(want, unresolved); diff != "" {
				t.Error(diff)
			}
		})
	}
}
