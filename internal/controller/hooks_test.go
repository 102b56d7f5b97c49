package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/hook"
)

func taskHook(t *testing.T, k, namespace, name, http string) *unstructured.Unstructured {
	t.Helper()
	u := parse(t, `
apiVersion: sluice.dev/v1alpha1
kind: `+k+`
metadata: {name: `+name+`, generation: 3, managedFields: []}
spec:
  http: `+http+`
`)
	u.SetNamespace(namespace)
	u.SetUID("u-" + u.GetUID())
	return u
}

// A namespaced hook reaches its own namespace and what is listed; references to Services become addresses.
func TestHookAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		kind, namespace, http string
		url, refused          string
	}{
		"own service":           {"TaskHook", "ml", `{service: {name: lineage, path: /hook}}`, "https://lineage.ml.svc:443/hook", ""},
		"own service by port":   {"TaskHook", "ml", `{service: {name: lineage, port: 8443}}`, "https://lineage.ml.svc:8443/", ""},
		"own service by URL":    {"TaskHook", "ml", `{url: "http://lineage.ml.svc.cluster.local:80/x"}`, "http://lineage.ml.svc.cluster.local:80/x", ""},
		"another's service":     {"TaskHook", "ml", `{service: {name: lineage, namespace: other}}`, "https://lineage.other.svc:443/", "not lineage.other.svc"},
		"another's by URL":      {"TaskHook", "ml", `{url: "https://lineage.other.svc/"}`, "https://lineage.other.svc/", "not lineage.other.svc"},
		"a name that looks own": {"TaskHook", "ml", `{url: "https://x.ml.svc.example.com/"}`, "https://x.ml.svc.example.com/", "not x.ml.svc.example.com"},
		"listed":                {"TaskHook", "ml", `{url: "https://lineage.example.com/"}`, "https://lineage.example.com/", ""},
		"an address":            {"TaskHook", "ml", `{url: "https://10.0.0.1/"}`, "https://10.0.0.1/", "not 10.0.0.1"},
		"token for itself":      {"TaskHook", "ml", `{service: {name: lineage}, auth: {serviceAccountToken: {audience: lineage.ml.svc}}}`, "https://lineage.ml.svc:443/", ""},
		"token by address":      {"TaskHook", "ml", `{service: {name: lineage}, auth: {serviceAccountToken: {audience: "https://lineage.ml.svc"}}}`, "https://lineage.ml.svc:443/", ""},
		"token for the cluster": {"TaskHook", "ml", `{service: {name: lineage}, auth: {serviceAccountToken: {audience: "https://kubernetes.default.svc"}}}`, "https://lineage.ml.svc:443/", "its own plugin only"},
		"token for a vault":     {"TaskHook", "ml", `{url: "https://lineage.example.com/", auth: {serviceAccountToken: {audience: vault}}}`, "https://lineage.example.com/", "its own plugin only"},
		"cluster hook's token":  {"ClusterTaskHook", "", `{url: "https://x/", auth: {serviceAccountToken: {audience: lineage}}}`, "https://x/", ""},
		"cluster hook":          {"ClusterTaskHook", "", `{service: {name: lineage, namespace: other}}`, "https://lineage.other.svc:443/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hooks, _ := hooksOf([]*unstructured.Unstructured{taskHook(t, test.kind, test.namespace, "h", test.http)}, []string{"lineage.example.com"}, nil)
			if len(hooks) != 1 {
				t.Fatalf("%d hooks", len(hooks))
			}
			h := hooks[0]
			if h.Spec.HTTP.URL != test.url || h.Spec.HTTP.Service != nil {
				t.Errorf("URL %s, want %s", h.Spec.HTTP.URL, test.url)
			}
			if (h.Refused == "") != (test.refused == "") || !strings.Contains(h.Refused, test.refused) {
				t.Errorf("refused %q, want %q", h.Refused, test.refused)
			}
		})
	}
}

// A name of a cluster hook cannot be taken, and one broken document spoils no other.
func TestHookNames(t *testing.T) {
	mine := taskHook(t, "TaskHook", "ml", "lineage", `{url: "https://x.ml.svc/"}`)
	mine.SetUID("mine")
	broken := taskHook(t, "TaskHook", "ml", "broken", `{uri: "https://x.ml.svc/"}`)
	broken.SetUID("broken")
	good := taskHook(t, "TaskHook", "ml", "good", `{url: "https://x.ml.svc/"}`)
	hooks, faults := hooksOf([]*unstructured.Unstructured{mine, broken, good, taskHook(t, "ClusterTaskHook", "", "lineage", `{url: "https://x/"}`)}, nil, nil)
	var names []string
	for _, h := range hooks {
		names = append(names, h.Kind+" "+h.Name())
	}
	if d := cmp.Diff([]string{"ClusterTaskHook lineage", "TaskHook good"}, names); d != "" {
		t.Error(d)
	}
	if !strings.Contains(faults["mine"], "ClusterTaskHook") || !strings.Contains(faults["broken"], "uri") {
		t.Errorf("faults: %v", faults)
	}
}

