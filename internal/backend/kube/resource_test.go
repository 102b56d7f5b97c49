package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// things are the objects of a cluster that resource templates act on.
type things struct {
	meta.RESTMapper
	client *dynamicfake.FakeDynamicClient

	mu sync.Mutex
	as []string
}

func newThings(objects ...runtime.Object) *things {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		configMaps: "ConfigMapList", {Group: "batch", Version: "v1", Resource: "jobs"}: "JobList",
	}, objects...)
	return &things{RESTMapper: mapper, client: client}
}

func (o *things) As(namespace, account string) (dynamic.Interface, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.as = append(o.as, namespace+":"+account)
	return o.client, nil
}

func configMap(name string, labels map[string]any, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "ns", "labels": labels}, "data": data,
	}}
}

func resourceTask(t *testing.T, body map[string]any, outputs ...program.Output) engine.StartTask {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return engine.StartTask{Node: 1, Path: "run.task", Body: program.Body{Kind: program.Resource, Resource: data}, Outputs: program.Outputs{Parameters: outputs}}
}

const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: made\ndata:\n  key: value\n"

func TestResources(t *testing.T) {
	other := func() *unstructured.Unstructured {
		return configMap("made", map[string]any{"app": "x"}, map[string]any{"key": "old"})
	}
	name := program.Output{Name: "name", JSONPath: "{.metadata.name}"}
	for title, test := range map[string]struct {
		there   []runtime.Object
		body    map[string]any
		outputs []program.Output
		phase   engine.Phase
		message string
		want    map[string]any
		left    map[string]string // key of each ConfigMap
	}{
		"create": {
			body: map[string]any{"action": "create", "manifest": manifest, "setOwnerReference": true},
			outputs: []program.Output{
				name, {Name: "owner", JSONPath: "{.metadata.ownerReferences[0].uid}"}, {Name: "none", JSONPath: "{.spec.none}"},
				{Name: "jq", JQFilter: ".data.key"},
			},
			want: map[string]any{"name": "made", "owner": "uid-1", "none": "", "jq": "value"}, left: map[string]string{"made": "value"},
		},
		"create what is there": {
			there: []runtime.Object{other()}, body: map[string]any{"action": "create", "manifest": manifest},
			phase: engine.FailedPhase, message: "already exists", left: map[string]string{"made": "old"},
		},
		"get": {there: []runtime.Object{other()}, body: map[string]any{"action": "get", "manifest": manifest}, outputs: []program.Output{name}, want: map[string]any{"name": "made"}, left: map[string]string{"made": "old"}},
		"get by flags": {
			there: []runtime.Object{other()}, body: map[string]any{"action": "get", "flags": []string{"configmap", "made"}}, outputs: []program.Output{name},
			want: map[string]any{"name": "made"}, left: map[string]string{"made": "old"},
		},
		"get what is not there":        {body: map[string]any{"action": "get", "manifest": manifest}, phase: engine.FailedPhase, message: "not found"},
		"get what need not be there":   {body: map[string]any{"action": "get", "flags": []string{"cm/made", "--ignore-not-found"}}, phase: engine.FailedPhase, message: "find the type cm"},
		"get what need not be there 2": {body: map[string]any{"action": "get", "flags": []string{"configmap/made", "--ignore-not-found"}}, outputs: []program.Output{name}, want: map[string]any{"name": ""}},
		"replace": {
			there: []runtime.Object{other()}, body: map[string]any{"action": "replace", "manifest": manifest}, left: map[string]string{"made": "value"},
		},
		"patch by flags": {
			there: []runtime.Object{other()},
			body:  map[string]any{"action": "patch", "mergeStrategy": "json", "flags": []string{"configmap", "made"}, "manifest": "- op: replace\n  path: /data/key\n  value: patched\n"},
			left:  map[string]string{"made": "patched"},
		},
		"patch by manifest": {
			there: []runtime.Object{other()}, body: map[string]any{"action": "patch", "mergeStrategy": "merge", "manifest": manifest}, left: map[string]string{"made": "value"},
		},
		"delete": {there: []runtime.Object{other()}, body: map[string]any{"action": "delete", "manifest": manifest}},
		"delete by selector": {
			there: []runtime.Object{other(), configMap("b", map[string]any{"app": "y"}, map[string]any{"key": "b"})},
			body:  map[string]any{"action": "delete", "flags": []string{"configmap", "--selector", "app=x"}}, left: map[string]string{"b": "b"},
		},
		"delete what is not there":  {body: map[string]any{"action": "delete", "manifest": manifest}},
		"delete with a condition":   {body: map[string]any{"action": "delete", "manifest": manifest, "successCondition": "a"}, phase: engine.FailedPhase, message: "not supported for delete"},
		"two objects":               {body: map[string]any{"action": "create", "manifest": manifest + "---\n" + manifest}, phase: engine.FailedPhase, message: "is about one object"},
		"no name":                   {body: map[string]any{"action": "create", "manifest": "apiVersion: v1\nkind: ConfigMap\n"}, phase: engine.FailedPhase, message: "kind and name are both required"},
		"an unknown kind":           {body: map[string]any{"action": "create", "manifest": "apiVersion: v2\nkind: Unknown\nmetadata: {name: x}\n"}, phase: engine.FailedPhase, message: "Unknown"},
		"a flag that is not known":  {body: map[string]any{"action": "get", "flags": []string{"configmap", "made", "--as=admin"}}, phase: engine.FailedPhase, message: "unknown flag: --as"},
		"a malformed condition":     {body: map[string]any{"action": "create", "manifest": manifest, "successCondition": "a in"}, phase: engine.FailedPhase, message: "success condition 'a in' failed to parse"},
		"nothing to act on":         {body: map[string]any{"action": "get"}, phase: engine.FailedPhase, message: "needs at least one of flags"},
		"a condition that is met":   {body: map[string]any{"action": "create", "manifest": manifest, "successCondition": "data.key == value, metadata.name"}, left: map[string]string{"made": "value"}},
		"a failure that is met":     {body: map[string]any{"action": "create", "manifest": manifest, "failureCondition": "data.key in (value, other)"}, phase: engine.FailedPhase, message: "failure condition 'data.key in (other,value)' evaluated true", left: map[string]string{"made": "value"}},
		"a success that is no path": {body: map[string]any{"action": "create", "manifest": manifest, "successCondition": "!data.none"}, left: map[string]string{"made": "value"}},
	} {
		t.Run(title, func(t *testing.T) {
			o, sink := newThings(test.there...), newTold()
			b := open(t, newCluster(), sink, func(c *Config) {
				c.Objects = o
			})
			cmd := resourceTask(t, test.body, test.outputs...)
			cmd.RunPod = program.JSON(`{"serviceAccountName":"worker"}`)
			if err := b.Start(t.Context(), aRun, cmd); err != nil {
				t.Fatal(err)
			}
			r := sink.end(t)
			if test.phase == "" {
				test.phase = engine.SucceededPhase
			}
			if r.Phase != test.phase || !strings.Contains(r.Message, test.message) || (r.Message == "") != (test.message == "") {
				t.Errorf("phase %s, message %q; want %s %q", r.Phase, r.Message, test.phase, test.message)
			}
			if r.Phase == engine.FailedPhase && (r.ExitCode == nil || *r.ExitCode != 64) {
				t.Errorf("exit code %v, want Argo's 64", r.ExitCode)
			}
			if diff := cmp.Diff(test.want, r.Outputs.Parameters); diff != "" {
				t.Error(diff)
			}
			list, err := o.client.Resource(configMaps).Namespace("ns").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var left map[string]string
			for _, item := range list.Items {
				if left == nil {
					left = map[string]string{}
				}
				left[item.GetName()], _, _ = unstructured.NestedString(item.Object, "data", "key")
			}
			if diff := cmp.Diff(test.left, left); diff != "" {
				t.Error(diff)
			}
			for _, as := range o.as {
				if as != "ns:worker" {
					t.Errorf("done as %s", as)
				}
			}
		})
	}
}

