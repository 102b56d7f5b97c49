package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/backend/kube/endpoint"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

var aRun = engine.Run{Name: "run", UID: "uid-1", Namespace: "ns"}

func aTask() engine.StartTask {
	return engine.StartTask{
		Node: 1, Path: "run.task", Pod: program.PodName("run", "task", "run.task"),
		Body: program.Body{Kind: program.Containers, Containers: []program.Container{{Name: "main", Image: "image", Command: []string{"true"}}}},
	}
}

// told keeps what a backend tells.
type told struct {
	mu      sync.Mutex
	events  []engine.Event
	changed chan struct{}
}

func newTold() *told { return &told{changed: make(chan struct{})} }

func (s *told) Tell(_ string, e engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// patience is how long tests wait for what must come.
const patience = 30 * time.Second

// until waits for something to be true of the events.
func (s *told) until(t *testing.T, what string, ok func([]engine.Event) bool) {
	t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		done, changed := ok(s.events), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-limit:
			t.Fatalf("waited in vain for %s: %+v", what, s.events)
		}
	}
}

// end waits for the end, of which there must be one.
func (s *told) end(t *testing.T) engine.Result {
	t.Helper()
	var r engine.Result
	s.until(t, "the end", func(events []engine.Event) bool {
		n := 0
		for _, e := range events {
			if e.Finished != nil {
				n++
				r = e.Finished.Result
			}
		}
		if n > 1 {
			t.Fatalf("the end was told %d times", n)
		}
		return n == 1
	})
	return r
}

func (s *told) noted(text string) func([]engine.Event) bool {
	return func(events []engine.Event) bool {
		return slices.ContainsFunc(events, func(e engine.Event) bool { return e.Noted != nil && strings.Contains(e.Noted.Message, text) })
	}
}

// eventually waits for a state of the cluster.
func eventually(t *testing.T, c *cluster, what string, ok func([]corev1.Pod) bool) {
	t.Helper()
	w, err := c.Tracker().Watch(podKind, aRun.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	limit := time.After(patience)
	for !ok(c.pods(t)) {
		select {
		case <-w.ResultChan():
		case <-limit:
			t.Fatalf("waited in vain for %s: %+v", what, c.pods(t))
		}
	}
}

func open(t *testing.T, c *cluster, sink Sink, change ...func(*Config)) *Backend {
	t.Helper()
	cfg := Config{Client: c, Pod: pod.Config{ExecutorImage: "executor", Endpoint: "https://endpoint"}}
	for _, f := range change {
		f(&cfg)
	}
	b, err := New(cfg, sink)
	if err != nil {
		t.Fatal(err)
	}
	<-c.watched
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func start(t *testing.T, b *Backend) {
	t.Helper()
	if err := b.Start(t.Context(), aRun, aTask()); err != nil {
		t.Fatal(err)
	}
}

// succeed ends a pod well.
func (c *cluster) succeed(t *testing.T, p corev1.Pod) {
	t.Helper()
	zero := 0
	if err := c.set(&p, status(corev1.PodSucceeded, exited("main", 0, "Completed", report(t, spec.Result{Phase: spec.Succeeded, ExitCode: &zero, Ran: true})))); err != nil {
		t.Fatal(err)
	}
}

func one(pods []corev1.Pod) bool { return len(pods) == 1 }

// Whatever the API server answers to the first creations, there is one pod in the end, and its end is told once.
func TestTroubledCreation(t *testing.T) {
	resource := podKind.GroupResource()
	for name, test := range map[string]struct {
		err  error
		made bool // all the same
		note string
	}{
		"too many requests":            {err: apierrors.NewTooManyRequestsError("slow down")},
		"a conflict":                   {err: apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errors.New("changed"))},
		"an internal error":            {err: apierrors.NewInternalError(errors.New("webhook"))},
		"a time-out":                   {err: apierrors.NewTimeoutError("no answer", 1)},
		"a time-out after the fact":    {err: apierrors.NewTimeoutError("no answer", 1), made: true},
		"a lost answer":                {err: context.DeadlineExceeded, made: true},
		"the server is being shut":     {err: apierrors.NewServiceUnavailable("bye")},
		"a quota that is used up":      {err: apierrors.NewForbidden(resource, "p", errors.New("exceeded quota: q, requested: pods=1")), note: "exceeded quota"},
		"an answer that came too late": {err: apierrors.NewServerTimeout(resource, "create", 1), made: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, sink := newCluster(), newTold()
			tries := 0
			c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				if tries++; tries > 2 {
					return false, nil, nil
				}
				if test.made && tries == 1 {
					p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
					p.UID = "made"
					if err := c.Tracker().Create(podKind, p, p.Namespace); err != nil {
						t.Error(err)
					}
				}
				return true, nil, test.err
			})
			b := open(t, c, sink)
			start(t, b)
			if test.note != "" {
				sink.until(t, "the note", sink.noted(test.note))
			}
			eventually(t, c, "the pod", one)
			c.succeed(t, c.pods(t)[0])
			if r := sink.end(t); r.Phase != engine.SucceededPhase {
				t.Errorf("%+v", r)
			}
			if n := len(c.pods(t)); n != 1 {
				t.Errorf("%d pods", n)
			}
		})
	}
}

