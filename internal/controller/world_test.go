package controller

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journals keeps runs in memory. They outlive controllers.
type journals struct {
	mu     sync.Mutex
	runs   map[string]store.Run
	events map[string][]engine.Event
}

func newJournals() *journals {
	return &journals{runs: map[string]store.Run{}, events: map[string][]engine.Event{}}
}

func (j *journals) Create(_ context.Context, owner metav1.OwnerReference, run store.Run, events ...engine.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, there := j.runs[run.UID]; there {
		return kube.ErrExists
	}
	if string(owner.UID) != run.UID {
		return fmt.Errorf("owner %s of run %s", owner.UID, run.UID)
	}
	j.runs[run.UID], j.events[run.UID] = run, events
	return nil
}

func (j *journals) Get(_ context.Context, _, uid string) (store.Run, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	run, there := j.runs[uid]
	if !there {
		return run, fmt.Errorf("%w: %s", store.ErrNotFound, uid)
	}
	return run, nil
}

func (j *journals) Release(string) {}

func (j *journals) Append(_ context.Context, uid string, from int, events []engine.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if from != len(j.events[uid]) {
		return store.ErrConflict
	}
	j.events[uid] = append(j.events[uid], events...)
	return nil
}

func (j *journals) Events(ctx context.Context, uid string) ([]engine.Event, error) {
	return j.EventsFrom(ctx, uid, 0)
}

func (j *journals) EventsFrom(_ context.Context, uid string, from int) ([]engine.Event, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]engine.Event(nil), j.events[uid][from:]...), nil
}

func (j *journals) SaveState(context.Context, string, int, []byte) error { return nil }
func (j *journals) LoadState(context.Context, string) (int, []byte, error) {
	return 0, nil, nil
}

// world is a cluster, and the machines under it. Controllers come and go.
type world struct {
	t        *testing.T
	client   client.WithWatch // ours
	api      client.WithWatch // the controllers'
	watched  chan struct{}
	journals *journals
	tasks    *dummy.World
	patches  *patches
	uids     int
}

// patches are the bytes that were written into Workflow objects.
type patches struct {
	mu   sync.Mutex
	all  [][]byte
	fail func(n int, data []byte) error
}

func newWorld(t *testing.T, script dummy.Script, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, k := range []schema.GroupVersionKind{
		kind("Workflow"), kind("WorkflowTemplate"), kind("ClusterWorkflowTemplate"), kind("CronWorkflow"),
		{Group: "sluice.dev", Version: "v1alpha1", Kind: "TaskHook"}, {Group: "sluice.dev", Version: "v1alpha1", Kind: "ClusterTaskHook"},
	} {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
	}
	p := &patches{}
	if script == nil {
		script = func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{} }
	}
	w := &world{t: t, journals: newJournals(), tasks: dummy.NewWorld(script), patches: p}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	w.watched = make(chan struct{}, 100)
	w.api = interceptor.NewClient(w.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			data, err := patch.Data(o)
			if err != nil {
				return err
			}
			p.mu.Lock()
			p.all = append(p.all, data)
			n, fail := len(p.all), p.fail
			p.mu.Unlock()
			if fail != nil {
				if err := fail(n, data); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, patch, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetUID() == "" { // the fake gives none
				o.SetUID(types.UID("uid-of-" + o.GetName()))
			}
			return c.Create(ctx, o, opts...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			found, err := c.Watch(ctx, list, opts...)
			w.watched <- struct{}{}
			return found, err
		},
	})
	return w
}

// controller runs one until the test ends, or stop is called.
func (w *world) controller(change ...func(*Config)) (stop func()) {
	w.t.Helper()
	hub := runner.NewHub()
	backend := w.tasks.Open(hub)
	cfg := Config{Client: w.api, Journal: w.journals, Hub: hub, Backend: backend, Workers: 2}
	if os.Getenv("SLUICE_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	// The fake forgets what happens between a list and the watch that follows.
	kinds := 2
	if cfg.Registry != nil {
		kinds += 2
	}
	for range kinds {
		<-w.watched
	}
	stop = sync.OnceFunc(func() {
		cancel(nil)
		if err := <-done; err != nil {
			w.t.Error(err)
		}
		if err := backend.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// submit creates an object from YAML.
func (w *world) submit(text string) workflow {
	w.t.Helper()
	o := parse(w.t, text)
	if o.GetNamespace() == "" {
		o.SetNamespace("ml")
	}
	w.uids++
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
	o.SetCreationTimestamp(metav1.NewTime(time.Date(2026, 1, 1, 0, 0, w.uids, 0, time.UTC)))
	if err := w.client.Create(context.Background(), o); err != nil {
		w.t.Fatal(err)
	}
	return workflow{o}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	m, _ = runtime.DeepCopyJSONValue(whole(m)).(map[string]any)
	return &unstructured.Unstructured{Object: m}
}

// whole turns whole numbers into int64, as decoders of objects do.
func whole(v any) any {
	switch v := v.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = whole(v[k])
		}
	}
	return v
}

// until waits until an object of a kind is as it should be.
func (w *world) until(k, name, what string, ok func(workflow) bool) workflow {
	w.t.Helper()
	return w.untilIn("ml", k, name, what, ok)
}

func (w *world) untilIn(namespace, k, name, what string, ok func(workflow) bool) workflow {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind(k + "List"))
	changes, err := w.client.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		w.t.Fatal(err)
	}
	defer changes.Stop()
	for {
		o := newObject(kind(k))
		err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
		if err != nil {
			o.Object = nil
		}
		if ok(workflow{o}) {
			return workflow{o}
		}
		select {
		case <-changes.ResultChan():
		case <-ctx.Done():
			text, _ := yaml.Marshal(o.Object)
			w.t.Fatalf("%s %s is not %s:\n%s", k, name, what, text)
		}
	}
}

// ended waits for a workflow's end.
func (w *world) ended(name string) workflow {
	w.t.Helper()
	return w.until("Workflow", name, "completed", func(o workflow) bool { return o.Object != nil && o.completed() })
}

// edit changes an object as a tool would: read, change, update.
func (w *world) edit(name string, change func(o map[string]any)) {
	w.t.Helper()
	for range 20 {
		o, err := fetch(context.Background(), w.client, client.ObjectKey{Namespace: "ml", Name: name})
		if err != nil {
			w.t.Fatal(err)
		}
		change(o.Object)
		if err := w.client.Update(context.Background(), o); err == nil {
			return
		}
	}
	w.t.Fatalf("workflow %s cannot be edited", name)
}

// node finds a node of a status by its display name.
func node(t *testing.T, w workflow, name string) map[string]any {
	t.Helper()
	nodes, _ := nested(w.Object, "status", "nodes").(map[string]any)
	for _, n := range nodes {
		if m, ok := n.(map[string]any); ok && m["displayName"] == name {
			return m
		}
	}
	return nil
}

func phaseLabel(w workflow) string { return w.GetLabels()[status.LabelPhase] }