// Our own hooks are there for all, until somebody registers one with the same plugin for a namespace, or for all.
func TestOwnHooks(t *testing.T) {
	own := hook.Hook{TaskHook: v1alpha1.TaskHook{
		TypeMeta: v1alpha1.TypeMeta{Kind: "TaskHook"}, Metadata: v1alpha1.ObjectMeta{Name: "sluice-cache"},
		Spec: v1alpha1.TaskHookSpec{Builtin: &v1alpha1.BuiltinHook{Name: "cache"}},
	}}
	builtin := func(k, namespace, name string) *unstructured.Unstructured {
		u := taskHook(t, k, namespace, name, "{}")
		u.Object["spec"] = map[string]any{"builtin": map[string]any{"name": "cache"}}
		u.SetUID("uid-of-" + u.GetUID())
		return u
	}
	for name, test := range map[string]struct {
		object    *unstructured.Unstructured
		ml, other string
	}{
		"nobody's":             {nil, "[sluice-cache]", "[sluice-cache]"},
		"another plugin":       {taskHook(t, "TaskHook", "ml", "mine", `{url: "https://x.ml.svc/"}`), "[mine sluice-cache]", "[sluice-cache]"},
		"one of a namespace":   {builtin("TaskHook", "ml", "mine"), "[mine]", "[sluice-cache]"},
		"one of all":           {builtin("ClusterTaskHook", "", "theirs"), "[theirs]", "[theirs]"},
		"one of all, our name": {builtin("ClusterTaskHook", "", "sluice-cache"), "[sluice-cache]", "[sluice-cache]"},
		"our name":             {builtin("TaskHook", "ml", "sluice-cache"), "[sluice-cache]", "[sluice-cache]"},
	} {
		var objects []*unstructured.Unstructured
		if test.object != nil {
			objects = append(objects, test.object)
		}
		hooks, _ := hooksOf(objects, nil, []hook.Hook{own})
		reg, err := hook.NewRegistry(hooks)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c := &Controller{Config: Config{Registry: reg, Select: reg.Select, Own: []hook.Hook{own}}}
		for namespace, want := range map[string]string{"ml": test.ml, "other": test.other} {
			chosen, err := c.choose(namespace, nil)
			var names []string
			for _, h := range chosen {
				names = append(names, h.Name)
			}
			if got := fmt.Sprint(names); err != nil || got != want {
				t.Errorf("%s, namespace %s: %v %v, want %s", name, namespace, got, err, want)
			}
		}
	}
}

// The registry follows the objects: a hook that is made or deleted counts at once, for its namespace only.
func TestHooksAreLive(t *testing.T) {
	reg, err := hook.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	first := taskHook(t, "TaskHook", "ml", "first", `{url: "https://x.ml.svc/"}`)
	w := newWorld(t, nil, first)
	w.controller(func(c *Config) {
		c.Registry = reg
	})
	names := func(namespace string) (out []string) {
		hooks, err := reg.Select(namespace, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range hooks {
			out = append(out, h.Name)
		}
		return out
	}
	if d := cmp.Diff([]string{"first"}, names("ml")); d != "" {
		t.Error(d)
	}
	if got := names("other"); len(got) > 0 {
		t.Errorf("another namespace sees %v", got)
	}
	if err := w.client.Create(context.Background(), taskHook(t, "TaskHook", "ml", "second", `{url: "https://x.ml.svc/"}`)); err != nil {
		t.Fatal(err)
	}
	// A workflow that begins later tells that the controller has had time to look.
	for i := 0; len(names("ml")) != 2; i++ {
		w.submit(strings.Replace(strings.Replace(hello, "name: hello", fmt.Sprintf("name: hello%d", i), 1), "  unknownField: kept\n", "", 1))
		w.untilIn("ml", "Workflow", fmt.Sprintf("hello%d", i), "begun", func(o workflow) bool { return o.begun() })
	}
}

// Secrets of hooks are read where the hook may read them.
func TestHookSecrets(t *testing.T) {
	w := newWorld(t, nil, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: "ml"}, Data: map[string][]byte{"key": []byte("secret")},
	})
	s := HookSecrets{Client: w.client}
	at := func(k, namespace string) hook.Hook {
		return hook.Hook{TaskHook: v1alpha1.TaskHook{TypeMeta: v1alpha1.TypeMeta{Kind: k}, Metadata: v1alpha1.ObjectMeta{Name: "h", Namespace: namespace}}}
	}
	for name, test := range map[string]struct {
		hook hook.Hook
		from v1alpha1.SecretSource
		ok   bool
	}{
		"own":             {at("TaskHook", "ml"), v1alpha1.SecretSource{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "shared", Key: "key"}}, true},
		"no such key":     {at("TaskHook", "ml"), v1alpha1.SecretSource{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "shared", Key: "other"}}, false},
		"another's":       {at("TaskHook", "other"), v1alpha1.SecretSource{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "shared", Key: "key", Namespace: "ml"}}, false},
		"cluster hook":    {at("ClusterTaskHook", ""), v1alpha1.SecretSource{SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "shared", Key: "key", Namespace: "ml"}}, true},
		"a file":          {at("TaskHook", "ml"), v1alpha1.SecretSource{File: "/etc/passwd"}, false},
		"the environment": {at("ClusterTaskHook", ""), v1alpha1.SecretSource{Env: "HOME"}, false},
	} {
		value, err := s.Secret(context.Background(), test.hook, test.from)
		if (err == nil) != test.ok || test.ok && string(value) != "secret" {
			t.Errorf("%s: %q %v", name, value, err)
		}
	}
}
