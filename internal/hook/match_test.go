package hook

import (
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

func FuzzMatch(f *testing.F) {
	f.Add("task.template.startsWith('train')")
	f.Add("workflow.labels.exists(k, k.startsWith('te')) && task.attempt in [1, 2]")
	f.Add("'%s'.format([task])")
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
