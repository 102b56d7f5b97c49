package argo

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// nodeInputs gives a node's inputs in the order in which the template declares them.
func (j *projector) nodeInputs(n *engine.Node) *Inputs {
	switch n.Kind {
	case engine.Round, engine.LoopNode, engine.AbsentNode:
		return nil
	}
	w := j.written(n.Template())
	out := &Inputs{}
	for _, decl := range w.Inputs.Parameters {
		v, ok := n.Inputs.Parameters[decl.Name]
		if !ok {
			continue
		}
		decl.Value, decl.ValueFrom = anyText(v), nil
		out.Parameters = append(out.Parameters, decl)
	}
	for _, decl := range w.Inputs.Artifacts {
		list := n.Inputs.Artifacts[decl.Name]
		if len(list) == 0 {
			continue
		}
		out.Artifacts = append(out.Artifacts, placed(decl, list[0]))
	}
	if out.Parameters == nil && out.Artifacts == nil {
		return nil
	}
	return out
}

// exitCode is that of a node's command. What memoize finds of earlier work was kept with its exit code.
func (j *projector) exitCode(n *engine.Node) *int {
	if m := j.memoization(n); n.ExitCode == nil && m != nil && m.Hit && n.Phase == engine.SucceededPhase {
		return new(int)
	}
	return n.ExitCode
}

// nodeOutputs gives a node's outputs. A parameter that a task should have given but did not is shown without a value.
func (j *projector) nodeOutputs(n *engine.Node) *Outputs {
	switch n.Kind {
	case engine.Round, engine.LoopNode, engine.AbsentNode:
		return nil
	}
	w := j.written(n.Template())
	graph := w.isGraph()
	out := &Outputs{}
	reported := n.Phase.Bad() && n.ExitCode != nil || w.Suspend != nil
	for _, decl := range w.Outputs.Parameters {
		v, ok := n.Outputs.Parameters[decl.Name]
		if !ok && (graph || !reported) {
			continue
		}
		if graph {
			decl.ValueFrom = nil
		}
		if ok {
			decl.Value = anyText(v)
		}
		out.Parameters = append(out.Parameters, decl)
	}
	for _, decl := range w.Outputs.Artifacts {
		if list := n.Outputs.Artifacts[decl.Name]; len(list) > 0 {
			out.Artifacts = append(out.Artifacts, placed(decl, list[0]))
		}
	}
	out.Parameters = append(out.Parameters, undeclared(n, w)...)
	if n.Outputs.Result != nil && j.showsResult(n) {
		out.Result = n.Outputs.Result
	}
	if code := j.exitCode(n); code != nil && !graph && j.hasMain(n) {
		text := strconv.Itoa(*code)
		out.ExitCode = &text
	}
	if out.Parameters == nil && out.Artifacts == nil && out.Result == nil && out.ExitCode == nil {
		return nil
	}
	return out
}

// undeclared gives outputs that the template does not declare: those of a plugin, and what a hook put in.
func undeclared(n *engine.Node, w *Template) []Parameter {
	var out []Parameter
	for _, name := range sortedKeys(n.Outputs.Parameters) {
		if !slices.ContainsFunc(w.Outputs.Parameters, func(p Parameter) bool { return p.Name == name }) {
			out = append(out, Parameter{Name: name, Value: anyText(n.Outputs.Parameters[name])})
		}
	}
	return out
}

// showsResult says whether Argo would have kept a node's standard output: where the graph around the call refers to it.
// The bodies of HTTP answers and the lists of data templates are always kept.
func (j *projector) showsResult(n *engine.Node) bool {
	if t := n.Template(); t != nil && t.Task != nil && t.Task.Kind != program.Containers && t.Task.Kind != program.Script {
		return true
	}
	b := j.boundary(n)
	if b == nil || n.Call() == nil || b.Template() == nil || j.isHook(n) {
		return false
	}
	names, ok := j.wanted[b.Template()]
	if !ok {
		names = resultNames(b.Template().Source)
		j.wanted[b.Template()] = names
	}
	return names[n.Call().Name]
}

// isHook says whether a node, or the retry node around it, is a lifecycle call.
func (j *projector) isHook(n *engine.Node) bool {
	return n.Hooked || j.isAttempt(n) && j.s.Node(n.Parent).Hooked
}

// hasMain says whether a task has the container whose exit code is the task's.
func (j *projector) hasMain(n *engine.Node) bool {
	t := n.Template()
	if t == nil || t.Task == nil {
		return false
	}
	for _, c := range t.Task.Containers {
		if c.Name == "main" {
			return true
		}
	}
	return t.Task.Kind == program.Resource || t.Task.Kind == program.Data
}

// placed gives an artifact's declaration with the place where it lies instead of where it came from.
func placed(decl Artifact, a program.Artifact) Artifact {
	decl.From, decl.FromExpression, decl.FromMetadata, decl.KeyFrom, decl.MetadataFrom = "", "", nil, nil, nil
	archiveLogs := decl.ArchiveLogs
	decl.ArtifactLocation = ArtifactLocation{}
	if len(a.Store) > 0 {
		if err := json.Unmarshal(a.Store, &decl.ArtifactLocation); err != nil {
			decl.ArtifactLocation = ArtifactLocation{} // a kind of store that Argo has no word for
		}
	}
	decl.ArchiveLogs, decl.SubPath = archiveLogs, a.SubPath
	return decl
}

// anyText writes a value as Argo's parameters are written: texts as they are, all else as JSON.
func anyText(v any) *AnyString {
	var s AnyString
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		s = AnyString(v)
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		s = AnyString(data)
	}
	return &s
}

// globalOutputs gives the workflow's outputs, by name.
func (j *projector) globalOutputs() *Outputs {
	out := &Outputs{}
	for _, name := range sortedKeys(j.s.Outputs.Parameters) {
		out.Parameters = append(out.Parameters, Parameter{Name: name, Value: anyText(j.s.Outputs.Parameters[name])})
	}
	for _, name := range sortedKeys(j.s.Outputs.Artifacts) {
		if list := j.s.Outputs.Artifacts[name]; len(list) > 0 {
			out.Artifacts = append(out.Artifacts, placed(Artifact{Name: name}, list[0]))
		}
	}
	if out.Parameters == nil && out.Artifacts == nil {
		return nil
	}
	return out
}

// env lets texts of a template read what a finished projection needs: the node's inputs and the workflow's facts.
func (j *projector) env(n *engine.Node) expr.Env {
	return expr.Env{Scope: projectScope{j.s, n}, Now: time.Time{}}
}

type projectScope struct {
	s *engine.State
	n *engine.Node
}

// Lookup finds inputs and workflow parameters; everything else is absent.
func (p projectScope) Lookup(path []string) (any, expr.Presence) {
	if len(path) == 3 && path[0] == "inputs" && path[1] == "parameters" {
		if v, ok := p.n.Inputs.Parameters[path[2]]; ok {
			return v, expr.Present
		}
	}
	if len(path) == 3 && path[0] == "workflow" && path[1] == "parameters" {
		if v, ok := p.s.Parameters[path[2]]; ok {
			return v, expr.Present
		}
	}
	if len(path) == 2 && path[0] == "workflow" {
		switch path[1] {
		case "name":
			return p.s.Run.Name, expr.Present
		case "uid":
			return p.s.Run.UID, expr.Present
		case "namespace":
			return p.s.Run.Namespace, expr.Present
		}
	}
	return nil, expr.Absent
}
