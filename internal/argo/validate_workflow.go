package argo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// runnable checks an object that runs, or would run if it were given what it lacks.
func (v *validator) runnable(d *document) {
	if !d.sound() {
		return // fields that could not be read would only give false alarms
	}
	r, problem := v.b.resolve(d)
	if problem != nil {
		problem.File = d.file
		v.add(place{doc: d, path: problem.Path}, *problem)
	}
	if r == nil {
		return
	}
	v.r = r
	spec := place{doc: d, path: r.path, name: "spec"}
	v.spec(spec, r.own)
	if problem != nil {
		return
	}
	if r.ref != nil {
		v.used[v.b.origin[r.ref]] = true
		if len(r.own.Templates) > 0 {
			v.invalid(spec.at("templates"), "Templates is invalid field in spec if workflow referred WorkflowTemplate reference",
				"cannot be given together with workflowTemplateRef; move them into the WorkflowTemplate")
		}
		if origin := v.b.origin[r.ref]; origin.sound() {
			v.spec(place{doc: origin, path: "spec", name: "spec"}, &r.ref.Spec)
		} else if origin != d {
			return
		}
	}
	v.global = v.globals()
	v.workflowArguments(spec)
	v.entry(spec)
	v.hooks(spec.at("hooks"), "hooks", r.own.Hooks, localScope)
	if r.ref != nil {
		v.hooks(place{doc: v.b.origin[r.ref], path: "spec.hooks"}, "hooks", r.ref.Spec.Hooks, localScope)
	}
	for _, name := range r.local.order {
		v.queue = append(v.queue, templateKey{localScope, name})
	}
	v.templates()
}

// isTemplate says whether the object is a template that is checked as such, and not to be run now.
func (v *validator) isTemplate() bool {
	_, ok := v.r.doc.object.(*WorkflowTemplate)
	return ok && v.lint
}

// spec checks the fields of a workflow spec that concern no template.
func (v *validator) spec(p place, s *WorkflowSpec) {
	if s.Parallelism != nil && *s.Parallelism < 1 {
		v.refuse(p.at("parallelism"), "must be at least 1")
	}
	v.unusual(p.at("shutdown"), s.Shutdown, "Stop", "Terminate")
	if g := s.PodGC; g != nil {
		if _, err := metav1.LabelSelectorAsSelector(g.LabelSelector); err != nil {
			v.invalid(p.at("podGC.labelSelector"), fmt.Sprintf("podGC.labelSelector invalid: %v", err), "is not a label selector: %v", err)
		}
		v.oneOf(p.at("podGC.strategy"), g.Strategy, "OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess")
	}
	if g := s.VolumeClaimGC; g != nil {
		v.unusual(p.at("volumeClaimGC.strategy"), g.Strategy, "OnWorkflowCompletion", "OnWorkflowSuccess")
	}
	if g := s.ArtifactGC; g != nil {
		v.oneOf(p.at("artifactGC.strategy"), g.Strategy, "OnWorkflowCompletion", "OnWorkflowDeletion", "Never")
	}
	if s.ActiveDeadlineSeconds != nil && *s.ActiveDeadlineSeconds < 0 {
		v.late(p.at("activeDeadlineSeconds"), "must not be negative")
	}
	v.podResources(p.at("podResources"), s.PodResources)
	v.retry(p.at("retryStrategy"), s.RetryStrategy)
	v.metrics(p.at("metrics"), s.Metrics)
	v.locks(p.at("synchronization"), s.Synchronization)
	seen := map[string]int{}
	for i := range s.Templates {
		t := &s.Templates[i]
		at := p.at("templates").item(i).at("name")
		at.name = fmt.Sprintf("spec.templates[%d].name", i)
		v.fieldName(at, t.Name)
		if first, ok := seen[t.Name]; ok && t.Name != "" {
			v.invalid(at, fmt.Sprintf("spec.templates[%d].name '%s' is not unique", i, t.Name), "%s is also the name of templates[%d]; give each its own", shorten(t.Name), first)
		}
		seen[t.Name] = i
	}
	for _, name := range sortedKeys(deref(s.WorkflowMetadata).Labels) {
		value := s.WorkflowMetadata.Labels[name]
		if problems := validation.IsValidLabelValue(value); problems != nil {
			v.refuse(p.at("workflowMetadata.labels").at(name), "%s is not a label's value: %s", shorten(value), strings.Join(problems, "; "))
		}
	}
	for name, from := range deref(s.WorkflowMetadata).LabelsFrom {
		if strings.TrimSpace(from.Expression) == "" {
			v.late(p.at("workflowMetadata.labelsFrom").at(name).at("expression"), "must not be empty")
		}
	}
}

