package memo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/controller/memo"
	"github.com/sluice-ml/sluice/internal/hook/cache"
)

const (
	memoScope = `key/"ml"/"results"`
	kfpScope  = `kfp/"ml"/"train"`
)

var made = time.Date(2026, 1, 31, 12, 0, 0, 500_000_000, time.UTC)

func text(s string) *string { return &s }

// outputs are a text, a number that came from a hook, a result and an artifact.
func outputs() v1alpha1.Outputs {
	return v1alpha1.Outputs{
		Parameters: map[string]any{"hello": "world", "a": "1"},
		Result:     text("done"),
		Artifacts: map[string][]v1alpha1.Artifact{"model": {{
			Name: "model", URI: "s3://models/run/model.tgz", Archive: "tar", Store: []byte(`{"s3":{"bucket":"models","key":"run/model.tgz"}}`),
		}}},
	}
}

func entry(scope, key string) cache.Entry {
	return cache.Entry{Scope: scope, Key: key, Outputs: outputs(), Created: made, Workflow: "flow", WorkflowUID: "u", Task: "flow.train"}
}

func labelled(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{memo.LabelArgo: memo.ArgoCache, "team": "a"}}, Data: data,
	}
}

func get(t *testing.T, c client.Client, name string) *corev1.ConfigMap {
	t.Helper()
	o := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ml", Name: name}, o); err != nil {
		t.Fatal(err)
	}
	return o
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func TestWhatIsWrittenIsArgos(t *testing.T) {
	c := fake.NewFakeClient()
	e := memo.New(c, quiet)
	if err := e.Put(t.Context(), entry(memoScope, "k")); err != nil {
		t.Fatal(err)
	}
	o := get(t, c, "results")
	equal(t, o.Labels, map[string]string{"workflows.argoproj.io/configmap-type": "Cache"})
	// The ID is what Argo's controller gives node flow.train of workflow flow.
	equal(t, o.Data, map[string]string{"k": `{"nodeID":"flow-3875976989",` +
		`"outputs":{"parameters":[{"name":"a","value":"1"},{"name":"hello","value":"world"}],` +
		`"artifacts":[{"archive":{"tar":{}},"name":"model","s3":{"bucket":"models","key":"run/model.tgz"},"uri":"s3://models/run/model.tgz"}],` +
		`"result":"done","exitCode":"0"},` +
		`"creationTimestamp":"2026-01-31T12:00:00Z","lastHitTimestamp":"2026-01-31T12:00:00Z"}`})
	got, err := e.Get(t.Context(), memoScope, "k")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.Outputs, outputs())
	if none, err := e.Get(t.Context(), memoScope, "other"); none != nil || err != nil {
		t.Errorf("another key: %v, %v", none, err)
	}
	if none, err := e.Get(t.Context(), `key/"other"/"results"`, "k"); none != nil || err != nil {
		t.Errorf("another namespace: %v, %v", none, err)
	}
}

// The entry is the one in the comment of Argo's example memoize-simple.yaml.
const argos = `{"nodeID":"memoized-hdckj","outputs":{"parameters":[{"name":"hello","value":"different world",` +
	`"valueFrom":{"path":"/tmp/hello_world.txt"}}],"exitCode":"0"},"creationTimestamp":"2021-10-12T15:14:04Z","lastHitTimestamp":"2021-10-12T15:14:04Z"}`

func TestEntriesOfArgoAreRead(t *testing.T) {
	c := fake.NewFakeClient(labelled("results", map[string]string{"k": argos, "other": "as it was"}))
	e := memo.New(c, quiet)
	got, err := e.Get(t.Context(), memoScope, "k")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2021, 10, 12, 15, 14, 4, 0, time.UTC)
	equal(t, got, &cache.Entry{
		Scope: memoScope, Key: "k", Task: "memoized-hdckj", Created: at, LastHit: at,
		Outputs: v1alpha1.Outputs{Parameters: map[string]any{"hello": "different world"}},
	})
	if err := e.Hit(t.Context(), memoScope, "k", made); err != nil {
		t.Fatal(err)
	}
	if err := e.Hit(t.Context(), memoScope, "gone", made); err != nil {
		t.Error("an entry that is gone:", err)
	}
	o := get(t, c, "results")
	equal(t, o.Labels, map[string]string{memo.LabelArgo: memo.ArgoCache, "team": "a"})
	if got := o.Data["k"]; !strings.Contains(got, `"lastHitTimestamp":"2026-01-31T12:00:00Z"`) || !strings.Contains(got, `"creationTimestamp":"2021-10-12T15:14:04Z"`) ||
		!strings.Contains(got, `"valueFrom":{"path":"/tmp/hello_world.txt"}`) {
		t.Error(got)
	}
	if err := e.Delete(t.Context(), memoScope, "k"); err != nil {
		t.Fatal(err)
	}
	equal(t, get(t, c, "results").Data, map[string]string{"other": "as it was"})
}

