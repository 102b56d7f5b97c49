package kube

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/backendtest"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

var podKind = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// cluster is an API server in memory that deletes as a real one does: what has finalizers stays until they are gone.
type cluster struct {
	*fake.Clientset
	mu   sync.Mutex
	uids int
	// kubelet says how a new pod goes on; nil leaves pods pending.
	kubelet func(p *corev1.Pod)
	// unplaced pods get no node.
	unplaced bool
	// watched hears of each watch that has begun: what happens between a list and its watch, this API server does not tell.
	watched chan struct{}
}

func newCluster(objects ...runtime.Object) *cluster {
	c := &cluster{Clientset: fake.NewClientset(objects...), watched: make(chan struct{}, 100)}
	c.PrependWatchReactor("pods", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker().Watch(podKind, a.GetNamespace())
		c.watched <- struct{}{}
		return true, w, err
	})
	c.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		c.mu.Lock()
		c.uids++
		p.UID = types.UID(fmt.Sprintf("pod-%d", c.uids))
		if !c.unplaced {
			p.Spec.NodeName = "node"
		}
		p.Status.Phase = corev1.PodPending
		kubelet := c.kubelet
		c.mu.Unlock()
		if err := c.Tracker().Create(podKind, p.DeepCopy(), p.Namespace); err != nil {
			return true, nil, err
		}
		if kubelet != nil {
			kubelet(p.DeepCopy())
		}
		return true, p, nil
	})
	c.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		d := a.(clienttesting.DeleteActionImpl)
		err := c.change(d.Namespace, d.Name, func(p *corev1.Pod) error {
			if u := d.DeleteOptions.Preconditions; u != nil && *u.UID != p.UID {
				return apierrors.NewConflict(podKind.GroupResource(), d.Name, fmt.Errorf("uid"))
			}
			seconds := int64(30)
			if g := d.DeleteOptions.GracePeriodSeconds; g != nil {
				seconds = *g
			}
			if p.Spec.NodeName == "" {
				seconds = 0
			}
			at := metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second))
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &seconds
			return nil
		})
		return true, nil, err
	})
	c.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchActionImpl)
		var what struct {
			Metadata struct {
				UID    types.UID
				Labels map[string]string
				Gone   []string `json:"$deleteFromPrimitiveList/finalizers"`
			}
		}
		if err := json.Unmarshal(patch.Patch, &what); err != nil {
			return true, nil, err
		}
		var after *corev1.Pod
		err := c.change(patch.Namespace, patch.Name, func(p *corev1.Pod) error {
			if what.Metadata.UID != p.UID {
				return apierrors.NewConflict(podKind.GroupResource(), patch.Name, fmt.Errorf("uid"))
			}
			maps.Copy(p.Labels, what.Metadata.Labels)
			var left []string
			for _, f := range p.Finalizers {
				if len(what.Metadata.Gone) != 1 || f != what.Metadata.Gone[0] {
					left = append(left, f)
				}
			}
			p.Finalizers, after = left, p
			return nil
		})
		return true, after, err
	})
	return c
}

// change changes a pod; one that is to be deleted and that nothing keeps goes.
func (c *cluster) change(namespace, name string, f func(*corev1.Pod) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, err := c.Tracker().Get(podKind, namespace, name)
	if err != nil {
		return err
	}
	p := o.(*corev1.Pod).DeepCopy()
	if err := f(p); err != nil {
		return err
	}
	ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Spec.NodeName == "" ||
		p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	if err := c.Tracker().Update(podKind, p, namespace); err != nil {
		return err
	}
	if p.DeletionTimestamp != nil && ended && len(p.Finalizers) == 0 {
		return c.Tracker().Delete(podKind, namespace, name)
	}
	return nil
}

// set gives a pod a status.
func (c *cluster) set(p *corev1.Pod, s corev1.PodStatus) error {
	return c.change(p.Namespace, p.Name, func(now *corev1.Pod) error {
		if now.UID != p.UID {
			return fmt.Errorf("pod %s is another now", p.Name)
		}
		now.Status = s
		return nil
	})
}

