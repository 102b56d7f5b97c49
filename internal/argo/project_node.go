package argo

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// node gives one node's status, without its children.
func (j *projector) node(n *engine.Node) *NodeStatus {
	out := &NodeStatus{
		ID: j.id(n.Path), Name: n.Path, DisplayName: n.Name, Type: j.nodeType(n), Phase: string(n.Phase), Message: j.message(n.Message),
		StartedAt: timeOf(n.Started), FinishedAt: timeOf(n.Finished), Progress: n.Progress, ResourcesDuration: usage(n.Resources),
		PodIP: n.IP, HostNodeName: n.Host,
	}
	if out.DisplayName == "" {
		out.DisplayName = n.Path
	}
	if b := j.boundary(n); b != nil {
		out.BoundaryID = j.id(b.Path)
	}
	if n.Daemoned {
		out.Daemoned = &n.Daemoned
	}
	out.TemplateScope = j.scopeText(j.callScope(n))
	if n.Kind == engine.Round {
		out.TemplateScope = j.scopeText(scopeOfKey(n.Template()))
	} else {
		out.TemplateName, out.TemplateRef = j.templateOf(n)
	}
	retried := j.isAttempt(n)
	if n.Hooked || retried {
		out.NodeFlag = &NodeFlag{Hooked: n.Hooked || retried && j.s.Node(n.Parent).Hooked, Retried: retried}
	}
	out.Inputs = j.nodeInputs(n)
	out.Outputs = j.nodeOutputs(n)
	if n.Kind == engine.GraphNode && n.Phase.Ended() {
		out.OutboundNodes = j.graphEnds(n)
	}
	out.MemoizationStatus = j.memoization(n)
	if m := out.MemoizationStatus; m != nil && m.Hit && n.Phase == engine.SucceededPhase {
		out.Message = "" // the status says it
	}
	return out
}

// isAttempt says whether a node is an attempt under a retry node.
func (j *projector) isAttempt(n *engine.Node) bool {
	parent := j.s.Node(n.Parent)
	return parent != nil && parent.Kind == engine.RetryNode && !n.Hooked
}

// nodeType is Argo's word for what a node is.
func (j *projector) nodeType(n *engine.Node) string {
	if j.keyRefused(n) {
		return "Skipped" // Argo asks the cache before it makes the node
	}
	switch n.Kind {
	case engine.Round:
		return "StepGroup"
	case engine.LoopNode:
		return "TaskGroup"
	case engine.RetryNode:
		return "Retry"
	case engine.AbsentNode:
		if n.Phase == engine.FailedPhase { // a run that is to end does not start it
			break
		}
		return "Skipped"
	case engine.GraphNode:
		if t := n.Template(); t != nil && t.Graph != nil && t.Graph.Stages == nil {
			return "DAG"
		}
		return "Steps"
	}
	switch t := n.Template(); {
	case t == nil:
		return "Pod"
	case t.Graph != nil && t.Graph.Stages != nil:
		return "Steps"
	case t.Graph != nil:
		return "DAG"
	case t.Suspend != nil:
		return "Suspend"
	case t.Task == nil:
		return "Pod"
	case t.Task.Kind == program.HTTP:
		return "HTTP"
	case t.Task.Kind == program.Plugin:
		return "Plugin"
	}
	return "Pod"
}

// id is a node's ID: the run's name, and for all but the root the 32-bit FNV-1a hash of the node's name. Where two nodes
// of a run have the same hash the later one gets an ending.
func (j *projector) id(path string) string {
	if id, ok := j.ids[path]; ok {
		return id
	}
	base := program.NodeID(j.s.Run.Name, path)
	id := base
	for i := 1; j.taken[id] != ""; i++ {
		id = fmt.Sprintf("%s-%d", base, i)
	}
	j.ids[path], j.taken[id] = id, path
	return id
}

// scopeOfKey is the scope that a template was found in, "local" for those of calls of the workflow itself.
func scopeOfKey(t *program.Template) string {
	if t == nil {
		return localScope
	}
	kind, rest, _ := strings.Cut(t.Key, "/")
	if kind == localScope || kind == "" {
		return localScope
	}
	name, _, _ := strings.Cut(rest, "/")
	return kind + "/" + name
}

// callScope is the scope in which a node's call names its template.
func (j *projector) callScope(n *engine.Node) string {
	if b := j.boundary(n); b != nil {
		return scopeOfKey(b.Template())
	}
	return localScope
}

// scopeText is a scope as Argo writes it: the local one with the workflow's name, where that has the templates itself.
func (j *projector) scopeText(scope string) string {
	if scope != localScope {
		return scope
	}
	if w := j.opts.Workflow; w != nil && w.Spec.WorkflowTemplateRef != nil {
		return localScope + "/"
	}
	return localScope + "/" + j.s.Run.Name
}

// templateOf names the template that a node runs: by name where it is in the scope of the call, else by reference.
func (j *projector) templateOf(n *engine.Node) (string, *TemplateRef) {
	call := n.Call()
	if call == nil || call.Template.Inline != nil {
		return "", nil
	}
	scope, name := call.Template.Scope, call.Template.Name
	if t := n.Template(); t != nil {
		scope, name = scopeOfKey(t), t.Name
	}
	if scope == j.callScope(n) {
		return name, nil
	}
	kind, object, _ := strings.Cut(scope, "/")
	return "", &TemplateRef{Name: object, Template: name, ClusterScope: kind == "cluster"}
}

// written gives the author's template of a compiled one; an empty one where there is no text of it.
func (j *projector) written(t *program.Template) *Template {
	if t == nil {
		return &Template{}
	}
	w, ok := j.templates[t]
	if !ok {
		w = &Template{}
		if len(t.Source) > 0 && json.Unmarshal(t.Source, w) != nil {
			w = &Template{}
		}
		j.templates[t] = w
	}
	return w
}

func (j *projector) memoization(n *engine.Node) *MemoizationStatus {
	t := n.Template()
	if t == nil || t.Cache == nil || t.Cache.Scheme != "key" || j.isAttempt(n) || j.keyRefused(n) {
		return nil
	}
	asked := n // a retry node says what its attempts were told
	switch n.Kind {
	case engine.RetryNode:
		for _, id := range n.Children {
			if a := j.s.Node(id); j.isAttempt(a) {
				asked = a
			}
		}
	case engine.Leaf, engine.GraphNode:
	default:
		return nil
	}
	key := t.Cache.Key
	if text, err := j.lang.Text(key, j.env(n)); err == nil {
		key = text
	}
	return &MemoizationStatus{Hit: asked.CacheHit != nil && *asked.CacheHit, Key: key, CacheName: t.Cache.Name}
}

func typedUID(uid string) types.UID { return types.UID(uid) }
