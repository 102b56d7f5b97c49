package hook

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/engine"
)

var facts = map[string]any{
	"task": map[string]any{
		"name": "train-big", "path": "flow.train-big", "template": "train", "kind": "containers", "attempt": int64(1),
		"labels": map[string]any{"gpu": "yes"}, "annotations": map[string]any{},
		"inputs": map[string]any{"parameters": map[string]any{"epochs": int64(3), "lr": 0.5, "text": "7"}},
	},
	"workflow": map[string]any{
		"name": "flow", "namespace": "ml", "uid": "u", "labels": map[string]any{"team": "a"}, "annotations": map[string]any{},
		"parameters": map[string]any{"dataset": "flowers"},
	},
}

func TestMatch(t *testing.T) {
	var c Conditions
	var match engine.Matcher = c.Match
	for source, want := range map[string]bool{
		"task.template.startsWith('train')":                            true,
		"task.template == 'test'":                                      false,
		"task.attempt > 0":                                             true,
		"task.attempt < 1.5":                                           true,
		"task.inputs.parameters.epochs >= 3":                           true,
		"task.inputs.parameters['lr'] == 0.5":                          true,
		"int(task.inputs.parameters.text) == 7":                        true,
		"has(task.labels.gpu) && task.labels.gpu == 'yes'":             true,
		"'cpu' in task.labels":                                         false,
		"workflow.labels['team'] in ['a', 'b']":                        true,
		"workflow.parameters.dataset.matches('^flow')":                 true,
		"workflow.namespace == 'ml' && task.kind == 'containers'":      true,
		"task.name.split('-').size() == 2":                             true,
		"workflow.labels.exists(k, k.startsWith('te'))":                true,
		"task.inputs.parameters.all(k, k != 'password')":               true,
		"has(task.inputs.parameters.none) ? false : task.attempt == 1": true,
	} {
		got, err := match([]string{source}, facts)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
	if ok, err := match([]string{"true", "task.attempt == 1", "false"}, facts); ok || err != nil {
		t.Errorf("all must hold: %v, %v", ok, err)
	}
	if ok, err := match(nil, facts); !ok || err != nil {
		t.Errorf("none hold: %v, %v", ok, err)
	}
}

func TestConditionsThatCannotBeDecided(t *testing.T) {
	var c Conditions
	for source, want := range map[string]string{
		"":                               "is empty",
		"task.name ==":                   "Syntax error",
		"node.name == 'x'":               "undeclared reference",
		"1 + 1":                          "must give true or false, not int",
		"task.name":                      "must give true or false, not train-big",
		"task.labels.cpu == 'yes'":       "no such key: cpu",
		"task.name + 1 == 'x'":           "line 1, character 15: found no matching overload",
		strings.Repeat("true && ", 1000): "more than the 4096",
		strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500): "recursion",
		"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, a+b+c+d+e > 0)))))": "cost",
	} {
		_, err := c.Match([]string{source}, facts)
		if err == nil {
			t.Errorf("%.60s: no error", source)
			continue
		}
		wantText(t, "the error of "+clip(source, 40), err.Error(), want)
	}
}