// workflowArguments checks the arguments that the workflow starts with.
func (v *validator) workflowArguments(spec place) {
	own := spec.at("arguments")
	v.argumentNames(own, v.r.own.Arguments)
	for _, a := range v.r.spec.Arguments.Parameters {
		p, name := own, "spec.arguments."+a.Name
		if i := slices.IndexFunc(v.r.own.Arguments.Parameters, func(o Parameter) bool { return o.Name == a.Name }); i >= 0 {
			p = own.at("parameters").item(i)
		} else if v.r.ref != nil {
			p.doc, p.path = v.b.origin[v.r.ref], "spec.arguments"
		}
		given, isGiven := v.opts.Parameters[a.Name]
		if a.ValueFrom != nil {
			v.argumentSource(p.at("valueFrom"), name, a.ValueFrom)
		}
		value := given
		switch {
		case isGiven:
		case a.Value != nil:
			value = string(*a.Value)
		case a.ValueFrom != nil:
			continue
		case v.lint:
			continue
		case a.Default != nil:
			v.invalid(p, fmt.Sprintf("%s.value or %s.valueFrom is required", name, name), "the parameter %s has only a default, which is for inputs of templates; write value: in its place", a.Name)
			continue
		default:
			v.invalid(p, fmt.Sprintf("%s.value or %s.valueFrom is required", name, name), "the parameter %s has no value; give one with -p %s=VALUE", a.Name, a.Name)
			continue
		}
		v.enum(p, name, a.Enum, value)
	}
	v.strangers(own)
	for i, a := range v.r.own.Arguments.Artifacts {
		a.Optional = a.Optional || len(v.opts.Artifacts[a.Name]) > 0 // given with the submission
		v.argumentArtifact(own.at("artifacts").item(i), "spec.arguments."+a.Name, a)
	}
}

// strangers warns of parameters and artifacts that are given to a run although nothing in the workflow has their names: most likely they
// are misspelt. Argo takes them silently.
func (v *validator) strangers(p place) {
	known, artifacts := map[string]bool{}, map[string]bool{}
	for _, a := range v.r.spec.Arguments.Parameters {
		known[a.Name] = true
	}
	for _, a := range v.r.spec.Arguments.Artifacts {
		artifacts[a.Name] = true
	}
	for _, start := range []string{firstOf(v.opts.Entrypoint, v.r.spec.Entrypoint), v.r.spec.OnExit} {
		if src, ok := v.r.local.templates[start]; ok {
			for _, in := range src.t.Inputs.Parameters {
				known[in.Name] = true
			}
			for _, in := range src.t.Inputs.Artifacts {
				artifacts[in.Name] = true
			}
		}
	}
	for _, name := range sortedKeys(v.opts.Artifacts) {
		switch {
		case !artifacts[name]:
			v.late(p.at("artifacts"), "the workflow has no artifact %q%s", name, choose(name, slices.Sorted(maps.Keys(artifacts))))
		case len(v.opts.Artifacts[name]) > 1:
			v.refuse(p.at("artifacts"), "%s is given %d times; give it once", name, len(v.opts.Artifacts[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.opts.Parameters)) {
		if !known[name] && !v.mentions(name) {
			v.late(p.at("parameters"), "the workflow has no parameter %q%s", name, choose(name, slices.Sorted(maps.Keys(known))))
		}
	}
}

// mentions says whether some text reads a parameter of the workflow by its name, declared or not.
func (v *validator) mentions(name string) bool {
	found := false
	for _, d := range v.b.docs {
		d.tree.texts("", func(_, text string) {
			found = found || strings.Contains(text, "workflow.parameters") && strings.Contains(text, name)
		})
	}
	return found
}

// enum checks a value against those that are allowed.
func (v *validator) enum(p place, name string, allowed []AnyString, value string) {
	if allowed == nil || hasTag(value) {
		return
	}
	if len(allowed) == 0 {
		v.refuse(p.at("enum"), "should contain at least one value")
		return
	}
	if slices.Contains(allowed, AnyString(value)) {
		return
	}
	texts := make([]string, len(allowed))
	for i, a := range allowed {
		texts[i] = string(a)
	}
	v.invalid(p.at("value"), fmt.Sprintf("%s.value should be present in %s.enum list", name, name),
		"%s is not among the values that enum allows: %s", shorten(value), strings.Join(texts, ", "))
}

// entry checks what the workflow runs first and last.
func (v *validator) entry(spec place) {
	name, p := v.r.spec.Entrypoint, spec.at("entrypoint")
	if v.r.own.Entrypoint == "" && v.r.ref != nil {
		p = place{doc: v.b.origin[v.r.ref], path: "spec.entrypoint"}
	}
	if v.opts.Entrypoint != "" {
		name = v.opts.Entrypoint
	}
	if name == "" {
		if !v.isTemplate() {
			v.invalid(p, "spec.entrypoint is required", "is missing; name the template to start with, or give --entrypoint")
		}
	} else {
		v.target(p, "", localScope, name, nil, nil, v.startArguments())
	}
	if exit := v.r.spec.OnExit; exit != "" {
		p := spec.at("onExit")
		if v.r.own.OnExit == "" {
			p.doc, p.path = v.b.origin[v.r.ref], "spec.onExit"
		}
		v.target(p, "", localScope, exit, nil, nil, v.startArguments())
	}
}

// startArguments are those that the workflow's own calls get; nil where any may still come.
func (v *validator) startArguments() *Arguments {
	if v.isTemplate() {
		return nil
	}
	args := v.r.spec.Arguments
	args.Parameters = slices.Clone(args.Parameters)
	for name := range v.opts.Parameters {
		args.Parameters = append(args.Parameters, Parameter{Name: name, Value: new(AnyString)})
	}
	args.Artifacts = withLocations(args.Artifacts, v.opts.Artifacts)
	return &args
}
