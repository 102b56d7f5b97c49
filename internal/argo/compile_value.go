package argo

import (
	"encoding/json"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// literal is a binding to a text as it is.
func literal(s string) *program.Binding {
	return &program.Binding{Const: quoted(s)}
}

// text is a binding to a text that may hold placeholders.
func text(s string) *program.Binding {
	if !strings.Contains(s, "{{") {
		return literal(s)
	}
	return &program.Binding{Text: &s}
}

// onlyTag gives the inside of a text that is one simple placeholder and nothing else.
func onlyTag(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{{") || !strings.HasSuffix(s, "}}") || len(s) < 5 {
		return "", false
	}
	inner := s[2 : len(s)-2]
	if strings.HasPrefix(inner, "=") || strings.Contains(inner, "{{") != strings.Contains(inner, "}}") {
		return "", false
	}
	if i := strings.Index(inner, "}}"); i >= 0 && i < strings.Index(inner, "{{") {
		return "", false // two placeholders side by side
	}
	return strings.TrimSpace(inner), true
}

// reference is a binding to what a text like "{{steps.a.outputs.artifacts.x}}" names; the braces may be missing.
func reference(s string) *program.Binding {
	if path, ok := onlyTag(s); ok {
		return &program.Binding{Ref: path}
	}
	return &program.Binding{Ref: strings.TrimSpace(s)}
}

// parameterBinding gives the binding for a parameter's value or valueFrom; nil where it has neither.
func parameterBinding(p Parameter) *program.Binding {
	if p.Value != nil {
		return text(string(*p.Value))
	}
	if p.ValueFrom == nil {
		return nil
	}
	b := valueFromBinding(p.ValueFrom)
	if p.ValueFrom.Default == nil {
		return b
	}
	fallback := text(string(*p.ValueFrom.Default))
	if b == nil {
		return fallback
	}
	b.Default = fallback
	return b
}

// valueFromBinding is for the sources that are not files of a task.
func valueFromBinding(v *ValueFrom) *program.Binding {
	switch {
	case v.Expression != "":
		return &program.Binding{Expr: v.Expression}
	case v.Parameter != "":
		if path, ok := onlyTag(v.Parameter); ok {
			return &program.Binding{Ref: path}
		}
		return text(v.Parameter)
	case v.ConfigMapKeyRef != nil:
		ref := v.ConfigMapKeyRef
		return &program.Binding{ConfigMap: &program.ConfigMapKey{Name: ref.Name, Key: ref.Key, Optional: deref(ref.Optional)}}
	case v.Supplied != nil:
		return &program.Binding{Supplied: true}
	}
	return nil
}

// artifactBinding says where an artifact comes from; nil where it does not say.
func artifactBinding(a Artifact) *program.Binding {
	var b *program.Binding
	switch {
	case a.From != "":
		b = reference(a.From)
	case a.FromExpression != "":
		b = &program.Binding{Expr: a.FromExpression}
	case a.FromMetadata != nil:
		b = &program.Binding{Metadata: a.FromMetadata}
	default:
		loc := location(a.ArtifactLocation)
		if loc == nil {
			return nil
		}
		b = &program.Binding{Location: loc}
	}
	b.SubPath = a.SubPath
	return b
}

// location gives the store block of an artifact; nil where it has none.
func location(l ArtifactLocation) program.JSON {
	l.ArchiveLogs = nil
	data, err := json.Marshal(l)
	if err != nil || string(data) == "{}" {
		return nil
	}
	return data
}

// archiveName is "", "tar", "zip" or "none".
func archiveName(a *ArchiveStrategy) string {
	switch {
	case a == nil:
		return ""
	case a.None != nil:
		return "none"
	case a.Zip != nil:
		return "zip"
	case a.Tar != nil:
		return "tar"
	}
	return ""
}

func allowed(enum []AnyString) []any {
	var out []any
	for _, e := range enum {
		out = append(out, string(e))
	}
	return out
}

// arguments compiles what a call gives.
func arguments(a Arguments) program.Arguments {
	var out program.Arguments
	for _, p := range a.Parameters {
		b := parameterBinding(p)
		if b == nil && p.Default != nil {
			b = text(string(*p.Default))
		}
		if b != nil {
			out.Parameters = append(out.Parameters, program.Argument{Name: p.Name, From: *b})
		}
	}
	for _, art := range a.Artifacts {
		if b := artifactBinding(art); b != nil {
			out.Artifacts = append(out.Artifacts, program.Argument{Name: art.Name, From: *b})
		}
	}
	return out
}

// inputs compiles what a template takes.
func inputs(in Inputs) program.Inputs {
	var out program.Inputs
	for _, p := range in.Parameters {
		i := program.Input{Name: p.Name, Allowed: allowed(p.Enum), Description: p.Description.text(), Value: parameterBinding(p)}
		if p.Default != nil {
			i.Default = text(string(*p.Default))
		}
		out.Parameters = append(out.Parameters, i)
	}
	for _, a := range in.Artifacts {
		decl := program.InputArtifact{
			Name: a.Name, Path: a.Path, Optional: a.Optional, Mode: a.Mode, Recurse: a.RecurseMode, Archive: archiveName(a.Archive),
		}
		if located(a) { // else its store is named, but not where in it
			decl.Default = artifactBinding(a)
		}
		out.Artifacts = append(out.Artifacts, decl)
	}
	return out
}

// outputs compiles what a template gives. A value that is to be supplied has the default of the input of its name where
// it has none itself.
func outputs(o Outputs, in Inputs) program.Outputs {
	var out program.Outputs
	for _, p := range o.Parameters {
		decl := program.Output{Name: p.Name, GlobalName: p.GlobalName}
		if p.Value != nil {
			decl.From = text(string(*p.Value))
		}
		if v := p.ValueFrom; v != nil {
			decl.Path, decl.JSONPath, decl.JQFilter = v.Path, v.JSONPath, v.JQFilter
			decl.Supplied = v.Supplied != nil
			if b := valueFromBinding(v); b != nil && !b.Supplied {
				decl.From = b
			}
			if v.Default != nil {
				decl.Default = text(string(*v.Default))
			}
		}
		if decl.Default == nil && p.Default != nil {
			decl.Default = text(string(*p.Default))
		}
		for _, p := range in.Parameters {
			if p.Name == decl.Name && decl.Supplied && decl.Default == nil && p.Default != nil {
				decl.Default = text(string(*p.Default))
			}
		}
		out.Parameters = append(out.Parameters, decl)
	}
	for _, a := range o.Artifacts {
		decl := program.OutputArtifact{
			Name: a.Name, Path: a.Path, Optional: a.Optional, Archive: archiveName(a.Archive), GlobalName: a.GlobalName,
			Location: location(a.ArtifactLocation),
		}
		if a.KeyFrom != nil {
			decl.KeyFrom = a.KeyFrom.Path
		}
		if a.MetadataFrom != nil {
			decl.MetadataFrom = a.MetadataFrom.Path
		}
		if a.From != "" || a.FromExpression != "" || a.FromMetadata != nil {
			decl.From = artifactBinding(a)
		}
		out.Artifacts = append(out.Artifacts, decl)
	}
	return out
}