func TestArtifactsWithoutTheirStoreAreNotReused(t *testing.T) {
	e := memo.New(fake.NewFakeClient(labelled("results", map[string]string{
		"k": `{"nodeID":"n","outputs":{"artifacts":[{"name":"model","path":"/m","s3":{"key":"flow/model.tgz"}}]},"creationTimestamp":null,"lastHitTimestamp":null}`,
	})), quiet)
	if got, err := e.Get(t.Context(), memoScope, "k"); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWhatIsNoCacheIsLeftAlone(t *testing.T) {
	other := labelled("results", map[string]string{"k": argos})
	delete(other.Labels, memo.LabelArgo)
	c := fake.NewFakeClient(other, labelled("broken", map[string]string{"k": "{"}))
	var log bytes.Buffer
	e := memo.New(c, slog.New(slog.NewTextHandler(&log, nil)))
	for scope, want := range map[string]string{
		memoScope:           "ConfigMap results does not have the label workflows.argoproj.io/configmap-type: Cache",
		`key/"ml"/"broken"`: "malformed cache entry k of ConfigMap broken: unexpected end of JSON input",
		`key/"ml"/""`:       "configMap.name is empty",
	} {
		_, err := e.Get(t.Context(), scope, "k")
		var unusable *cache.UnusableError
		if !errors.As(err, &unusable) || !strings.Contains(unusable.Message, want) {
			t.Errorf("%s: %v", scope, err)
		}
	}
	if err := e.Put(t.Context(), entry(memoScope, "k")); err != nil {
		t.Error("the task has succeeded:", err)
	}
	equal(t, get(t, c, "results").Data, map[string]string{"k": argos})
	if !strings.Contains(log.String(), "a result could not be remembered") {
		t.Error(log.String())
	}
}

func TestPipelinesHaveAConfigMapOfOurs(t *testing.T) {
	c := fake.NewFakeClient()
	e := memo.New(c, quiet)
	want := entry(kfpScope, "abc")
	want.Outputs.Parameters["n"] = 1.5
	want.Outputs.Artifacts["model"] = append(want.Outputs.Artifacts["model"], v1alpha1.Artifact{URI: "s3://b/second"})
	if err := e.Put(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := e.Hit(t.Context(), kfpScope, "abc", made.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := e.Get(t.Context(), kfpScope, "abc")
	if err != nil {
		t.Fatal(err)
	}
	want.Hits, want.LastHit = 2, made.Add(time.Hour)
	equal(t, *got, want)
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.InNamespace("ml"), client.MatchingLabels{memo.LabelOurs: "true"}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d ConfigMaps, %v", len(list.Items), err)
	}
	if other, err := e.Get(t.Context(), `kfp/"ml"/"other"`, "abc"); other != nil || err != nil {
		t.Errorf("another pipeline: %v, %v", other, err)
	}
}

func TestWhatWasNotUsedMakesRoom(t *testing.T) {
	for _, scope := range []string{memoScope, kfpScope} {
		c := fake.NewFakeClient()
		e := memo.New(c, quiet)
		put := func(key string, at time.Duration) {
			t.Helper()
			large := entry(scope, key)
			large.Outputs.Parameters["large"] = strings.Repeat("x", 300<<10)
			large.Created = made.Add(at)
			if err := e.Put(t.Context(), large); err != nil {
				t.Fatal(err)
			}
		}
		for i, key := range []string{"a", "b", "c"} {
			put(key, time.Duration(i)*time.Minute)
		}
		if err := e.Hit(t.Context(), scope, "a", made.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		put("d", 2*time.Hour)
		for key, want := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
			if got, err := e.Get(t.Context(), scope, key); (got != nil) != want || err != nil {
				t.Errorf("%s %s: %v %v", scope, key, got != nil, err)
			}
		}
		huge := entry(scope, "huge")
		huge.Outputs.Result = text(strings.Repeat("x", 2<<20))
		if err := e.Put(t.Context(), huge); err != nil {
			t.Error("what can never be kept is no error:", err)
		}
		if got, err := e.Get(t.Context(), scope, "d"); got == nil || err != nil {
			t.Error("nothing makes room for what does not fit:", err)
		}
	}
}

// Two controllers write one ConfigMap, each many entries at once.
func TestNoChangeIsLost(t *testing.T) {
	c := fake.NewFakeClient()
	var all sync.WaitGroup
	for _, owner := range []string{"x", "y"} {
		e := memo.New(c, quiet)
		for i := range 20 {
			all.Go(func() {
				key := fmt.Sprintf("%s%d", owner, i)
				for { // as the hook is asked again where everybody was faster
					err := e.Put(t.Context(), entry(memoScope, key))
					if err == nil {
						return
					}
					if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if n := len(get(t, c, "results").Data); n != 40 {
		t.Errorf("%d entries", n)
	}
}

func TestRightsThatAreMissing(t *testing.T) {
	gvr := schema.GroupResource{Resource: "configmaps"}
	fails := apierrors.NewForbidden(gvr, "results", errors.New("no"))
	c := interceptor.NewClient(fake.NewFakeClient(labelled("results", map[string]string{"k": argos})), interceptor.Funcs{
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return fails },
	})
	e := memo.New(c, quiet)
	if err := errors.Join(e.Put(t.Context(), entry(memoScope, "new")), e.Hit(t.Context(), memoScope, "k", made)); err != nil {
		t.Error("it fails the next time, too:", err)
	}
	fails = apierrors.NewServiceUnavailable("busy")
	if err := e.Put(t.Context(), entry(memoScope, "new")); !apierrors.IsServiceUnavailable(err) {
		t.Error(err)
	}
}
