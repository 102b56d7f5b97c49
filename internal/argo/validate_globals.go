package argo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
)

// globals are the workflow's variables that have names of the author's choice.
type globals struct {
	parameters, labels, annotations      map[string]bool
	outputParameters, outputArtifacts    map[string]bool
	anyParameter, anyOutputParam, anyArt bool
	// exit is set where something runs after the rest, which may ask for failures.
	exit bool
}

// globals collects the workflow's variables. Global outputs count wherever they are declared, as nothing says which
// templates will have run.
func (v *validator) globals() *globals {
	g := &globals{
		parameters: map[string]bool{}, labels: map[string]bool{}, annotations: map[string]bool{},
		outputParameters: map[string]bool{}, outputArtifacts: map[string]bool{}, anyParameter: v.isTemplate(),
	}
	for _, p := range v.r.spec.Arguments.Parameters {
		g.parameters[p.Name] = true
	}
	for name := range v.opts.Parameters {
		g.parameters[name] = true
	}
	m := deref(v.r.spec.WorkflowMetadata)
	addKeys(g.labels, v.r.meta.Labels)
	addKeys(g.labels, m.Labels)
	addKeys(g.labels, m.LabelsFrom)
	addKeys(g.labels, v.r.extraLabels)
	addKeys(g.labels, v.opts.Labels)
	addKeys(g.annotations, v.r.meta.Annotations)
	addKeys(g.annotations, m.Annotations)
	addKeys(g.annotations, v.r.extraAnnotations)
	addKeys(g.annotations, v.opts.Annotations)
	for _, src := range v.r.local.templates {
		g.addOutputs(src.t)
	}
	for _, s := range v.referenced() {
		for _, src := range s.templates {
			g.addOutputs(src.t)
		}
	}
	_, hook := v.r.spec.Hooks[exitHook]
	g.exit = hook || v.r.spec.OnExit != "" || v.isTemplate()
	return g
}

// referenced gives the scopes that the workflow's templates lead to, directly or not. A reference that is not known yet
// may lead to any.
func (v *validator) referenced() []*scope {
	var out []*scope
	seen := map[string]bool{}
	var visit func(name string)
	var inspect func(t *Template)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if hasTag(name) {
			for n := range v.b.Templates {
				visit(scopeName(n, false))
			}
			for n := range v.b.ClusterTemplates {
				visit(scopeName(n, true))
			}
			return
		}
		if s := v.scope(name); s != nil {
			out = append(out, s)
			for _, src := range s.templates {
				inspect(src.t)
			}
		}
	}
	inspect = func(t *Template) {
		t.eachCall(func(inv *Invocation) {
			if r := inv.TemplateRef; r != nil {
				visit(scopeName(r.Name, r.ClusterScope))
			}
			for _, h := range inv.Hooks {
				if r := h.TemplateRef; r != nil {
					visit(scopeName(r.Name, r.ClusterScope))
				}
			}
			if inv.Inline != nil {
				inspect(inv.Inline)
			}
		})
	}
	for _, src := range v.r.local.templates {
		inspect(src.t)
	}
	for _, h := range v.r.spec.Hooks {
		if r := h.TemplateRef; r != nil {
			visit(scopeName(r.Name, r.ClusterScope))
		}
	}
	return out
}

func addKeys[V any](into map[string]bool, from map[string]V) {
	for k := range from {
		into[k] = true
	}
}

func (g *globals) addOutputs(t *Template) {
	for _, p := range t.Outputs.Parameters {
		g.outputParameters[p.GlobalName] = true
		g.anyOutputParam = g.anyOutputParam || hasTag(p.GlobalName)
	}
	for _, a := range t.Outputs.Artifacts {
		g.outputArtifacts[a.GlobalName] = true
		g.anyArt = g.anyArt || hasTag(a.GlobalName)
	}
	t.eachCall(func(inv *Invocation) {
		if inv.Inline != nil {
			g.addOutputs(inv.Inline)
		}
	})
}

func (g *globals) known(parts []string) (bool, string) {
	name := ""
	if len(parts) > 2 {
		name = strings.Join(parts[2:], ".")
	}
	in := func(set map[string]bool, what string) (bool, string) {
		if name == "" || name == "json" || set[name] {
			return true, ""
		}
		var names []string
		for n := range set {
			names = append(names, n)
		}
		slices.Sort(names)
		return false, fmt.Sprintf("; the workflow has no %s %q%s", what, name, choose(name, names))
	}
	switch parts[1] {
	case "name", "namespace", "uid", "mainEntrypoint", "serviceAccountName", "priority", "status", "title", "artifactRoot":
		return len(parts) == 2, ""
	case "failures":
		return g.exit, "; it is known only where the workflow has onExit"
	case "duration", "scheduledTime":
		return len(parts) == 2, "; it has no parts"
	case "creationTimestamp":
		return len(parts) == 2 || len(parts) == 3 && argoexpr.IsTimeForm(parts[2]),
			"; forms of a time are RFC3339, s and the letters of strftime: Y, m, d, H, M, S and the like"
	case "parameters":
		if g.anyParameter {
			return true, ""
		}
		return in(g.parameters, "parameter")
	case "labels":
		return in(g.labels, "label")
	case "annotations":
		return in(g.annotations, "annotation")
	case "outputs":
		if len(parts) < 4 {
			return true, ""
		}
		name = parts[3]
		if parts[2] == "parameters" {
			name = strings.Join(parts[3:], ".")
			if g.anyOutputParam {
				return true, ""
			}
			return in(g.outputParameters, "global output parameter")
		}
		if parts[2] != "artifacts" {
			return false, "; write workflow.outputs.parameters.NAME or workflow.outputs.artifacts.NAME"
		}
		if g.anyArt {
			return true, ""
		}
		return in(g.outputArtifacts, "global output artifact")
	}
	return false, "; there is no such variable of a workflow"
}
