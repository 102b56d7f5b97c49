package kfp

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// checkOptions holds the run's parameters and artifacts against the root's declared inputs.
func (p *Pipeline) checkOptions(o Options) error {
	probs := &problems{file: p.Name}
	if p.Spec.Root == nil || p.Spec.Root.Dag == nil {
		return p.Validate()
	}
	defs := p.Spec.Root.InputDefinitions
	for _, n := range sortedKeys(o.Parameters) {
		d := defs.Parameters[n]
		if d == nil {
			probs.add("parameters."+n, "give only the pipeline's own inputs: "+names(defs.Parameters), "the pipeline has no input parameter of that name")
			continue
		}
		value, err := asJSON(o.Parameters[n])
		if err != nil {
			probs.add("parameters."+n, "give a JSON value", "%s", err)
			continue
		}
		optional := d.IsOptional || d.DefaultValue != nil
		if value == nil {
			if !optional {
				probs.add("parameters."+n, "give it a value", "it is null, and the pipeline needs it")
			}
			continue
		}
		if why := mismatch(value, parameterType(d.ParameterType, d.Type)); why != "" {
			probs.add("parameters."+n, "give a value of that type", "%s", why)
		} else if !allowed(value, d.Literals) {
			probs.add("parameters."+n, "use one of "+literalList(d.Literals), "%s is none of the literals", brief(value))
		}
	}
	if !o.Lint {
		for _, n := range sortedKeys(defs.Parameters) {
			d := defs.Parameters[n]
			if _, given := o.Parameters[n]; !given && !d.IsOptional && d.DefaultValue == nil {
				probs.add("parameters."+n, "give it, as in -p "+n+"=...", "the pipeline needs this %s, and it has no default", parameterType(d.ParameterType, d.Type))
			}
		}
		for _, n := range sortedKeys(defs.Artifacts) {
			if len(o.Artifacts[n]) == 0 && !defs.Artifacts[n].IsOptional {
				probs.add("artifacts."+n, "give it, as in --artifact "+n+"=URI", "the pipeline needs this %s", defs.Artifacts[n].ArtifactType.title())
			}
		}
	}
	for _, n := range sortedKeys(o.Artifacts) {
		d := defs.Artifacts[n]
		if d == nil {
			probs.add("artifacts."+n, "give only the pipeline's own inputs: "+names(defs.Artifacts), "the pipeline has no input artifact of that name")
			continue
		}
		if len(o.Artifacts[n]) > 1 && !d.IsArtifactList {
			probs.add("artifacts."+n, "give it once", "there are %d of it, and the pipeline takes one", len(o.Artifacts[n]))
		}
		for _, a := range o.Artifacts[n] {
			if want := d.ArtifactType.title(); a.Type != "" && a.Type != want && want != anyArtifact && want != "" {
				probs.add("artifacts."+n, "give one of that type", "it is a %s, and the pipeline takes a %s", a.Type, want)
			}
		}
	}
	return probs.err()
}

// anyArtifact is the type that takes every other.
const anyArtifact = "system.Artifact"

// TypedArtifacts gives the artifacts of a run the types that the root declares for them, where they have none.
func (p *Pipeline) TypedArtifacts(given map[string][]program.Artifact) map[string][]program.Artifact {
	out := maps.Clone(given)
	for n, list := range out {
		d := p.Spec.Root.InputDefinitions.Artifacts[n]
		if d == nil {
			continue
		}
		out[n] = slices.Clone(list)
		for i := range list {
			if list[i].Type == "" {
				out[n][i].Type = d.ArtifactType.title()
			}
		}
	}
	return out
}

func names[V any](m map[string]V) string {
	var out strings.Builder
	for i, n := range sortedKeys(m) {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(n)
	}
	if out.String() == "" {
		return "it has none"
	}
	return out.String()
}

// ParseParameters reads values given as texts ("-p name=value") by the types that the root declares: a STRING is the text
// itself, anything else is JSON; True and False are booleans, too. Names that the pipeline does not have are kept as
// texts, for [Pipeline.Compile] to refuse.
func (p *Pipeline) ParseParameters(texts map[string]string) (map[string]any, error) {
	probs := &problems{file: p.Name}
	out := make(map[string]any, len(texts))
	for _, n := range sortedKeys(texts) {
		text := texts[n]
		var d *InputParameter
		if p.Spec.Root != nil {
			d = p.Spec.Root.InputDefinitions.Parameters[n]
		}
		typ := ""
		if d != nil {
			typ = parameterType(d.ParameterType, d.Type)
		}
		switch typ {
		case "", "STRING":
			out[n] = text
		case "BOOLEAN":
			b, err := strconv.ParseBool(text)
			if err != nil {
				probs.add("parameters."+n, "give true or false", "%q is no BOOLEAN", text)
				continue
			}
			out[n] = b
		default:
			v, err := parseJSON(text)
			if err != nil {
				probs.add("parameters."+n, "write it as JSON", "%q is no %s", text, typ)
				continue
			}
			out[n] = v
		}
	}
	return out, probs.err()
}
