package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// maxRestarts is how many pods an attempt gets in place of ones that the cluster lost before the command began, as Argo's
// failedPodRestart.
const maxRestarts = 3

// reference is a pod of an attempt.
type reference struct {
	namespace, name string
	uid             types.UID
	// configured says that it has a ConfigMap of its name.
	configured bool
}

// attempt is one attempt at a task that is a pod.
type attempt struct {
	b   *Backend
	id  key
	run engine.Run
	cmd engine.StartTask
	// changed wakes who waits to try again.
	changed chan struct{}

	mu sync.Mutex
	// pod is the one that carries the attempt; its uid is empty while none is known.
	pod reference
	// objects are made once, suffix is how many names were taken by others' pods, restarts how many pods were lost.
	objects          *pod.Objects
	suffix, restarts int
	// discarded are pods that count no more; "" stands for any that is found.
	discarded map[types.UID]bool
	stopped   *engine.StopTask
	asked     bool   // the cluster was asked for a pod
	running   bool   // told
	ready     bool   // told
	kind      string // of the last note
	ending    bool   // the result is on its way
	left      bool   // nobody follows the attempt any more
	result    *engine.Result
}

// repeat tells once more how an attempt ended, if it has.
func (a *attempt) repeat() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.result != nil {
		a.tellEnd()
	}
}

func (a *attempt) tellEnd() {
	a.b.sink.Tell(a.id.run, engine.Event{Finished: &engine.Finished{Node: a.cmd.Node, Result: *a.result}})
}

// finish tells the end. The lock is held.
func (a *attempt) finish(r engine.Result) {
	if a.result != nil {
		return
	}
	a.ending, a.result = true, &r
	a.tellEnd()
}

// note says what an attempt waits for; the same kind is said once. The lock is held.
func (a *attempt) note(kind, text string) {
	if kind == a.kind || a.result != nil {
		return
	}
	a.kind = kind
	a.b.sink.Tell(a.id.run, engine.Event{Noted: &engine.Noted{Node: a.cmd.Node, Message: text}})
}

// observe takes a look at a pod. It says whether the pod is the attempt's.
func (a *attempt) observe(p *corev1.Pod, gone bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pod.uid == "" && !gone {
		a.take(p)
	}
	if a.pod.uid == "" || a.pod.uid != p.UID {
		return false
	}
	if a.ending {
		return true
	}
	l := a.look(p, gone)
	s := l.outcome()
	if s.Running && s.End == nil || s.End != nil && s.Running && !a.running {
		a.tellRunning(p, s.Ready)
	}
	if s.Note != "" {
		a.note(s.Kind, s.Note)
	}
	if s.End != nil {
		a.end(l, s.End)
	}
	return true
}

func (a *attempt) look(p *corev1.Pod, gone bool) look {
	return look{pod: p, cmd: &a.cmd, opts: result.Options{Stopped: a.stopped, Decode: a.b.cfg.Decode}, now: a.b.cfg.Now(), gone: gone}
}

// tellRunning says that the command runs, and of a daemon that it is ready; each once.
func (a *attempt) tellRunning(p *corev1.Pod, ready bool) {
	ready = ready && a.cmd.Daemon
	if a.running && (!ready || a.ready) {
		return
	}
	a.running, a.ready = true, ready
	a.note("", "") // what it waited for is over
	a.b.sink.Tell(a.id.run, engine.Event{Running: &engine.Running{Node: a.cmd.Node, Host: p.Spec.NodeName, IP: p.Status.PodIP, Ready: ready}})
}

