package controller

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// flaky is a journal that cannot be read a few times.
type flaky struct {
	*journals
	mu   sync.Mutex
	left int
}

func (f *flaky) Get(ctx context.Context, namespace, uid string) (store.Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left--; f.left >= 0 {
		return store.Run{}, errors.New("the API server is busy")
	}
	return f.journals.Get(ctx, namespace, uid)
}

// What a workflow holds is not given to another because the workflow could not be taken up at once.
func TestLocksWaitForWhoHoldsThem(t *testing.T) {
	hold := make(chan struct{})
	w, locked, submit := heldMutex(t, hold)
	stop := w.controller(locked)
	submit("holder")
	w.until("Workflow", "holder", "running", func(o workflow) bool { return node(t, o, "holder")["phase"] == "Running" })
	stop()
	submit("other")
	w.controller(locked, func(c *Config) { c.Journal = &flaky{journals: w.journals, left: 3} })
	w.until("Workflow", "other", "begun", func(o workflow) bool { return o.begun() })
	if n := w.tasks.Runs("uid-2", "other"); n != 0 {
		t.Errorf("the other ran %d times beside the holder", n)
	}
	close(hold)
	if o := w.ended("other"); o.phase() != "Succeeded" || w.tasks.Runs("uid-1", "holder") != 1 {
		t.Errorf("status: %v; the holder ran %d times", o.status(), w.tasks.Runs("uid-1", "holder"))
	}
}

// A run whose end was not shown when its controller died is shown by the next one, which lets go of its pods, too.
func TestEndOfARunThatHasEnded(t *testing.T) {
	hold := make(chan struct{})
	w := newWorld(t, func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{Until: hold} })
	broken := errors.New("the API server does not answer")
	w.patches.fail = func(_ int, data []byte) error {
		if strings.Contains(string(data), `"Succeeded"`) {
			return broken
		}
		return nil
	}
	stop := w.controller()
	w.submit(chain)
	w.until("Workflow", "chain", "begun", func(o workflow) bool { return o.begun() })
	close(hold)
	for ended := false; !ended; { // in the journal, not in the object
		w.journals.mu.Lock()
		events := w.journals.events["uid-1"]
		last := events[len(events)-1]
		ended = last.Finished != nil && last.Finished.Result.Phase == engine.SucceededPhase && w.tasks.Runs("uid-1", "chain.c") == 1
		w.journals.mu.Unlock()
	}
	stop()
	w.patches.mu.Lock()
	w.patches.fail = nil
	w.patches.mu.Unlock()
	released := make(chan string, 10)
	w.controller(func(c *Config) { c.Release = func(uid string) { released <- uid } })
	if o := w.ended("chain"); o.phase() != "Succeeded" {
		t.Errorf("status: %v", o.status())
	}
	if uid := <-released; uid != "uid-1" {
		t.Errorf("released %s", uid)
	}
}

// A workflow whose journal is gone does not run a second time.
func TestJournalIsGone(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	w := newWorld(t, func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{Until: hold} })
	stop := w.controller()
	w.submit(chain)
	w.until("Workflow", "chain", "running", func(o workflow) bool { return node(t, o, "a")["phase"] == "Running" })
	stop()
	w.journals.mu.Lock()
	delete(w.journals.runs, "uid-1")
	delete(w.journals.events, "uid-1")
	w.journals.mu.Unlock()
	w.controller()
	o := w.ended("chain")
	if message, _ := nested(o.Object, "status", "message").(string); o.phase() != "Error" || !strings.Contains(message, "journal") {
		t.Errorf("status: %v", o.status())
	}
}

// Pods that nobody waits for are looked for again and again.
func TestSweep(t *testing.T) {
	w := newWorld(t, nil)
	swept := make(chan bool, 3)
	w.submit(chain)
	w.controller(func(c *Config) {
		c.SweepEvery = time.Millisecond
		c.ReleaseUnknown = func(_ context.Context, known func(string) bool) error {
			select {
			case swept <- known("uid-9"):
			default:
			}
			return nil
		}
	})
	for range 3 { // one is that after the start
		if <-swept {
			t.Error("a run is known that is not there")
		}
	}
}

// Whoever waits gets a free place, also when the one before it goes away or has not come yet.
func TestSlots(t *testing.T) {
	at := func(name string, n int) workflow {
		o := newObject(kind("Workflow"))
		o.SetNamespace("ml")
		o.SetName(name)
		o.SetCreationTimestamp(metav1.NewTime(time.Unix(int64(n), 0)))
		return workflow{o}
	}
	s := newSlots(2, 0)
	for i, name := range []string{"x", "y", "a", "b", "c"} {
		if got, want := s.take(name, at(name, i)), i < 2; got != want {
			t.Errorf("%s has a place: %v, want %v", name, got, want)
		}
	}
	for _, step := range []struct {
		ends string
		next []string
	}{
		{"x", []string{"a"}},
		{"y", []string{"a", "b"}}, // a has not come yet
		{"a", []string{"b", "c"}}, // nor will it
	} {
		if got := s.release(step.ends); !reflect.DeepEqual(got, step.next) {
			t.Errorf("after %s: %v, want %v", step.ends, got, step.next)
		}
	}
	if !s.take("c", at("c", 4)) || !s.take("b", at("b", 3)) || s.take("d", at("d", 5)) {
		t.Error("the places are not those that were promised")
	}
}