func TestRefusedCreation(t *testing.T) {
	c, sink := newCluster(), newTold()
	c.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(podKind.GroupResource(), "p", errors.New(`violates PodSecurity "restricted:latest"`))
	})
	err := open(t, c, sink).Start(t.Context(), aRun, aTask())
	if err == nil || !strings.Contains(err.Error(), "PodSecurity") {
		t.Errorf("error %v", err)
	}
	if len(sink.events) > 0 {
		t.Errorf("told %+v", sink.events)
	}
}

func TestStoppedWhileItCannotBeMade(t *testing.T) {
	for _, made := range []bool{false, true} {
		c, sink := newCluster(), newTold()
		c.unplaced = true
		asked := make(chan struct{}, 100)
		c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			asked <- struct{}{}
			return true, nil, apierrors.NewTimeoutError("no answer", 1)
		})
		b := open(t, c, sink)
		start(t, b)
		<-asked
		if made { // and the informer has not heard of it
			objects, err := pod.Build(t.Context(), b.cfg.Pod, aRun, aTask(), nil)
			if err != nil {
				t.Fatal(err)
			}
			objects.Pod.UID = "made"
			if err := c.Tracker().Create(podKind, objects.Pod, aRun.Namespace); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Stop(t.Context(), aRun, engine.StopTask{Node: 1, Path: "run.task", Message: "enough"}); err != nil {
			t.Fatal(err)
		}
		if r := sink.end(t); r.Phase != engine.FailedPhase || r.Message != "enough" {
			t.Errorf("%+v", r)
		}
		for _, p := range c.pods(t) {
			if p.DeletionTimestamp == nil {
				t.Errorf("pod %s is left", p.Name)
			}
		}
	}
}

// A pod of the same name that is for another attempt, as 32-bit names allow, is left alone.
func TestNameOfAnother(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: aTask().Pod, Namespace: "ns", UID: "other", Annotations: map[string]string{pod.IdentityAnnotation: "uid-1/run.other"}}}
	if err := c.Tracker().Create(podKind, other, "ns"); err != nil {
		t.Fatal(err)
	}
	start(t, b)
	eventually(t, c, "the pod", func(pods []corev1.Pod) bool { return len(pods) == 2 })
	for _, p := range c.pods(t) {
		if p.UID == "other" {
			continue
		}
		if p.Name != aTask().Pod+"-2" || p.Annotations[pod.IdentityAnnotation] != "uid-1/run.task" {
			t.Errorf("%s %v", p.Name, p.Annotations)
		}
		c.succeed(t, p)
	}
	if r := sink.end(t); r.Phase != engine.SucceededPhase {
		t.Errorf("%+v", r)
	}
}