// take makes a pod the attempt's, if it may be. The lock is held.
func (a *attempt) take(p *corev1.Pod) {
	id, ok := keyOf(p)
	if !ok || id != a.id || p.Namespace != a.run.Namespace || a.discarded[p.UID] || a.discarded[""] {
		return
	}
	a.pod = reference{namespace: p.Namespace, name: p.Name, uid: p.UID, configured: configured(p)}
	a.objects = nil // not needed any more, and large
	if n, err := strconv.Atoi(p.Annotations[restartsAnnotation]); err == nil {
		a.restarts = n
	}
	a.b.mu.Lock()
	if a.b.attempts[a.id] == a {
		a.b.byPod[p.UID] = a
	}
	a.b.mu.Unlock()
	a.wake()
	if a.stopped != nil && p.DeletionTimestamp == nil {
		cmd, ref := *a.stopped, a.pod
		a.b.later(func() {
			a.b.insist("stop a task", a.id.path, func(ctx context.Context) error { return a.b.remove(ctx, ref, cmd.Force) })
		})
	}
}

func (a *attempt) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// end acts on a pod's end. The lock is held.
func (a *attempt) end(l look, e *ending) {
	switch {
	case e.Lost && a.stopped == nil && a.restarts < maxRestarts:
		a.again(e.Result.Message)
	case e.Stored:
		a.ending = true
		a.b.later(func() { a.collect(l, e.Digest) })
	default:
		a.finish(e.Result)
		if e.Stuck {
			ref := a.pod
			a.b.later(func() {
				a.b.insist("delete a pod", ref.name, func(ctx context.Context) error { return a.b.remove(ctx, ref, true) })
			})
		}
	}
}

// again gives the attempt another pod in place of one that was lost. The lock is held.
func (a *attempt) again(why string) {
	lost := a.pod
	a.restarts++
	a.discarded[lost.uid] = true
	a.pod, a.objects, a.running, a.ready = reference{}, nil, false, false
	a.b.unlink(lost.uid)
	text := fmt.Sprintf("%s; trying again (%d of %d)", why, a.restarts, maxRestarts)
	a.note("restart "+strconv.Itoa(a.restarts), text)
	a.b.later(func() {
		a.b.insist("replace a lost pod", lost.name, func(ctx context.Context) error { return a.b.erase(ctx, lost) })
		a.keepTrying(a.try(a.b.ctx))
	})
}

// collect gets a result that lies with the task endpoint.
func (a *attempt) collect(l look, digest string) {
	var data []byte
	err := a.b.persist(func(ctx context.Context) error {
		if a.b.cfg.Results == nil {
			return permanent("this controller keeps no results")
		}
		var err error
		data, err = a.b.cfg.Results.Get(ctx, a.run, a.id.path)
		return err
	})
	if a.b.ctx.Err() != nil {
		return
	}
	var r spec.Result
	if err == nil {
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
			err = fmt.Errorf("it is not what the task left: its SHA-256 is %x and should be %s", sum, digest)
		} else {
			err = decodeReport(string(data), &r)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.finish(l.broken("the task's result cannot be read: " + err.Error()).Result)
		return
	}
	l.opts.Stopped = a.stopped // as it is now
	a.finish(l.conclude(&r).Result)
}

// stop deletes the attempt's pod; what there is not yet is never made.
func (a *attempt) stop(ctx context.Context, cmd engine.StopTask) error {
	a.mu.Lock()
	if a.ending {
		a.mu.Unlock()
		return nil
	}
	if a.stopped == nil || cmd.Force {
		a.stopped = &cmd
	}
	ref := a.pod
	a.mu.Unlock()
	a.wake()
	if ref.uid == "" {
		return nil // whoever makes it sees that it is to be stopped
	}
	err := a.b.remove(ctx, ref, cmd.Force)
	if passing(err) {
		a.b.later(func() {
			a.b.insist("stop a task", a.id.path, func(ctx context.Context) error { return a.b.remove(ctx, ref, cmd.Force) })
		})
		return nil
	}
	return err
}

// waitTurn waits before the nth try again, or until something has changed; false at the end of the backend.
func (a *attempt) waitTurn(n int) bool {
	timer := time.NewTimer(pause(n))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-a.changed:
	case <-a.b.ctx.Done():
		return false
	}
	return true
}
