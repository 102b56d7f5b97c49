package argoexpr_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestReferences(t *testing.T) {
	tests := map[string][]string{
		"plain": nil,
		"{{workflow.name}} {{ steps.a-b.outputs.result }} {{workflow.name}}": {"workflow|name", "steps|a-b|outputs|result"},
		"{{foo}} {{ .Values.x }}":             nil,
		"{{workflow.labels.a.b/c}}":           {"workflow|labels|a.b/c"},
		"{{inputs.artifacts.x.metadata.a.b}}": {"inputs|artifacts|x|metadata|a.b"},
		"{{item}} {{item.a}}":                 {"item", "item|a"},
		"{{=asInt(inputs.parameters['n']) + steps['a'].outputs.parameters.x}}": {"inputs|parameters|n", "steps|a|outputs|parameters|x"},
		"{{=sprig.trim(foo) + string(now().Year())}}":                          {"foo"},
		"{{=let a = item.x; filter([1], # > a)}}":                              {"item|x"},
		"{{=keys(workflow)}}":                                                  {"workflow"},
		"{{=tasks.a.outputs.result ?? 'x'}}":                                   {"tasks|a|outputs|result"},
		"{{inputs.parameters.{{item}}}}":                                       {"item"},
	}
	join := func(paths [][]string) []string {
		var out []string
		for _, p := range paths {
			out = append(out, strings.Join(p, "|"))
		}
		return out
	}
	for src, want := range tests {
		got, err := argoexpr.References(src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if diff := cmp.Diff(want, join(got)); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
	if _, err := argoexpr.References("{{=1 +}}"); err == nil {
		t.Error("a wrong expression has no error")
	}
	for src, want := range map[string][]string{
		"tasks['a'].status == 'x'":      {"tasks|a|status"},
		"{{=workflow.status}}":          {"workflow|status"},
		"{{lastRetry.exitCode}} == '1'": {"lastRetry|exitCode"},
	} {
		got, err := argoexpr.ConditionReferences(program.Condition{Form: "expression", Source: src})
		if err != nil {
			t.Errorf("%s: %v", src, err)
		}
		if diff := cmp.Diff(want, join(got)); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
	got, err := argoexpr.ConditionReferences(program.Condition{Form: "when", Source: "{{item}} == a"})
	if diff := cmp.Diff([]string{"item"}, join(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestCheck(t *testing.T) {
	for src, want := range map[string]string{
		"1 +":             "unexpected token",
		"{{= nofunc(1)}}": "there is no function",
		"sprig.nofunc()":  "sprig has no function",
		"asInt('1') > 0":  "",
		"{{item}} > 1":    "",
	} {
		check(t, src, argoexpr.CheckExpression(src), want)
	}
	for src, want := range map[string]string{
		"":                  "",
		"true":              "",
		"a == ":             "it ends where a value is expected",
		"maybe":             "expected boolean evaluation",
		"{{x}} == ":         "",
		"{{=1 +}} == 2":     "unexpected token",
		"{{item}} == a b c": "",
	} {
		check(t, src, argoexpr.CheckCondition(program.Condition{Form: "when", Source: src}), want)
	}
	check(t, "form", argoexpr.CheckCondition(program.Condition{Form: "x", Source: "true"}), `no form of conditions "x"`)
	check(t, "expression", argoexpr.CheckCondition(program.Condition{Form: "expression", Source: "a ="}), "expression")
	check(t, "text", argoexpr.CheckText("a {{=1 +}}"), "unexpected token")
	check(t, "text", argoexpr.CheckText("a {{=1}} {{b}}"), "")
}

func check(t *testing.T, src string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", src, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want an error that holds %q", src, err, want)
	}
}
