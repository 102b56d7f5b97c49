package argo

import (
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// containerNode is the status of a container of a set, and the nodes in whose children it stands.
type containerNode struct {
	status  *NodeStatus
	parents []string
}

// containerSetOf gives the containers of a leaf that is a container set, nil for any other node.
func containerSetOf(n *engine.Node) []program.Container {
	t := n.Template()
	if n.Kind != engine.Leaf || t == nil || t.Task == nil || t.Task.Kind != program.Containers {
		return nil
	}
	c := t.Task.Containers
	if len(c) == 1 && c[0].Name == "main" && len(c[0].Needs) == 0 && !isSet(t) {
		return nil
	}
	return c
}

// isSet tells a set of one container called main from a plain container.
func isSet(t *program.Template) bool { return containerSetForm.Match(t.Source) }

// containers gives the nodes of the containers of a set.
func (j *projector) containers(n *engine.Node, pod *NodeStatus) []containerNode {
	set := containerSetOf(n)
	if set == nil {
		return nil
	}
	results := map[string]engine.ContainerResult{}
	for _, r := range n.Containers {
		results[r.Name] = r
	}
	var out []containerNode
	for i := range set {
		c := &set[i]
		status := &NodeStatus{
			ID: j.id(n.Path + "." + c.Name), Name: n.Path + "." + c.Name, DisplayName: c.Name, Type: "Container",
			TemplateName: pod.TemplateName, TemplateRef: pod.TemplateRef, TemplateScope: pod.TemplateScope,
			BoundaryID: pod.ID, Phase: pod.Phase, StartedAt: pod.StartedAt, FinishedAt: pod.FinishedAt, NodeFlag: pod.NodeFlag,
		}
		if r, ok := results[c.Name]; ok {
			status.Phase, status.Message = string(r.Phase), r.Message
			status.StartedAt, status.FinishedAt = timeOf(r.Started), timeOf(r.Finished)
		}
		entry := containerNode{status: status}
		for _, need := range c.Needs {
			entry.parents = append(entry.parents, j.id(n.Path+"."+need))
		}
		if len(entry.parents) == 0 {
			entry.parents = []string{pod.ID}
		}
		out = append(out, entry)
	}
	return out
}

// setEnds gives the containers of a set that none needs.
func setEnds(set []program.Container, id func(name string) string) []string {
	needed := map[string]bool{}
	for i := range set {
		for _, n := range set[i].Needs {
			needed[n] = true
		}
	}
	var out []string
	for i := range set {
		if !needed[set[i].Name] {
			out = append(out, id(set[i].Name))
		}
	}
	return out
}