// A pod in another namespace that says it is for an attempt is not believed.
func TestPodOfAnotherNamespace(t *testing.T) {
	c, sink := newCluster(), newTold()
	objects, err := pod.Build(t.Context(), pod.Config{ExecutorImage: "executor"}, engine.Run{Name: "run", UID: "uid-1", Namespace: "foreign"}, aTask(), nil)
	if err != nil {
		t.Fatal(err)
	}
	forged := objects.Pod
	forged.UID = "forged"
	forged.Status = status(corev1.PodSucceeded, exited("main", 0, "Completed", report(t, spec.Result{Phase: spec.Succeeded})))
	if err := c.Tracker().Create(podKind, forged, "foreign"); err != nil {
		t.Fatal(err)
	}
	b := open(t, c, sink)
	start(t, b)
	if len(sink.events) > 0 {
		t.Fatalf("told %+v", sink.events)
	}
	if _, err := c.CoreV1().Pods("ns").Get(t.Context(), aTask().Pod, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestSettled(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	start(t, b)
	eventually(t, c, "the pod", one)
	c.succeed(t, c.pods(t)[0])
	sink.end(t)
	if err := c.CoreV1().Pods("ns").Delete(t.Context(), aTask().Pod, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p := c.pods(t)
	if len(p) != 1 || !slices.Contains(p[0].Finalizers, pod.Finalizer) || p[0].Labels[pod.CompletedLabel] != "false" {
		t.Fatalf("before it is settled: %+v", p)
	}
	b.Settled(aRun, "run.task")
	eventually(t, c, "its end", func(pods []corev1.Pod) bool { return len(pods) == 0 })
	b.Settled(aRun, "run.task") // nothing to do
}

// A backend that comes after settles what its predecessor could not, also of runs that nobody knows any more.
func TestReleased(t *testing.T) {
	for name, release := range map[string]func(t *testing.T, b *Backend){
		"the attempt": func(_ *testing.T, b *Backend) { b.Settled(aRun, "run.task") },
		"the run":     func(_ *testing.T, b *Backend) { b.Release("uid-1") },
		"runs that are not known": func(t *testing.T, b *Backend) {
			if err := b.ReleaseUnknown(t.Context(), func(uid string) bool { return uid != "uid-1" }); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, sink := newCluster(), newTold()
			b := open(t, c, sink)
			start(t, b)
			eventually(t, c, "the pod", one)
			c.succeed(t, c.pods(t)[0])
			sink.end(t)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b = open(t, c, sink)
			release(t, b) // before it knows of any pod, perhaps
			eventually(t, c, "that it is let go", func(pods []corev1.Pod) bool {
				return len(pods) == 1 && len(pods[0].Finalizers) == 0 && pods[0].Labels[pod.CompletedLabel] == "true"
			})
		})
	}
}

// What the cluster loses before the command began is made again, three times; then it is an Error that may be tried again.
func TestLostPodsAreReplaced(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	start(t, b)
	seen := map[string]bool{}
	for i := range 1 + maxRestarts {
		var p corev1.Pod
		eventually(t, c, "another pod", func(pods []corev1.Pod) bool {
			if len(pods) != 1 || seen[string(pods[0].UID)] {
				return false
			}
			p = pods[0]
			return true
		})
		seen[string(p.UID)] = true
		if p.Name != aTask().Pod {
			t.Errorf("pod %d is called %s", i, p.Name)
		}
		if i == 2 { // another controller goes on
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			b = open(t, c, sink)
			start(t, b)
		}
		if err := c.set(&p, withReason(status(corev1.PodFailed), "Evicted", "The node was low on resource: memory.")); err != nil {
			t.Fatal(err)
		}
	}
	r := sink.end(t)
	if r.Phase != engine.ErrorPhase || !r.Transient || !strings.Contains(r.Message, "Evicted") {
		t.Errorf("%+v", r)
	}
	sink.until(t, "the last note", sink.noted("trying again (3 of 3)"))
}

type results struct {
	data  []byte
	fails int
}

func (r *results) Get(context.Context, engine.Run, string) ([]byte, error) {
	if r.fails > 0 {
		r.fails--
		return nil, context.DeadlineExceeded
	}
	return r.data, nil
}

func TestStoredResults(t *testing.T) {
	zero := 0
	data, err := json.Marshal(spec.Result{Phase: spec.Succeeded, ExitCode: &zero, Ran: true, Parameters: map[string]any{"n": 7}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	for name, test := range map[string]struct {
		digest string
		r      *results
		want   engine.Result
	}{
		"as it was left": {hex.EncodeToString(sum[:]), &results{data: data, fails: 2}, engine.Result{Phase: engine.SucceededPhase}},
		"changed":        {"00", &results{data: data}, engine.Result{Phase: engine.ErrorPhase, Message: "the task's result cannot be read: it is not what the task left"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, sink := newCluster(), newTold()
			start(t, open(t, c, sink, func(cfg *Config) { cfg.Results = test.r }))
			eventually(t, c, "the pod", one)
			p := c.pods(t)[0]
			message := `{"stored":true,"digest":"` + test.digest + `"}`
			if err := c.set(&p, status(corev1.PodSucceeded, exited("main", 0, "Completed", message))); err != nil {
				t.Fatal(err)
			}
			r := sink.end(t)
			if r.Phase != test.want.Phase || !strings.HasPrefix(r.Message, test.want.Message) {
				t.Errorf("%+v", r)
			}
			if r.Phase == engine.SucceededPhase && r.Outputs.Parameters["n"] != int64(7) {
				t.Errorf("outputs %+v", r.Outputs)
			}
		})
	}
}

// What keeps a task from starting is said once, and taken back when it starts.
func TestNotes(t *testing.T) {
	c, sink := newCluster(), newTold()
	start(t, open(t, c, sink))
	eventually(t, c, "the pod", one)
	p := c.pods(t)[0]
	for _, s := range []corev1.PodStatus{
		status("Pending", held("main", "ErrImagePull", "not found")), status("Pending", held("main", "ImagePullBackOff", "Back-off")),
		status("Pending", held("main", "ErrImagePull", "not found")), status("Running", running("main", true)),
	} {
		if err := c.set(&p, s); err != nil {
			t.Fatal(err)
		}
	}
	sink.until(t, "the start", func(events []engine.Event) bool { return len(events) > 0 && events[len(events)-1].Running != nil })
	var notes []string
	for _, e := range sink.events {
		if e.Noted != nil {
			notes = append(notes, e.Noted.Message)
		}
	}
	// The informer may leave out steps, never the last.
	if n := len(notes); n != 2 && n != 0 || n == 2 && (!strings.Contains(notes[0], "ull") || notes[1] != "") {
		t.Errorf("notes %q", notes)
	}
	r := sink.events[len(sink.events)-1].Running
	if r.Host != "node" || r.Ready {
		t.Errorf("%+v", r)
	}
}

// Only the pod that the backend has for an attempt gets at what the attempt may have.
func TestAttemptOfPod(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	start(t, b)
	eventually(t, c, "the pod", one)
	p := c.pods(t)[0]
	ask := func(namespace, name, uid string) error {
		got, err := b.Attempt(t.Context(), namespace, name, uid)
		if err == nil && (got.Run.UID != "uid-1" || got.Cmd.Path != "run.task") {
			t.Errorf("%+v", got)
		}
		return err
	}
	if err := ask("ns", p.Name, string(p.UID)); err != nil {
		t.Error(err)
	}
	for _, wrong := range [][3]string{{"other", p.Name, string(p.UID)}, {"ns", "other", string(p.UID)}, {"ns", p.Name, "other"}} {
		if err := ask(wrong[0], wrong[1], wrong[2]); err == nil || errors.Is(err, endpoint.ErrOver) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	c.succeed(t, p)
	sink.end(t)
	if err := ask("ns", p.Name, string(p.UID)); !errors.Is(err, endpoint.ErrOver) {
		t.Errorf("after its end: %v", err)
	}
}

// A specification that is too long for a variable comes and goes with its pod; what the author's own ConfigMaps are called
// does not matter.
func TestConfigMapOfPod(t *testing.T) {
	for name, long := range map[string]bool{"long": true, "short": false} {
		t.Run(name, func(t *testing.T) {
			c, sink := newCluster(), newTold()
			own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: aTask().Pod, Namespace: "ns"}}
			if err := c.Tracker().Add(own); err != nil {
				t.Fatal(err)
			}
			cmd := aTask()
			if long {
				cmd.Body.Kind, cmd.Body.Script = program.Script, strings.Repeat("x", 200<<10)
			}
			cmd.Body.Volumes = []program.Volume{{Name: "v", Kind: "configMap", Source: own.Name}}
			cmd.Body.Containers[0].Mounts = []program.Mount{{Volume: "v", Path: "/v"}}
			b := open(t, c, sink)
			if err := b.Start(t.Context(), aRun, cmd); err != nil {
				t.Fatal(err)
			}
			eventually(t, c, "the pod", one)
			names := func() []string {
				list, err := c.CoreV1().ConfigMaps("ns").List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var out []string
				for _, m := range list.Items {
					out = append(out, m.Name)
				}
				return out
			}
			want := []string{own.Name}
			if long {
				want = append(want, own.Name+"-2")
			}
			if got := names(); !slices.Equal(got, want) {
				t.Errorf("while it runs there are %v, want %v", got, want)
			}
			c.succeed(t, c.pods(t)[0])
			sink.end(t)
			b.Settled(aRun, "run.task")
			eventually(t, c, "that it is let go", func(pods []corev1.Pod) bool { return len(pods[0].Finalizers) == 0 })
			if err := b.Close(); err != nil { // what goes on ends
				t.Fatal(err)
			}
			if got := names(); !slices.Equal(got, want[:1]) {
				t.Errorf("in the end there are %v", got)
			}
		})
	}
}