const generated = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: made-\ndata:\n  key: value\n"

// A template that was cut off is begun again, and makes nothing a second time; another attempt makes its own.
func TestResourceSurvivesACrash(t *testing.T) {
	for _, text := range []string{manifest, generated} {
		o := newThings()
		cmd := resourceTask(t, map[string]any{"action": "create", "manifest": text, "successCondition": "data.done == yes"})
		made := make(chan struct{}, 100)
		o.client.PrependWatchReactor("configmaps", func(a clienttesting.Action) (bool, watch.Interface, error) {
			w, err := o.client.Tracker().Watch(configMaps, a.GetNamespace())
			made <- struct{}{}
			return true, w, err
		})
		for range 2 {
			sink := newTold()
			b := open(t, newCluster(), sink, func(c *Config) { c.Objects = o })
			if err := b.Start(t.Context(), aRun, cmd); err != nil {
				t.Fatal(err)
			}
			<-made
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		sink := newTold()
		b := open(t, newCluster(), sink, func(c *Config) { c.Objects = o })
		if err := b.Start(t.Context(), aRun, cmd); err != nil {
			t.Fatal(err)
		}
		<-made
		client := o.client.Resource(configMaps).Namespace("ns")
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 1 || list.Items[0].GetAnnotations()[pod.IdentityAnnotation] != "uid-1/run.task" {
			t.Fatalf("made %+v", list.Items)
		}
		item := list.Items[0]
		if err := unstructured.SetNestedField(item.Object, "yes", "data", "done"); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Update(t.Context(), &item, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if r := sink.end(t); r.Phase != engine.SucceededPhase {
			t.Errorf("%+v", r)
		}
		again := cmd
		again.Node, again.Path = 2, "run.task(1)"
		if err := b.Start(t.Context(), aRun, again); err != nil {
			t.Fatal(err)
		}
		if text == manifest {
			sink.until(t, "a refusal", func(events []engine.Event) bool {
				last := events[len(events)-1].Finished
				return last != nil && last.Node == 2 && strings.Contains(last.Result.Message, "already exists")
			})
		}
	}
}

func TestResourceIsStopped(t *testing.T) {
	o, sink := newThings(), newTold()
	b := open(t, newCluster(), sink, func(c *Config) { c.Objects = o })
	if err := b.Start(t.Context(), aRun, resourceTask(t, map[string]any{"action": "create", "manifest": manifest, "successCondition": "data.done == yes"})); err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(t.Context(), aRun, engine.StopTask{Node: 1, Path: "run.task", Message: "enough"}); err != nil {
		t.Fatal(err)
	}
	if r := sink.end(t); r.Phase != engine.FailedPhase || r.Message != "enough" {
		t.Errorf("%+v", r)
	}
}

func TestWhatMayPass(t *testing.T) {
	pods := podKind.GroupResource()
	for _, err := range []error{
		apierrors.NewInternalError(errors.New("etcd")), apierrors.NewConflict(pods, "p", errors.New("changed")), waiting("w"),
		fmt.Errorf("make: %w", context.DeadlineExceeded), apierrors.NewForbidden(pods, "p", errors.New("exceeded quota: q")),
		apierrors.NewServiceUnavailable("bye"), apierrors.NewTooManyRequestsError("slow"),
	} {
		if !passing(err) {
			t.Errorf("stays: %v", err)
		}
	}
	for _, err := range []error{
		nil, errors.New("x"), context.Canceled, permanent("p"), apierrors.NewForbidden(pods, "p", errors.New("no")), apierrors.NewNotFound(pods, "p"),
		apierrors.NewInternalError(errors.New("failed to create typed patch object (/x; /v1, Kind=ConfigMap)")), apierrors.NewBadRequest("x"),
	} {
		if passing(err) {
			t.Errorf("passes: %v", err)
		}
	}
}

// Calls that may pass are made again; what stays so is an Error that may be tried again.
func TestResourceInTrouble(t *testing.T) {
	for _, most := range []int{2, 1000} {
		o, sink := newThings(), newTold()
		tries := 0
		o.client.PrependReactor("create", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			if tries++; tries > most {
				return false, nil, nil
			}
			return true, nil, apierrors.NewInternalError(errors.New("etcd"))
		})
		b := open(t, newCluster(), sink, func(c *Config) { c.Objects = o })
		if err := b.Start(t.Context(), aRun, resourceTask(t, map[string]any{"action": "create", "manifest": manifest})); err != nil {
			t.Fatal(err)
		}
		r := sink.end(t)
		if most == 2 && r.Phase != engine.SucceededPhase || most > 2 && (r.Phase != engine.ErrorPhase || !r.Transient || tries != objectTries) {
			t.Errorf("after %d tries: %+v", tries, r)
		}
	}
}

func TestPaths(t *testing.T) {
	object := pathLabels{
		"status":   map[string]any{"n": int64(3), "f": 1.5, "ok": true, "list": []any{map[string]any{"type": "Ready"}}, "none": nil},
		"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}},
	}
	for path, want := range map[string]string{
		"status.n": "3", "status.f": "1.5", "status.ok": "true", "status.list.0.type": "Ready", "metadata.labels.a.b/c": "d", "status.none": "",
		"status.list": `[{"type":"Ready"}]`,
	} {
		if got, ok := object.Lookup(path); !ok || got != want {
			t.Errorf("%s: %q %v", path, got, ok)
		}
	}
	for _, path := range []string{"status.x", "status.list.1.type", "status.n.x", "x"} {
		if got, ok := object.Lookup(path); ok {
			t.Errorf("%s: %q", path, got)
		}
	}
	c, err := parseConditions("status.n > 2", "status.n > 3")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := c.met(object); !done || err != nil {
		t.Error(done, err)
	}
}
