package hook

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
)

const fullDocument = `# a comment
apiVersion: sluice.dev/v1alpha1
kind: ClusterTaskHook
metadata: {name: guard}
spec:
  points: [Pre]
  scope: [Task, Graph, Workflow]
  selector:
    matchLabels: {team: a}
    matchExpressions: [{key: stage, operator: In, values: [prod, test]}]
  matchConditions: [{name: trainers, expression: "task.template.startsWith('train')"}]
  order: -3
  failurePolicy: Ignore
  maxRetries: 4
  timeoutSeconds: 3
  deadlineSeconds: 60
  retry: {limit: 9, backoff: {duration: 100ms, factor: 1.5, cap: "30"}}
  maxConcurrency: 2
  batch: 20
  http: {url: "https://guard.example/hook", auth: {hmac: {secretFrom: {env: GUARD}}}}
---
---
apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: cache, namespace: ml}
spec: {builtin: {name: cache}}
`

func TestLoadFile(t *testing.T) {
	hooks, err := LoadFile("conf/hooks.yaml", []byte(fullDocument))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := NewRegistry(hooks)
	if err != nil {
		t.Fatal(err)
	}
	got, err := registry.Select("ml", map[string]string{"team": "a", "stage": "prod"})
	if err != nil {
		t.Fatal(err)
	}
	want := []engine.Hook{
		{
			Name: "guard", Pre: true, Task: true, Graph: true, Workflow: true, Match: []string{"task.template.startsWith('train')"},
			Ignore: true, MaxRetries: 4, Settings: got[0].Settings,
		},
		{Name: "cache", Pre: true, Post: true, Task: true, MaxRetries: 1, Cache: true, Settings: got[1].Settings},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantText(t, "the settings", string(got[0].Settings), `"timeoutSeconds":3`, `"deadlineSeconds":60`, `"limit":9`, `"batch":20`)
	if strings.Contains(string(got[0].Settings), "guard.example") {
		t.Error("the snapshot has the URL, which is to be read live")
	}
	if hooks[1].Origin != "conf/hooks.yaml:23" {
		t.Errorf("origin is %s", hooks[1].Origin)
	}
}

func TestExampleDocumentLoads(t *testing.T) {
	data, err := os.ReadFile("../../examples/hooks/taskhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadFile("taskhook.yaml", data); err != nil {
		t.Error(err)
	}
}

// Everything that is wrong in any document is said at once, with its line.
func TestLoadFileSaysAllThatIsWrong(t *testing.T) {
	_, err := LoadFile("hooks.yaml", []byte(`apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: Lineage}
spec:
  points: [Pre, Before]
  failurePolicy: Panic
  timeoutSeconds: 4000
  matchConditions:
  - {name: broken, expression: "task.name =="}
  - {expression: "'text'"}
  selector: {matchExpressions: [{key: a, operator: Is}]}
  retry: {backoff: {duration: soon, factor: 0.5}}
  http: {url: "ftp://user:pass@host", auth: {hmac: {secretFrom: {}}}}
  container: {command: [x]}
---
apiVersion: sluice.dev/v1
kind: TaskHook
metadata: {name: b}
spec: {}
---
apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: c}
spec:
  http: {ulr: "http://x"}
  order: high
---
apiVersion: sluice.dev/v1alpha1
kind: ClusterTaskHook
metadata: {name: d, namespace: x}
spec: {http: {service: {name: s}, auth: {serviceAccountToken: {audience: a}}}}
`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`hooks.yaml:3: TaskHook Lineage: metadata.name: must be lower case`,
		`hooks.yaml:5: TaskHook Lineage: spec.points: must be of [Pre Post], not "Before"`,
		`hooks.yaml:6: TaskHook Lineage: spec.failurePolicy`,
		`hooks.yaml:7: TaskHook Lineage: spec.timeoutSeconds: must be from 0 to 300, not 4000`,
		`hooks.yaml:9: TaskHook Lineage: spec.matchConditions[0].expression: line 1, character 13: Syntax error`,
		`hooks.yaml:10: TaskHook Lineage: spec.matchConditions[1].name: is missing`,
		`hooks.yaml:10: TaskHook Lineage: spec.matchConditions[1].expression: must give true or false, not string`,
		`hooks.yaml:11: TaskHook Lineage: spec.selector.matchExpressions[0].operator`,
		`hooks.yaml:12: TaskHook Lineage: spec.retry.backoff.duration: must be a duration`,
		`hooks.yaml:12: TaskHook Lineage: spec.retry.backoff.factor`,
		`hooks.yaml:13: TaskHook Lineage: spec.http.url: must begin with https://`,
		`hooks.yaml:13: TaskHook Lineage: spec.http.auth.hmac.secretFrom: must have exactly one of`,
		`hooks.yaml:14: TaskHook Lineage: spec.container.image: is missing`,
		`hooks.yaml:4: TaskHook Lineage: spec: must have only one of http, container and builtin`,
		`hooks.yaml:14: TaskHook Lineage: spec.container: runs inside a task's pod`,
		`hooks.yaml:16: TaskHook b: apiVersion: must be "sluice.dev/v1alpha1"`,
		`hooks.yaml:25: TaskHook c: spec.http.ulr: unknown field, did you mean "url"?`,
		`hooks.yaml:26: TaskHook c: spec.order: must be a whole number, not "high"`,
		`hooks.yaml:30: ClusterTaskHook d: metadata.namespace: a ClusterTaskHook has none`,
		`hooks.yaml:31: ClusterTaskHook d: spec.http.service.namespace: is missing`,
		`hooks.yaml:31: ClusterTaskHook d: spec.http.service: is there on a cluster only`,
		`hooks.yaml:31: ClusterTaskHook d: spec.http.auth.serviceAccountToken: is there on a cluster only`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if strings.Contains(err.Error(), "user:pass") && !strings.Contains(err.Error(), "ftp://") {
		t.Error("shows a password")
	}
}

func TestLoadFileRefuses(t *testing.T) {
	good := func(kind, name string) string {
		return "apiVersion: sluice.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {http: {url: http://h/}}\n---\n"
	}
	for name, test := range map[string]struct{ data, want string }{
		"nothing":                  {"# only a comment\n", "has no TaskHook"},
		"no YAML":                  {"a: [", "is not YAML"},
		"a list":                   {"- a\n", "must be an object"},
		"a tab":                    {"\tx: 1", "is not YAML"},
		"keys that are no texts":   {"1: 2\n[a]: b\n", "hooks.yaml:1"},
		"a workflow":               {"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\n", "apiVersion"},
		"a name twice":             {good("TaskHook", "a") + good("TaskHook", "a"), "TaskHook a: is registered already, by hooks.yaml:1"},
		"a cluster hook's name":    {good("TaskHook", "a") + good("ClusterTaskHook", "a"), "the name belongs to a ClusterTaskHook"},
		"a cluster hook twice":     {good("ClusterTaskHook", "a") + good("ClusterTaskHook", "a"), "is registered already"},
		"nothing to reach it by":   {"apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: x}\nspec: {}\n", "must have one of http, container and builtin"},
		"a list for a built-in":    {"apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: x}\nspec: {batch: 3, builtin: {name: cache}}\n", "spec.batch: is for http hooks only"},
		"a caBundle that is none":  {"apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: x}\nspec: {http: {url: https://h, caBundle: aGVsbG8=}}\n", "spec.http.caBundle: must be certificates in PEM form"},
		"a caBundle without https": {"apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: x}\nspec: {http: {url: http://h, caBundle: LS0tLS1CRUdJTiBYLS0tLS0K}}\n", "needs an https url"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadFile("hooks.yaml", []byte(test.data))
			if err == nil {
				t.Fatal("no error")
			}
			wantText(t, "the error", err.Error(), test.want)
		})
	}
}

func FuzzLoadFile(f *testing.F) {
	f.Add(fullDocument)
	f.Add(httpHook("http://h/"))
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, data string) {
		hooks, err := LoadFile("hooks.yaml", []byte(data))
		if err != nil {
			return
		}
		registry, err := NewRegistry(hooks)
		if err != nil {
			t.Fatalf("it loads, but: %v", err)
		}
		if _, err := registry.Select("", nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOrder(t *testing.T) {
	document := func(kind, name, more string) string {
		return "apiVersion: sluice.dev/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: {" + more + "}\n---\n"
	}
	http := "http: {url: http://h/}"
	registry, err := NewRegistry(load(t, document("ClusterTaskHook", "cache", "order: -100, builtin: {name: cache}")+
		document("TaskHook", "zeta", http)+document("TaskHook", "alpha", http)+
		document("TaskHook", "early", "order: -1, "+http)+document("TaskHook", "late", "order: 7, "+http)+
		document("ClusterTaskHook", "last-cluster", "order: 900, "+http)+document("ClusterTaskHook", "first-cluster", http)+
		document("TaskHook", "others", "selector: {matchLabels: {team: b}}, "+http)))
	if err != nil {
		t.Fatal(err)
	}
	selected, err := registry.Select("", map[string]string{"team": "a"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, h := range selected {
		names = append(names, h.Name)
	}
	want := []string{"first-cluster", "last-cluster", "early", "alpha", "zeta", "late", "cache"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestNamespaces(t *testing.T) {
	registry, err := NewRegistry(load(t, `
apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: mine, namespace: a}
spec: {http: {url: http://a/}}
---
apiVersion: sluice.dev/v1alpha1
kind: TaskHook
metadata: {name: mine, namespace: b}
spec: {http: {url: http://b/}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := registry.Lookup("b", "mine"); !ok || h.Spec.HTTP.URL != "http://b/" {
		t.Errorf("b sees %+v", h)
	}
	if _, ok := registry.Lookup("c", "mine"); ok {
		t.Error("c sees another's hook")
	}
	if selected, _ := registry.Select("c", nil); len(selected) != 0 {
		t.Errorf("c selects %v", selected)
	}
	// Without a namespace (local mode) there is one hook of a name.
	if selected, _ := registry.Select("", nil); len(selected) != 1 {
		t.Errorf("local mode selects %v", selected)
	}
}

func TestSelector(t *testing.T) {
	labels := map[string]string{"team": "a", "stage": "prod"}
	for text, want := range map[string]bool{
		"":                                    true,
		"selector: {}":                        true,
		"selector: {matchLabels: {team: a}}":  true,
		"selector: {matchLabels: {team: b}}":  false,
		"selector: {matchLabels: {none: ''}}": false,
		"selector: {matchExpressions: [{key: stage, operator: In, values: [prod]}]}":         true,
		"selector: {matchExpressions: [{key: none, operator: In, values: [prod]}]}":          false,
		"selector: {matchExpressions: [{key: stage, operator: NotIn, values: [prod]}]}":      false,
		"selector: {matchExpressions: [{key: none, operator: NotIn, values: [prod]}]}":       true,
		"selector: {matchExpressions: [{key: stage, operator: Exists}]}":                     true,
		"selector: {matchExpressions: [{key: none, operator: Exists}]}":                      false,
		"selector: {matchExpressions: [{key: none, operator: DoesNotExist}]}":                true,
		"selector: {matchLabels: {team: a}, matchExpressions: [{key: x, operator: Exists}]}": false,
	} {
		if got := selects(load(t, httpHook("http://h/", text))[0].Spec.Selector, labels); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