func (c *cluster) pods(t testing.TB) []corev1.Pod {
	t.Helper()
	list, err := c.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// world is a cluster whose kubelet plays executors for the suite of backends.
type world struct {
	cluster *cluster
	folder  string

	mu    sync.Mutex
	tasks map[string]*played
}

type played struct {
	behaviour       backendtest.Behaviour
	runs            int
	began, released chan struct{}
}

func newWorld(t *testing.T) backendtest.World {
	w := &world{cluster: newCluster(), folder: t.TempDir(), tasks: map[string]*played{}}
	var kubelets sync.WaitGroup
	t.Cleanup(kubelets.Wait)
	w.cluster.kubelet = func(p *corev1.Pod) {
		kubelets.Go(func() {
			if err := w.play(p, t.Context().Done()); err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

func (w *world) Open(t *testing.T, sink backendtest.Sink) backend.Backend {
	t.Helper()
	b, err := New(Config{Client: w.cluster, Pod: pod.Config{ExecutorImage: "executor", Endpoint: "https://endpoint"}}, sink)
	if err != nil {
		t.Fatal(err)
	}
	<-w.cluster.watched
	return b
}

func (w *world) task(path string) *played {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tasks[path]
}

func (w *world) Task(_ *testing.T, path string, b backendtest.Behaviour) engine.StartTask {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks[path] = &played{behaviour: b, began: make(chan struct{}, 8), released: make(chan struct{})}
	cmd := engine.StartTask{
		Pod: program.PodName("run", "task", path),
		Body: program.Body{Kind: program.Containers, Result: true, Containers: []program.Container{{
			Name: "main", Image: "image", Command: []string{"play"},
		}}},
	}
	backendtest.Declare(&cmd, b, func(name string) string { return "/out/" + name }, func(name string) string { return filepath.Join(w.folder, name) })
	return cmd
}

func (w *world) Runs(_ *testing.T, path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tasks[path].runs
}

func (w *world) Began(_ *testing.T, path string) { <-w.task(path).began }

func (w *world) Release(_ *testing.T, path string) { close(w.task(path).released) }

// play does what a kubelet and the executor do.
func (w *world) play(p *corev1.Pod, over <-chan struct{}) error {
	id, ok := keyOf(p)
	if !ok {
		return fmt.Errorf("pod %s says not whose it is", p.Name)
	}
	var todo spec.Pod
	for _, v := range p.Spec.Containers[0].Env {
		if v.Name == spec.PodEnv {
			if err := json.Unmarshal([]byte(v.Value), &todo); err != nil {
				return err
			}
		}
	}
	changes, err := w.cluster.Tracker().Watch(podKind, p.Namespace)
	if err != nil {
		return err
	}
	defer changes.Stop()
	task := w.task(id.path)
	w.mu.Lock()
	task.runs++
	w.mu.Unlock()
	live := running("main", true)
	s := status(corev1.PodRunning, live)
	s.PodIP = "10.0.0.1"
	if err := w.cluster.set(p, s); err != nil {
		return err
	}
	r := w.perform(task, todo, p, changes, over)
	if r == nil {
		return nil
	}
	data, err := json.Marshal(spec.Report{Result: r})
	if err != nil {
		return err
	}
	end := exited("main", 0, "Completed", string(data))
	if r.ExitCode != nil {
		end.State.Terminated.ExitCode = int32(*r.ExitCode)
	}
	phase := corev1.PodSucceeded
	if end.State.Terminated.ExitCode != 0 || r.Phase != spec.Succeeded {
		phase = corev1.PodFailed
	}
	return w.cluster.set(p, status(phase, end))
}

// perform does what the command does, and gives the executor's result; nil where the test is over.
func (w *world) perform(task *played, todo spec.Pod, p *corev1.Pod, changes watch.Interface, over <-chan struct{}) *spec.Result {
	b := task.behaviour
	text := b.Print
	if n := len(text); n > 0 && text[n-1] == '\n' {
		text = text[:n-1]
	}
	r := &spec.Result{Phase: spec.Succeeded, Ran: true, Started: time.Now().UTC(), Stdout: &text, ExitCode: &b.Exit}
	ended := func(code int, message string) {
		r.Phase, r.ExitCode, r.Message = spec.Failed, &code, message
	}
	if b.Exit != 0 {
		ended(b.Exit, fmt.Sprintf("main: Error (exit code %d)", b.Exit))
	}
	task.began <- struct{}{}
	if b.Wait {
		var timeout <-chan time.Time
		if todo.Task.Timeout > 0 {
			timeout = time.After(todo.Task.Timeout)
		}
		for waiting := true; waiting; {
			select {
			case <-over:
				return nil
			case <-task.released:
				waiting = false
			case <-timeout:
				ended(143, fmt.Sprintf("the task took longer than its timeout of %v", todo.Task.Timeout))
				r.TimedOut, waiting = true, false
			case e, ok := <-changes.ResultChan():
				if !ok {
					return nil
				}
				now, isPod := e.Object.(*corev1.Pod)
				if !isPod || now.UID != p.UID || now.DeletionTimestamp == nil {
					continue
				}
				switch force := *now.DeletionGracePeriodSeconds <= 1; {
				case force && b.Deaf:
					ended(137, "main: Error (exit code 137)")
				case b.Deaf:
					continue
				default:
					ended(143, "the task was stopped")
				}
				r.Stopped, waiting = true, false
			}
		}
	}
	w.outputs(r, todo, b)
	r.Finished = time.Now().UTC()
	return r
}

func (w *world) outputs(r *spec.Result, todo spec.Pod, b backendtest.Behaviour) {
	lacks := func(what, name string) {
		if r.Phase == spec.Succeeded {
			r.Phase, r.Message = spec.Error, what+" "+name+": no such file"
		}
	}
	for _, p := range todo.Task.Parameters {
		text, there := b.Files[p.Name]
		switch {
		case !there && p.Default != nil:
			text = *p.Default
		case !there:
			lacks("output parameter", p.Name)
			continue
		}
		if n := len(text); p.Trim && n > 0 && text[n-1] == '\n' {
			text = text[:n-1]
		}
		if r.Parameters == nil {
			r.Parameters = map[string]any{}
		}
		r.Parameters[p.Name] = text
	}
	for _, a := range todo.Save {
		text, there := b.Files[a.Name]
		if !there {
			lacks("output artifact", a.Name)
			continue
		}
		if err := os.WriteFile(filepath.Join(w.folder, a.Name), []byte(text), 0o600); err != nil {
			lacks("output artifact", err.Error())
		}
		if r.Artifacts == nil {
			r.Artifacts = map[string]spec.Found{}
		}
		r.Artifacts[a.Name] = spec.Found{Saved: []spec.Saved{{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))), Size: int64(len(text))}}}
	}
}

func TestSuite(t *testing.T) { backendtest.Run(t, newWorld) }
