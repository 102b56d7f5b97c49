package engine

import (
	"fmt"
	"maps"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// places says, by name, where a leaf's output artifacts are to be stored and their paths in the task.
func (x *step) places(n *Node) (artifactPlaces, map[string]string, error) {
	if n.template == nil || n.template.Task == nil || len(n.template.Outputs.Artifacts) == 0 {
		return nil, nil, nil
	}
	s := x.s
	site := expr.OutputSite{
		Run: s.Run.Name, UID: s.Run.UID, Namespace: s.Run.Namespace, Root: s.Run.ArtifactRoot, Program: x.m.program.Name,
		Path: n.identity(), Pod: x.podName(n), Attempt: n.Attempt,
	}
	if n.call != nil {
		site.Task = n.call.Name
	}
	places := make(artifactPlaces, len(n.template.Outputs.Artifacts))
	paths := make(map[string]string, len(places))
	sc := &scope{x: x, frame: n, item: n.Item}
	sc.fixed = x.recorded(n, sc)
	var err error
	site.Repository, err = program.ResolveJSON(s.Run.Repository, func(t string) (string, error) { return x.m.lang.Text(t, x.env(sc)) })
	if err != nil {
		return nil, nil, fmt.Errorf("artifact repository: %w", err)
	}
	for _, d := range n.template.Outputs.Artifacts {
		if hasTag(d.Path) {
			if d.Path, err = x.m.lang.Text(d.Path, x.env(sc)); err != nil {
				return nil, nil, fmt.Errorf("outputs.artifacts.%s.path: %w", d.Name, err)
			}
		}
		if len(d.Location) > 0 {
			d.Location, err = program.ResolveJSON(d.Location, func(t string) (string, error) { return x.m.lang.Text(t, x.env(sc)) })
			if err != nil {
				return nil, nil, fmt.Errorf("outputs.artifacts.%s: %w", d.Name, err)
			}
		}
		a, path, err := x.m.lang.OutputArtifact(site, d)
		if err != nil {
			return nil, nil, fmt.Errorf("outputs.artifacts.%s: %w", d.Name, err)
		}
		if a.Metadata == nil && d.Metadata != nil {
			a.Metadata = maps.Clone(d.Metadata)
		}
		places[d.Name], paths[d.Name] = a, path
	}
	return places, paths, nil
}

type artifactPlaces = map[string]program.Artifact

// inputPaths says, by name, where a leaf's input artifacts must appear.
func (x *step) inputPaths(n *Node, sc *scope) (map[string][]string, error) {
	if len(n.template.Inputs.Artifacts) == 0 {
		return nil, nil
	}
	paths := make(map[string][]string, len(n.template.Inputs.Artifacts))
	for _, d := range n.template.Inputs.Artifacts {
		list := n.Inputs.Artifacts[d.Name]
		for i := range list {
			p := d.Path
			switch {
			case p == "":
				p = x.m.lang.InputPath(list[i])
			case hasTag(p):
				var err error
				if p, err = x.m.lang.Text(p, x.env(sc)); err != nil {
					return nil, fmt.Errorf("inputs.artifacts.%s.path: %w", d.Name, err)
				}
			}
			paths[d.Name] = append(paths[d.Name], p)
		}
	}
	return paths, nil
}

// resolveOutputs gives a task's declared outputs with their paths resolved.
func (x *step) resolveOutputs(t *program.Template, paths map[string]string, sc *scope) (program.Outputs, error) {
	out := t.Outputs
	copied := false
	for i := range out.Parameters {
		if !hasTag(out.Parameters[i].Path) {
			continue
		}
		if !copied {
			out.Parameters = append([]program.Output(nil), out.Parameters...)
			copied = true
		}
		p, err := x.m.lang.Text(out.Parameters[i].Path, x.env(sc))
		if err != nil {
			return out, fmt.Errorf("outputs.parameters.%s.path: %w", out.Parameters[i].Name, err)
		}
		out.Parameters[i].Path = p
	}
	if len(out.Artifacts) > 0 {
		out.Artifacts = append([]program.OutputArtifact(nil), out.Artifacts...)
		for i := range out.Artifacts {
			out.Artifacts[i].Path = paths[out.Artifacts[i].Name]
			for _, t := range []*string{&out.Artifacts[i].KeyFrom, &out.Artifacts[i].MetadataFrom} {
				if !hasTag(*t) {
					continue
				}
				p, err := x.m.lang.Text(*t, x.env(sc))
				if err != nil {
					return out, fmt.Errorf("outputs.artifacts.%s: %w", out.Artifacts[i].Name, err)
				}
				*t = p
			}
		}
	}
	return out, nil
}

// leafOutputs brings a task's reported outputs into the form of its declared ones: defaults for what is missing, types.
func (x *step) leafOutputs(n *Node, r *Result) {
	for name, v := range r.Outputs.Parameters {
		r.Outputs.Parameters[name] = normal(v)
	}
	for i := range n.template.Outputs.Parameters {
		d := &n.template.Outputs.Parameters[i]
		v, ok := r.Outputs.Parameters[d.Name]
		if !ok {
			v, ok = x.taskValue(n, d, r)
		}
		if !ok {
			continue
		}
		v, err := x.m.lang.Parameter(v, d.Type)
		if err != nil {
			if r.Phase == SucceededPhase {
				r.Phase, r.Message = ErrorPhase, fmt.Sprintf("output %q: %s", d.Name, err)
			}
			delete(r.Outputs.Parameters, d.Name)
			continue
		}
		if r.Outputs.Parameters == nil {
			r.Outputs.Parameters = map[string]any{}
		}
		r.Outputs.Parameters[d.Name] = v
	}
}

// taskValue gives an output parameter that the task did not report: an expression's value, or the default.
func (x *step) taskValue(n *Node, d *program.Output, r *Result) (any, bool) {
	for _, b := range []*program.Binding{d.From, d.Default} {
		if b == nil || (b == d.From && r.Phase != SucceededPhase) {
			continue
		}
		v, ok, err := x.value(b, x.leafScope(n))
		if err != nil {
			if b == d.From && d.Default == nil && r.Phase == SucceededPhase {
				r.Phase, r.Message = ErrorPhase, fmt.Sprintf("output %q: %s", d.Name, err)
			}
			continue
		}
		if ok {
			return v, true
		}
	}
	return nil, false
}

// missingOutput names a declared output that has neither value nor default, "" if none is missing.
func (x *step) missingOutput(n *Node, out *Outputs) string {
	t := n.template
	for i := range t.Outputs.Parameters {
		d := &t.Outputs.Parameters[i]
		if _, ok := out.Parameters[d.Name]; !ok && d.Default == nil && !d.Optional {
			return fmt.Sprintf("output parameter %q", d.Name)
		}
	}
	for i := range t.Outputs.Artifacts {
		d := &t.Outputs.Artifacts[i]
		if _, ok := out.Artifacts[d.Name]; !ok && !d.Optional {
			return fmt.Sprintf("output artifact %q", d.Name)
		}
	}
	return ""
}

// graphOutputs gathers a graph's outputs from its calls.
func (x *step) graphOutputs(n *Node) (Outputs, error) {
	var out Outputs
	sc := x.graphScope(n)
	decl := &n.template.Outputs
	for i := range decl.Parameters {
		d := &decl.Parameters[i]
		if d.From == nil {
			continue
		}
		v, ok, err := x.value(d.From, sc)
		if err != nil && !isAbsent(err) {
			return out, fmt.Errorf("outputs.parameters.%s: %w", d.Name, err)
		}
		cause := err
		if !ok && d.Default != nil {
			if v, ok, err = x.value(d.Default, sc); err != nil {
				return out, fmt.Errorf("outputs.parameters.%s: %w", d.Name, err)
			}
		}
		if !ok {
			if d.Optional {
				continue
			}
			if cause == nil {
				cause = fmt.Errorf("what gives it was skipped, omitted or has no such output")
			}
			return out, fmt.Errorf("outputs.parameters.%s: %w", d.Name, cause)
		}
		if v, err = x.m.lang.Parameter(v, d.Type); err != nil {
			return out, fmt.Errorf("outputs.parameters.%s: %w", d.Name, err)
		}
		if out.Parameters == nil {
			out.Parameters = map[string]any{}
		}
		out.Parameters[d.Name] = v
	}
	for i := range decl.Artifacts {
		d := &decl.Artifacts[i]
		if d.From == nil {
			continue
		}
		list, ok, err := x.artifacts(d.From, sc)
		if err != nil && !isAbsent(err) {
			return out, fmt.Errorf("outputs.artifacts.%s: %w", d.Name, err)
		}
		if !ok {
			if d.Optional {
				continue
			}
			return out, fmt.Errorf("outputs.artifacts.%s: what gives it was skipped, omitted or has no such output", d.Name)
		}
		if out.Artifacts == nil {
			out.Artifacts = artifactMap{}
		}
		named := make([]program.Artifact, len(list))
		copy(named, list)
		out.Artifacts[d.Name] = named
	}
	return out, nil
}
