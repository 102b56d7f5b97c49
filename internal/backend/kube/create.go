package kube

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
)

// maxNames is how many names are tried for a pod whose name others have.
const maxNames = 20

// begin makes the attempt's pod. What may pass is tried again in the background.
func (a *attempt) begin(ctx context.Context) error {
	err := a.try(ctx)
	if err == nil {
		return nil
	}
	if !passing(err) {
		a.b.drop(a)
		return err
	}
	a.b.later(func() { a.keepTrying(err) })
	return nil
}

// keepTrying tries again to make the pod until it is there, it is not wanted any more or it cannot be made. err is of the
// try before.
func (a *attempt) keepTrying(err error) {
	for n := 0; err != nil; n++ {
		a.mu.Lock()
		switch {
		case a.pod.uid != "" || a.ending: // the informer was faster
			a.mu.Unlock()
			return
		case !passing(err):
			a.finish(engine.Result{Phase: engine.ErrorPhase, Message: err.Error()})
			a.mu.Unlock()
			return
		case a.stopped != nil:
			a.mu.Unlock()
			if err = a.find(a.b.ctx); err == nil || a.b.ctx.Err() != nil {
				return
			}
		default:
			a.note("create", "the pod cannot be made yet: "+clip(err.Error()))
			a.mu.Unlock()
		}
		if !a.waitTurn(n) {
			return
		}
		a.mu.Lock()
		stopped := a.stopped != nil
		a.mu.Unlock()
		if stopped {
			continue // err is from before, find decides
		}
		a.b.slots <- struct{}{}
		err = a.try(a.b.ctx)
		<-a.b.slots
	}
}

// find looks, once the attempt was stopped, whether its pod was made after all. One that was is taken, and so deleted;
// without one the attempt has ended. An error says that nobody knows.
func (a *attempt) find(ctx context.Context) error {
	objects, err := a.make(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	p, err := a.b.cfg.Client.CoreV1().Pods(a.run.Namespace).Get(ctx, objects.Pod.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil && a.observe(trimmed(p), false) {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pod.uid == "" {
		a.finish(engine.Result{Phase: engine.FailedPhase, Message: result.StopMessage(*a.stopped)})
	}
	return nil
}

// try makes the pod, once.
func (a *attempt) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for range maxNames {
		objects, err := a.make(ctx)
		if err != nil {
			return err
		}
		a.mu.Lock()
		over := a.pod.uid != "" || a.ending
		if a.stopped != nil && !over && !a.asked {
			a.finish(engine.Result{Phase: engine.FailedPhase, Message: result.StopMessage(*a.stopped)})
			over = true
		}
		stopped := a.stopped != nil
		a.asked = true
		a.mu.Unlock()
		if over {
			return nil
		}
		if stopped {
			return waiting("whether the pod was made before the task was stopped is to be found out")
		}
		free, err := a.makeConfig(ctx, objects.Config)
		if err != nil {
			return fmt.Errorf("make the ConfigMap of pod %s: %w", objects.Pod.Name, err)
		}
		if !free {
			a.rename()
			continue
		}
		p, err := a.b.cfg.Client.CoreV1().Pods(a.run.Namespace).Create(ctx, objects.Pod, metav1.CreateOptions{})
		if err == nil {
			a.mu.Lock()
			delete(a.discarded, "")
			left := a.left
			a.mu.Unlock()
			if left {
				ref := referenceOf(p)
				a.b.later(func() {
					a.b.insist("remove a pod that nobody wants any more", ref.name, func(ctx context.Context) error { return a.b.erase(ctx, ref) })
				})
				return nil
			}
			a.observe(trimmed(p), false)
			for _, newer := range a.b.pods.of(a.id) { // of what came while the pod was not known, nothing more comes
				a.observe(newer, false)
			}
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make pod %s: %w", objects.Pod.Name, err)
		}
		if mine, err := a.taken(ctx, objects.Pod.Name); err != nil || mine {
			return err
		}
		a.rename()
	}
	return fmt.Errorf("make pod %s: this name and %d like it are taken", pod.Name(a.cmd), maxNames-1)
}

// make gives the attempt's objects, under a name that was not found taken.
func (a *attempt) make(ctx context.Context) (*pod.Objects, error) {
	a.mu.Lock()
	known, suffix, restarts, cmd := a.objects, a.suffix, a.restarts, a.cmd
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if suffix > 0 {
		cmd.Pod += "-" + strconv.Itoa(suffix+1)
	}
	objects, err := pod.Build(ctx, a.b.cfg.Pod, a.run, cmd, a.b.cfg.Images)
	if err != nil {
		return nil, err
	}
	if restarts > 0 {
		objects.Pod.Annotations[restartsAnnotation] = strconv.Itoa(restarts)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pod.uid == "" {
		a.objects = &objects
	}
	return &objects, nil
}

// rename goes on to the next name.
func (a *attempt) rename() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.suffix++
	a.objects = nil
}

// taken decides about a pod that has the name: the attempt's own is taken up. mine is false where it is another's.
func (a *attempt) taken(ctx context.Context, name string) (mine bool, err error) {
	p, err := a.b.cfg.Client.CoreV1().Pods(a.run.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, waiting("a pod of this name has just gone")
	}
	if err != nil {
		return false, fmt.Errorf("look at pod %s: %w", name, err)
	}
	id, ok := keyOf(p)
	if !ok || id != a.id {
		return false, nil
	}
	p = trimmed(p)
	if a.observe(p, false) {
		return true, nil
	}
	a.mu.Lock()
	taken := a.pod.uid != ""
	if !taken {
		a.discarded[p.UID] = true // it counts no more
		delete(a.discarded, "")
	}
	a.mu.Unlock()
	if taken {
		return true, nil
	}
	if err := a.b.erase(ctx, referenceOf(p)); err != nil {
		return false, err
	}
	return false, waiting("an earlier pod of the task is being removed")
}

// makeConfig makes the ConfigMap of a pod, if it has one. free is false where the name is another's.
func (a *attempt) makeConfig(ctx context.Context, config *corev1.ConfigMap) (free bool, err error) {
	if config == nil {
		return true, nil
	}
	client := a.b.cfg.Client.CoreV1().ConfigMaps(config.Namespace)
	_, err = client.Create(ctx, config, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return true, err
	}
	there, err := client.Get(ctx, config.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, waiting("a ConfigMap of this name has just gone")
	}
	if err != nil {
		return false, err
	}
	return there.Annotations[pod.IdentityAnnotation] == a.id.identity(), nil
}

func trimmed(p *corev1.Pod) *corev1.Pod {
	_, _ = trim(p) // of a pod it cannot fail
	return p
}

func referenceOf(p *corev1.Pod) reference {
	return reference{namespace: p.Namespace, name: p.Name, uid: p.UID, configured: configured(p)}
}
