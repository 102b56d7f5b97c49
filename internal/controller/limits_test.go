package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner/locks"
)

// Workflows that have no place wait, and get one by priority, then by age; a controller that takes over keeps to it.
func TestParallelism(t *testing.T) {
	ends := map[string]chan struct{}{}
	for _, name := range []string{"first", "second", "urgent"} {
		ends[name] = make(chan struct{})
	}
	w := newWorld(t, func(run engine.Run, _ engine.StartTask) dummy.Act { return dummy.Act{Until: ends[run.Name]} })
	one := func(c *Config) { c.Parallelism = 1 }
	stop := w.controller(one)
	submit := func(name, more string) {
		w.submit(strings.Replace(strings.Replace(hello, "name: hello", "name: "+name, 1), "  unknownField: kept\n", more, 1))
	}
	goes := func(name string) {
		t.Helper()
		w.until("Workflow", name, "running", func(o workflow) bool { return node(t, o, name)["phase"] == "Running" })
	}
	waits := func(name string) {
		t.Helper()
		w.until("Workflow", name, "waiting", func(o workflow) bool { return o.phase() == "Pending" })
	}
	submit("first", "")
	goes("first")
	submit("second", "")
	waits("second")
	submit("urgent", "  priority: 5\n")
	waits("urgent")
	stop()
	w.controller(one)
	close(ends["first"])
	goes("urgent")
	if o, err := fetch(context.Background(), w.client, client.ObjectKey{Namespace: "ml", Name: "second"}); err != nil || o.phase() != "Pending" {
		t.Errorf("the second is %q beside the urgent one", o.phase())
	}
	close(ends["urgent"])
	goes("second")
	close(ends["second"])
	w.ended("second")
}

// A mutex is held by one workflow at a time, also when another controller takes over.
func TestMutexOutlivesController(t *testing.T) {
	hold := make(chan struct{})
	w, locked, submit := heldMutex(t, hold)
	stop := w.controller(locked)
	submit("holder")
	w.until("Workflow", "holder", "running", func(o workflow) bool { return node(t, o, "holder")["phase"] == "Running" })
	submit("other")
	w.until("Workflow", "other", "begun", func(o workflow) bool { return o.begun() })
	stop()
	w.controller(locked)
	w.until("Workflow", "holder", "still running", func(o workflow) bool { return !o.completed() })
	if n := w.tasks.Runs("uid-2", "other"); n != 0 {
		t.Errorf("the other ran %d times beside the holder", n)
	}
	close(hold)
	if o := w.ended("other"); o.phase() != "Succeeded" || w.tasks.Runs("uid-1", "holder") != 1 {
		t.Errorf("status: %v; the holder ran %d times", o.status(), w.tasks.Runs("uid-1", "holder"))
	}
}

// podGC deletes the pod of an attempt, and no other that happens to have its name.
func TestPodGC(t *testing.T) {
	one := func(name, identity string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ml", UID: "pod-1", Annotations: map[string]string{pod.IdentityAnnotation: identity},
		}}
	}
	for name, test := range map[string]struct {
		strategy, identity string
		goes               bool
	}{
		"its own":          {"OnPodCompletion", "uid-1/hello", true},
		"at the end":       {"OnWorkflowCompletion", "uid-1/hello", true},
		"another's":        {"OnPodCompletion", "uid-9/hello", false},
		"only if it fails": {"", "uid-1/hello", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil, one("hello", test.identity), one("chain-say-0", "uid-2/chain-say-0"))
			w.controller()
			w.submit(strings.Replace(hello, "  unknownField: kept\n", fmt.Sprintf("  podGC: {strategy: %q, deleteDelayDuration: 0s}\n", test.strategy), 1))
			w.ended("hello")
			if !test.goes { // the next workflow's pod goes after this one would have gone
				w.submit(strings.Replace(strings.Replace(hello, "name: hello", "name: chain-say-0", 1), "  unknownField: kept\n", "  podGC: {strategy: OnPodCompletion, deleteDelayDuration: 0s}\n", 1))
				w.gone("chain-say-0")
				if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "ml", Name: "hello"}, &corev1.Pod{}); err != nil {
					t.Errorf("the pod: %v", err)
				}
				return
			}
			w.gone("hello")
		})
	}
}

// gone waits until a pod is deleted.
func (w *world) gone(name string) {
	w.t.Helper()
	changes, err := w.client.Watch(context.Background(), &corev1.PodList{}, client.InNamespace("ml"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer changes.Stop()
	for {
		err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "ml", Name: name}, &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return
		}
		<-changes.ResultChan()
	}
}

// What does not fit into an object is compressed; Argo's tools and this program read it all the same.
func TestLargeStatus(t *testing.T) {
	w := newWorld(t, nil)
	small := func(c *Config) { c.StatusLimit = 40000 }
	w.controller(small)
	w.submit(strings.Replace(chain, "    dag:\n      tasks:\n", "    dag:\n      tasks:\n      - {name: many, template: say, withSequence: {count: \"200\"}}\n", 1))
	o := w.ended("chain")
	c, packed, err := o.content()
	if err != nil || !packed || len(c.Nodes) != 205 {
		t.Errorf("compressed: %v, %d nodes, %v", packed, len(c.Nodes), err)
	}
	if o.status()["nodes"] != nil {
		t.Error("the nodes are there twice")
	}
}

// heldMutex gives a world in which the workflow "holder" runs until hold is closed, what gives a controller locks, and what
// submits a workflow that needs the mutex "m".
func heldMutex(t *testing.T, hold <-chan struct{}) (w *world, locked func(*Config), submit func(name string)) {
	t.Helper()
	w = newWorld(t, func(run engine.Run, _ engine.StartTask) dummy.Act {
		if run.Name == "holder" {
			return dummy.Act{Until: hold}
		}
		return dummy.Act{}
	})
	locked = func(c *Config) {
		l := NewLocks(c.Client, c.Hub, locks.Options{})
		c.Locks = l
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	submit = func(name string) {
		w.submit(strings.Replace(strings.Replace(hello, "name: hello", "name: "+name, 1), "  unknownField: kept\n", "  synchronization: {mutexes: [{name: m}]}\n", 1))
	}
	return w, locked, submit
}