// Locks that nobody asks for any more leave nothing behind.
func TestLedgerForgets(t *testing.T) {
	l := &ledger{sizes: map[string]sized{}}
	for i := range 10 {
		run := fmt.Sprint(i)
		if err := l.AskLocks(t.Context(), "", run, "p", []string{"mutex/ml/shared", "mutex/ml/" + run}, []int{1, 1}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 9 {
		l.releaseRun(fmt.Sprint(i))
	}
	if len(l.sizes) != 2 {
		t.Errorf("%d sizes are kept, want those of the one request left", len(l.sizes))
	}
	if err := l.ReleaseLocks(t.Context(), "9", "p"); err != nil || len(l.sizes)+len(l.requests) > 0 {
		t.Errorf("kept: %v %v; %v", l.sizes, l.requests, err)
	}
}

// unclaimed fails a few times to make claims, and counts.
type unclaimed struct {
	err   error
	mu    sync.Mutex
	tries int
}

func (u *unclaimed) Make(context.Context, engine.Run, []corev1.PersistentVolumeClaim) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tries++; u.tries < 3 {
		return fmt.Errorf("make volume claim: %w", u.err)
	}
	return nil
}

func (u *unclaimed) Delete(context.Context, engine.Run, []corev1.PersistentVolumeClaim, string, engine.Phase) error {
	return nil
}

// A run ends because its claims can never be made, not because the API server was away.
func TestClaimsThatCannotBeMade(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, test := range map[string]struct {
		err   error
		phase string
	}{
		"no connection": {&url.Error{Op: "Post", URL: "https://api", Err: errors.New("connection refused")}, "Succeeded"},
		"busy":          {apierrors.NewTooManyRequests("busy", 1), "Succeeded"},
		"slow":          {context.DeadlineExceeded, "Succeeded"},
		"forbidden":     {apierrors.NewForbidden(claims, "work", nil), "Error"},
		"another's":     {errors.New("it is there already and belongs to something else"), "Error"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.controller(func(c *Config) { c.Claims = &unclaimed{err: test.err} })
			w.submit(strings.Replace(hello, "  unknownField: kept\n", "  volumeClaimTemplates: [{metadata: {name: work}}]\n", 1))
			if o := w.ended("hello"); o.phase() != test.phase {
				t.Errorf("status: %v, want %s", o.status(), test.phase)
			}
		})
	}
}

// keptClaims takes note of the claims that are made.
type keptClaims struct {
	mu   sync.Mutex
	made []corev1.PersistentVolumeClaim
}

func (k *keptClaims) Make(_ context.Context, _ engine.Run, templates []corev1.PersistentVolumeClaim) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made = append(k.made, templates...)
	return nil
}

func (k *keptClaims) Delete(context.Context, engine.Run, []corev1.PersistentVolumeClaim, string, engine.Phase) error {
	return nil
}

// A pipeline's workspace is a claim of its run, and its objects are kept as long as its configuration says.
func TestPipelineSettings(t *testing.T) {
	w := newWorld(t, nil)
	claims := &keptClaims{}
	w.controller(func(c *Config) { c.Claims = claims })
	w.submit(`
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: pipeline}
spec:
  sluice:
    pipelineSpec: |
      pipelineInfo: {name: p}
      schemaVersion: 2.1.0
      components: {c: {executorLabel: e}}
      deploymentSpec: {executors: {e: {container: {image: alpine, command: [ls, "{{$.workspace_path}}"]}}}}
      root: {dag: {tasks: {t: {componentRef: {name: c}, taskInfo: {name: t}}}}}
      ---
      platforms:
        kubernetes:
          pipelineConfig:
            workspace: {size: 1Gi, kubernetes: {pvcSpecPatch: {storageClassName: fast}}}
            resourceTtlOnCompletion: 3600
`)
	o := w.ended("pipeline")
	if o.phase() != "Succeeded" {
		t.Fatalf("status: %v", o.status())
	}
	trimmed, err := trim(o.DeepCopy()) // as the informer has it
	if err != nil {
		t.Fatal(err)
	}
	if ttl, ok := (workflow{trimmed.(*unstructured.Unstructured)}).ttl(); !ok || ttl != time.Hour {
		t.Errorf("it is kept for %v (%v), want an hour", ttl, ok)
	}
	claims.mu.Lock()
	defer claims.mu.Unlock()
	if len(claims.made) == 0 || claims.made[0].Name != "kfp-workspace" || claims.made[0].Spec.StorageClassName == nil ||
		*claims.made[0].Spec.StorageClassName != "fast" || claims.made[0].Spec.Resources.Requests.Storage().String() != "1Gi" {
		t.Errorf("got %+v", claims.made)
	}
}