// Conditions that would take an evaluator's time or memory without end are refused by what they cost, which does not depend
// on the machine: the same condition over the same facts gets the same answer, however busy it is.
func TestHostileConditions(t *testing.T) {
	chain := func(start, link string, n int, end string) string { return start + strings.Repeat(link, n) + end }
	deep := func(n int) any {
		var v any = "x"
		for range n {
			v = []any{v}
		}
		return v
	}
	wide := make([]any, 15_000)
	for i := range wide {
		wide[i] = []any{int64(i)}
	}
	hostile := map[string]any{
		"task":     map[string]any{"wide": wide, "deep": deep(1000), "text": strings.Repeat("a", 1<<19)},
		"workflow": map[string]any{},
	}
	for name, c := range map[string]struct{ source, want string }{
		"a list that doubles":              {chain("[[0]]", ".map(x, [x, x])", 30, ".all(x, x == x)"), "limit exceeded"},
		"a list that doubles, untyped":     {chain("[[0]]", ".map(x, [x, x, dyn(1)])", 30, ".all(x, x != x)"), "limit exceeded"},
		"a list that doubles, as a result": {chain("[dyn([0])]", ".map(x, dyn([x, x]))", 30, "[0]"), "limit exceeded"},
		"a map that doubles":               {chain("[{'a': dyn(0)}]", ".map(x, {'a': dyn(x), 'b': dyn(x)})", 30, ".all(x, x in [x])"), "limit exceeded"},
		"a text that doubles":              {chain("['a']", ".map(x, x + x)", 30, ".size() == 1"), "limit exceeded"},
		"later rounds grow, the first not": {chain("['', 'a']", ".map(x, x + x)", 30, ".size() == 1"), "limit exceeded"},
		"what takes long to check":         {chain("[[0]]", ".map(x, {'a': x})", 200, ".size() == 1"), "recursion"},
		"comparisons in loops":             {"[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, task.wide == task.wide))", "limit exceeded"},
		"membership in loops":              {"[1,2,3,4,5,6,7,8].all(a, [1,2,3,4,5,6,7,8].all(b, !(task.wide in [task.wide, [a]])))", "limit exceeded"},
		"a large pattern":                  {"'a'.matches('((a{100}){100}){10}')", "regex"},
		"a large pattern, made":            {"'a'.matches('((a{100})' + '{100}){10}')", "regex"},
		"a pattern over a large text":      {"task.text.matches('a*a*a*a*a*b')", "limit exceeded"},
		"precision":                        {"'%.1000000000f'.format([1.0]) == ''", "precision"},
		"a text made of others":            {"'%s'.format([task]) == ''", "calls format"},
		"texts as long as a product":       {"task.text.replace('a', task.text) == ''", "calls replace"},
		"a deep value":                     {"task.deep == task.deep", "limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			var c1, c2 Conditions
			_, err := c1.Match([]string{c.source}, hostile)
			if err == nil {
				t.Fatal("no error")
			}
			wantText(t, "the error", err.Error(), c.want)
			if _, again := c2.Match([]string{c.source}, hostile); again == nil || again.Error() != err.Error() {
				t.Errorf("the second time: %v, the first %v", again, err)
			}
		})
	}
}

// A workflow's facts may be large without its conditions being refused.
func TestConditionsOverLargeFacts(t *testing.T) {
	parameters := map[string]any{"config": strings.Repeat("x", 1<<20)}
	for i := range 5000 {
		parameters["p"+strconv.Itoa(i)] = int64(i)
	}
	large := map[string]any{"task": map[string]any{"template": "train"}, "workflow": map[string]any{"parameters": parameters}}
	var c Conditions
	for source, want := range map[string]bool{
		"'p7' in workflow.parameters && workflow.parameters.p7 == 7": true,
		"has(workflow.parameters.config)":                            true,
		"size(workflow.parameters.config) > 10":                      true,
		"workflow.parameters.exists(k, k == 'none')":                 false,
	} {
		if got, err := c.Match([]string{source}, large); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("task.template.startsWith('train')")
	f.Add("workflow.labels.exists(k, k.startsWith('te')) && task.attempt in [1, 2]")
	f.Add("[[0]].map(x, [x, x]).map(x, [x, x]).all(x, x == x)")
	f.Add("'a'.matches('(a{10}){10}')")
	f.Add("[[[[task]]]].all(x, x.map(y, y) == x)")
	var c Conditions
	f.Fuzz(func(t *testing.T, source string) {
		first, err := c.Match([]string{source}, facts)
		second, again := c.Match([]string{source}, facts)
		if first != second || (err == nil) != (again == nil) {
			t.Errorf("%q: %v, %v and then %v, %v", source, first, err, second, again)
		}
	})
}

// A condition of a usual kind may be long: what is joined by "and" and "or" is not nested.
func TestLongConditions(t *testing.T) {
	names := make([]string, 150)
	for i := range names {
		names[i] = "task.template == 't" + strconv.Itoa(i) + "'"
	}
	var c Conditions
	for _, source := range []string{
		strings.Join(names[:100], " || ") + " || true",
		"(has(task.labels.gpu) && (task.labels.gpu == 'yes' || (task.attempt > 0 && !(task.name in ['a', 'b'])))) ? (workflow.namespace == 'ml') : false",
		"workflow.labels.all(k, task.inputs.parameters.exists(p, p.startsWith('e') || k.split('-').exists(s, s.trim().lowerAscii().size() > 0)))",
	} {
		if ok, err := c.Match([]string{source}, facts); err != nil || !ok {
			t.Errorf("%.60s: %v, %v", source, ok, err)
		}
	}
}
