package controller

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

// podDelay is how long a pod that may go is kept where podGC does not say, as in Argo: its log can be read meanwhile.
const podDelay = 5 * time.Second

// podCollector deletes pods of tasks that have ended, by the workflow's podGC.
type podCollector struct {
	client client.Client
	queue  workqueue.TypedRateLimitingInterface[garbagePod]
	failed func(about garbagePod, err error)
}

// garbagePod is the pod of an attempt. Another pod may have its name: only the one that says that it is this attempt's goes.
type garbagePod struct{ namespace, name, identity string }

func newPodCollector(c client.Client, failed func(garbagePod, error)) *podCollector {
	return &podCollector{client: c, failed: failed, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[garbagePod](time.Second, time.Minute))}
}

// work deletes until the queue is shut down. What is left then is found again when the run is taken up, or goes with the
// workflow.
func (p *podCollector) work(ctx context.Context) {
	for {
		g, quit := p.queue.Get()
		if quit {
			return
		}
		switch err := p.delete(ctx, g); {
		case err == nil:
			p.queue.Forget(g)
		case ctx.Err() == nil:
			p.failed(g, err)
			p.queue.AddRateLimited(g)
		}
		p.queue.Done(g)
	}
}

func (p *podCollector) delete(ctx context.Context, g garbagePod) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := p.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: g.name}, o); err != nil {
		return client.IgnoreNotFound(err)
	}
	if o.Annotations[pod.IdentityAnnotation] != g.identity {
		return nil
	}
	uid := o.GetUID()
	return client.IgnoreNotFound(p.client.Delete(ctx, o, client.Preconditions{UID: &uid}))
}

// podRule is a workflow's podGC.
type podRule struct {
	strategy string
	delay    time.Duration
	matches  labels.Selector
}

// podRuleOf reads a spec's podGC; ok is false where pods are kept.
func podRuleOf(spec *argo.WorkflowSpec) (podRule, bool) {
	if spec == nil || spec.PodGC == nil || spec.PodGC.Strategy == "" {
		return podRule{}, false
	}
	r := podRule{strategy: spec.PodGC.Strategy, delay: podDelay, matches: labels.Everything()}
	if d, err := time.ParseDuration(spec.PodGC.DeleteDelayDuration); err == nil {
		r.delay = d
	}
	if spec.PodGC.LabelSelector != nil {
		if s, err := metav1.LabelSelectorAsSelector(spec.PodGC.LabelSelector); err == nil {
			r.matches = s
		}
	}
	return r, true
}

// goes says whether the pod of an ended task may go, in a run of this phase.
func (r podRule) goes(n *engine.Node, run engine.Phase) bool {
	if n.Kind != engine.Leaf || n.Dropped || !n.Phase.Ended() || !hasPod(n.Template()) || !r.matches.Matches(labels.Set(n.Template().Labels)) {
		return false
	}
	switch r.strategy {
	case "OnPodCompletion":
		return true
	case "OnPodSuccess":
		return n.Phase == engine.SucceededPhase
	case "OnWorkflowCompletion":
		return run.Ended()
	case "OnWorkflowSuccess":
		return run == engine.SucceededPhase
	}
	return false
}

func hasPod(t *program.Template) bool {
	return t != nil && t.Task != nil && (t.Task.Kind == program.Containers || t.Task.Kind == program.Script)
}

// collect has the pods deleted that may go after a change.
func (r *run) collect(v runner.View) {
	if r.pods == nil {
		return
	}
	give := func(n *engine.Node) {
		if !r.pods.goes(n, v.State.Phase) {
			return
		}
		path := n.Identity
		if path == "" {
			path = n.Path
		}
		run := &v.State.Run
		name := pod.Name(engine.StartTask{Pod: program.PodName(run.Name, n.Template().Name, path)})
		r.c.pods.queue.AddAfter(garbagePod{run.Namespace, name, pod.Identity(run.UID, path)}, r.pods.delay)
	}
	if v.State.Phase.Ended() {
		for n := range v.State.Nodes() {
			give(n)
		}
		return
	}
	for _, id := range v.Changed {
		if n := v.State.Node(id); n != nil {
			give(n)
		}
	}
}
