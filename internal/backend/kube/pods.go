package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
)

// resync is how often every pod is looked at without news: only so is a pod noticed of which none comes any more.
const resync = 2 * time.Minute

// identityIndex finds pods by the attempt that they are for.
const identityIndex = "identity"

// pods are the task pods of all runs that are not settled yet.
type pods struct{ informers []cache.SharedIndexInformer }

// selector is of the pods of this instance whose results may still be wanted.
func selector(cfg pod.Config) string {
	instance := "!" + pod.InstanceLabel
	if cfg.Instance != "" {
		instance = pod.InstanceLabel + "=" + pod.LabelValue(cfg.Instance)
	}
	return pod.RunLabel + "," + instance + "," + pod.CompletedLabel + "!=true"
}

func watchPods(ctx context.Context, cfg Config, seen func(p *corev1.Pod, gone bool), run func(func())) (*pods, error) {
	w := &pods{}
	for _, namespace := range cfg.Namespaces {
		client := cfg.Client.CoreV1().Pods(namespace)
		labels := selector(cfg.Pod)
		lw := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.LabelSelector = labels
				return client.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.LabelSelector = labels
				return client.Watch(ctx, o)
			},
		}
		informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, cfg.Client), &corev1.Pod{}, cache.SharedIndexInformerOptions{
			ResyncPeriod: resync,
			Indexers:     cache.Indexers{identityIndex: identityOf},
		})
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("kube backend: watch pods: %w", err)
		}
		if _, err := informer.AddEventHandler(handler(seen)); err != nil {
			return nil, fmt.Errorf("kube backend: watch pods: %w", err)
		}
		w.informers = append(w.informers, informer)
		run(func() { informer.RunWithContext(ctx) })
	}
	return w, nil
}

func handler(seen func(p *corev1.Pod, gone bool)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { tell(seen, o, false) },
		UpdateFunc: func(_, o any) { tell(seen, o, false) },
		DeleteFunc: func(o any) { tell(seen, o, true) },
	}
}

func tell(seen func(p *corev1.Pod, gone bool), o any, gone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	if p, ok := o.(*corev1.Pod); ok {
		seen(p, gone)
	}
}

func identityOf(o any) ([]string, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return nil, nil
	}
	return []string{p.Annotations[pod.IdentityAnnotation]}, nil
}

// trim leaves of a pod what decides about it: thousands are kept.
func trim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	m := p.ObjectMeta
	annotations := map[string]string{}
	for _, name := range []string{pod.IdentityAnnotation, mainAnnotation, restartsAnnotation} {
		if v, there := m.Annotations[name]; there {
			annotations[name] = v
		}
	}
	p.ObjectMeta = metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, DeletionTimestamp: m.DeletionTimestamp,
		Finalizers: m.Finalizers, Annotations: annotations,
		Labels: map[string]string{pod.RunLabel: m.Labels[pod.RunLabel], pod.CompletedLabel: m.Labels[pod.CompletedLabel]},
	}
	spec := corev1.PodSpec{NodeName: p.Spec.NodeName}
	for _, v := range p.Spec.Volumes {
		if v.Name == specVolume {
			spec.Volumes = []corev1.Volume{v} // see configured
		}
	}
	p.Spec = spec
	s := p.Status
	p.Status = corev1.PodStatus{Phase: s.Phase, Reason: s.Reason, Message: s.Message, PodIP: s.PodIP}
	for _, c := range s.Conditions {
		if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodScheduled {
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
	}
	p.Status.InitContainerStatuses, p.Status.ContainerStatuses = trimStatuses(s.InitContainerStatuses), trimStatuses(s.ContainerStatuses)
	return p, nil
}

func trimStatuses(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range list {
		out = append(out, corev1.ContainerStatus{Name: c.Name, State: c.State, Ready: c.Ready})
	}
	return out
}

// configured says whether a pod has its specification in a ConfigMap of its name.
func configured(p *corev1.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if v.Name == specVolume && v.ConfigMap != nil && v.ConfigMap.Name == p.Name {
			return true
		}
	}
	return false
}

// know says whether all pods that there are have been seen.
func (w *pods) know() bool {
	for _, i := range w.informers {
		if !i.HasSynced() {
			return false
		}
	}
	return true
}

// synced waits until all pods that there are have been seen.
func (w *pods) synced(ctx context.Context) error {
	for _, i := range w.informers {
		if !i.HasSynced() && !cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
			return fmt.Errorf("wait for the list of pods: %w", context.Cause(ctx))
		}
	}
	return nil
}

// of gives the pods that are known of an attempt.
func (w *pods) of(id key) []*corev1.Pod {
	var out []*corev1.Pod
	for _, i := range w.informers {
		found, _ := i.GetIndexer().ByIndex(identityIndex, id.identity()) // the index is there
		for _, o := range found {
			if p, ok := o.(*corev1.Pod); ok {
				out = append(out, p)
			}
		}
	}
	return out
}

// all gives every pod that is known.
func (w *pods) all() []*corev1.Pod {
	var out []*corev1.Pod
	for _, i := range w.informers {
		for _, o := range i.GetStore().List() {
			if p, ok := o.(*corev1.Pod); ok {
				out = append(out, p)
			}
		}
	}
	return out
}
