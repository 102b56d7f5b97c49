package controller

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
)

// podDelay is how long a pod that may go is kept where podGC does not say, as in Argo: its log can be read meanwhile.
const podDelay = 5 * time.Second

// podCollector deletes pods of tasks that have ended, by the workflow's podGC.
type podCollector struct {
	forgetter runner.Forgetter
	queue     workqueue.TypedDelayingInterface[garbagePod]
	failed    func(about garbagePod, err error)
}

// garbagePod is the pod of an attempt.
type garbagePod struct{ uid, name, namespace, path string }

func newPodCollector(f runner.Forgetter, failed func(garbagePod, error)) *podCollector {
	return &podCollector{forgetter: f, queue: workqueue.NewTypedDelayingQueue[garbagePod](), failed: failed}
}

// work deletes until the queue is shut down. What is left then is found again when the run is taken up.
func (p *podCollector) work(ctx context.Context) {
	for {
		g, quit := p.queue.Get()
		if quit {
			return
		}
		if err := p.forgetter.Forget(ctx, engine.Run{UID: g.uid, Name: g.name, Namespace: g.namespace}, g.path); err != nil && ctx.Err() == nil {
			p.failed(g, err)
		}
		p.queue.Done(g)
	}
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
	if r.pods == nil || r.c.pods == nil {
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
		r.c.pods.queue.AddAfter(garbagePod{run.UID, run.Name, run.Namespace, path}, r.pods.delay)
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
