package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

// recorder writes Kubernetes events about objects. It never blocks.
type recorder interface {
	normal(about runtime.Object, reason, message string)
	warn(about runtime.Object, reason, message string)
}

// silent records nothing.
type silent struct{}

func (silent) normal(runtime.Object, string, string) {}
func (silent) warn(runtime.Object, string, string)   {}

// events records through Kubernetes' own recorder, which counts repeated ones and drops what is too much.
type events struct{ record.EventRecorder }

func (e events) normal(about runtime.Object, reason, message string) {
	e.Event(about, corev1.EventTypeNormal, reason, clip(message))
}

func (e events) warn(about runtime.Object, reason, message string) {
	e.Event(about, corev1.EventTypeWarning, reason, clip(message))
}

// clip keeps a message in what an event may hold.
func clip(message string) string {
	const most = 1000
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}

// nodeEvents tells of one workflow: when it begins and ends, and when its tasks do, under the reasons that Argo has.
type nodeEvents struct {
	to    recorder
	about workflow
	phase engine.Phase
	nodes map[engine.NodeID]engine.Phase
}

func newNodeEvents(to recorder, about workflow) *nodeEvents {
	copied := newObject(kind("Workflow"))
	copied.SetNamespace(about.GetNamespace())
	copied.SetName(about.GetName())
	copied.SetUID(about.GetUID())
	copied.SetResourceVersion(about.GetResourceVersion())
	return &nodeEvents{to: to, about: workflow{copied}, phase: engine.Phase(about.phase()), nodes: map[engine.NodeID]engine.Phase{}}
}

// observe tells of what changed. The first view of a run that goes on has all its nodes: of those nothing is told.
func (e *nodeEvents) observe(v runner.View) {
	first := len(e.nodes) == 0 && v.State.Len() > 1
	for _, id := range v.Changed {
		n := v.State.Node(id)
		if n == nil || n.Dropped || n.Kind != engine.Leaf || n.Phase == e.nodes[id] {
			continue
		}
		e.nodes[id] = n.Phase
		if first || n.Phase == engine.Pending {
			continue
		}
		e.tell("WorkflowNode"+string(n.Phase), n.Phase, fmt.Sprintf("%s node %s", n.Phase, n.Path), n.Message)
	}
	if p := v.State.Phase; p != e.phase && p != engine.Pending {
		e.phase = p
		e.tell("Workflow"+string(p), p, workflowWords(p), v.State.Message)
	}
}

func (e *nodeEvents) tell(reason string, p engine.Phase, what, message string) {
	if message != "" {
		what += ": " + message
	}
	if p.Bad() {
		e.to.warn(e.about, reason, what)
		return
	}
	e.to.normal(e.about, reason, what)
}

func workflowWords(p engine.Phase) string {
	switch p {
	case engine.RunningPhase:
		return "Workflow Running"
	case engine.SucceededPhase:
		return "Workflow completed"
	}
	return "Workflow " + string(p)
}
