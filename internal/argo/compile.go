package argo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/program"
)

// Options are what a submission says besides the manifest.
type Options struct {
	// Parameters override the workflow's arguments (-p name=value).
	Parameters map[string]string
	// Artifacts override the workflow's artifact arguments; each has one entry.
	Artifacts map[string][]program.Artifact
	// Entrypoint, ServiceAccount, Name and GenerateName replace the manifest's where they are not empty.
	Entrypoint     string
	ServiceAccount string
	Name           string
	GenerateName   string
	// Resubmitted leaves out spec.shutdown, which ended the earlier run.
	Resubmitted bool
	// Labels and Annotations are added to the workflow's.
	Labels      map[string]string
	Annotations map[string]string
}

// Compile turns the object to run into a program. The error is [Problems]: all that [Bundle.Validate] finds.
func (b *Bundle) Compile(opts Options) (*program.Program, error) {
	if err := b.Validate(opts).errOrNil(); err != nil {
		return nil, err
	}
	r, problem := b.resolve(b.run)
	if problem != nil {
		problem.File = b.run.file
		return nil, Problems{*problem}
	}
	c := newCompiler(b, r, opts)
	p, err := c.program()
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", b.run.file, err)
	}
	if err := c.problems.errOrNil(); err != nil {
		return nil, err
	}
	return p, nil
}

// compiler builds a program from a runnable.
type compiler struct {
	b    *Bundle
	r    *runnable
	opts Options
	p    *program.Program
	// scopes that have been looked up, by name.
	scopes map[string]*scope
	// merged caches templates with their defaults.
	merged map[*Template]*Template
	// queue are keys of templates that calls refer to and that are still to be compiled.
	queue []templateKey
	// volumes of the workflow that read results of calls, rewritten; volumeReads is what each reads, captured what the
	// template of a key reads through those that it mounts.
	capturing   map[string]corev1.Volume
	volumeReads map[string][]string
	captured    map[string][]string
	// results are keys of templates whose standard output someone refers to.
	results  map[string]bool
	problems Problems
}

type templateKey struct{ scope, name string }

func (k templateKey) String() string { return k.scope + "/" + k.name }

func newCompiler(b *Bundle, r *runnable, opts Options) *compiler {
	c := &compiler{
		b: b, r: r, opts: opts, scopes: map[string]*scope{localScope: r.local}, results: map[string]bool{},
		p: &program.Program{Language: "argo", Templates: map[string]*program.Template{}}, captured: map[string][]string{}, merged: map[*Template]*Template{},
	}
	c.capturing, c.volumeReads = capturingVolumes(r.spec.Volumes)
	return c
}

// withDefaults gives a template with the workflow's templateDefaults.
func (c *compiler) withDefaults(t *Template) (*Template, error) {
	if m, ok := c.merged[t]; ok {
		return m, nil
	}
	m, err := withDefaults(t, c.r.spec.TemplateDefaults)
	if err != nil {
		return nil, fmt.Errorf("merge templateDefaults: %w", err)
	}
	c.merged[t] = m
	return m, nil
}

func (c *compiler) program() (*program.Program, error) {
	spec, p := c.r.spec, c.p
	p.Name = firstOf(c.opts.Name, c.r.meta.Name, c.opts.GenerateName, c.r.meta.GenerateName)
	p.ServiceAccount = firstOf(c.opts.ServiceAccount, spec.ServiceAccountName)
	p.Priority = spec.Priority
	p.Parallelism = deref(spec.Parallelism)
	p.Deadline = deref(spec.ActiveDeadlineSeconds)
	p.Suspend = deref(spec.Suspend)
	if s := spec.Shutdown; !c.opts.Resubmitted && (s == "Stop" || s == "Terminate") {
		p.Shutdown = s
	}
	p.Locks = locks(spec.Synchronization)
	p.ConfigMaps = c.b.ConfigMaps
	c.metadata()
	c.parameters()
	if err := c.pod(); err != nil {
		return nil, err
	}

	entry := firstOf(c.opts.Entrypoint, spec.Entrypoint)
	p.Entry = program.Call{Template: c.ref(localScope, entry, nil), Arguments: c.workflowArguments(localScope, entry)}
	c.workflowHooks()

	for len(c.queue) > 0 {
		key := c.queue[0]
		c.queue = c.queue[1:]
		if err := c.template(key); err != nil {
			return nil, err
		}
	}
	c.giveCaptured()
	for key := range c.results {
		if t := p.Templates[key]; t != nil && t.Task != nil {
			t.Task.Result = true
		}
	}
	return p, nil
}

// metadata collects labels and annotations: the object's, what workflowMetadata and a CronWorkflow add, and the
// submission's. Computed labels become placeholders, which are evaluated when the run starts.
func (c *compiler) metadata() {
	labels, annotations := map[string]string{}, map[string]string{}
	if c.r.ref == nil || c.r.doc.kind == "Workflow" || c.r.doc.kind == "CronWorkflow" {
		maps.Copy(labels, c.r.meta.Labels)
		maps.Copy(annotations, c.r.meta.Annotations)
	}
	if m := c.r.spec.WorkflowMetadata; m != nil {
		maps.Copy(labels, m.Labels)
		maps.Copy(annotations, m.Annotations)
		for name, from := range m.LabelsFrom {
			labels[name] = "{{=" + from.Expression + "}}"
		}
	}
	maps.Copy(labels, c.r.extraLabels)
	maps.Copy(annotations, c.r.extraAnnotations)
	maps.Copy(labels, c.opts.Labels)
	maps.Copy(annotations, c.opts.Annotations)
	if len(labels) > 0 {
		c.p.Labels = labels
	}
	if len(annotations) > 0 {
		c.p.Annotations = annotations
	}
}

// parameters declares the workflow's arguments, with the submission's values.
func (c *compiler) parameters() {
	given := maps.Clone(c.opts.Parameters)
	for _, a := range c.r.spec.Arguments.Parameters {
		in := program.Input{Name: a.Name, Allowed: allowed(a.Enum), Description: a.Description.text()}
		in.Default = parameterBinding(a)
		if in.Default == nil && a.Default != nil {
			in.Default = text(string(*a.Default))
		}
		if v, ok := given[a.Name]; ok {
			in.Default = literal(v)
			delete(given, a.Name)
		}
		c.p.Parameters = append(c.p.Parameters, in)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		c.p.Parameters = append(c.p.Parameters, program.Input{Name: name, Default: literal(given[name])})
	}
	for _, a := range c.r.spec.Arguments.Artifacts {
		c.p.Artifacts = append(c.p.Artifacts, program.InputArtifact{Name: a.Name, Optional: a.Optional, Archive: archiveName(a.Archive), Default: artifactBinding(a)})
	}
	for _, name := range sortedKeys(c.opts.Artifacts) {
		if !slices.ContainsFunc(c.p.Artifacts, func(a program.InputArtifact) bool { return a.Name == name }) {
			c.p.Artifacts = append(c.p.Artifacts, program.InputArtifact{Name: name})
		}
	}
}

// exitArguments gives an exit hook its own arguments, or, where it has none, the workflow's.
func (c *compiler) exitArguments(in string, h LifecycleHook) program.Arguments {
	if len(h.Arguments.Parameters) > 0 || len(h.Arguments.Artifacts) > 0 {
		return arguments(h.Arguments)
	}
	if r := h.TemplateRef; r != nil {
		return c.workflowArguments(scopeName(r.Name, r.ClusterScope), r.Template)
	}
	return c.workflowArguments(in, h.Template)
}

// workflowArguments gives a template those workflow arguments that it takes; where it is not known yet, all of them.
func (c *compiler) workflowArguments(in, name string) program.Arguments {
	var t *Template
	if s := c.scope(in); s != nil {
		if src, ok := s.templates[name]; ok {
			t, _ = c.withDefaults(src.t) // a failure is reported where the template is compiled
		}
	}
	var out program.Arguments
	for _, p := range c.p.Parameters {
		if t == nil || slices.ContainsFunc(t.Inputs.Parameters, func(in Parameter) bool { return in.Name == p.Name }) {
			out.Parameters = append(out.Parameters, program.Argument{Name: p.Name, From: program.Binding{Ref: "workflow.parameters." + p.Name}})
		}
	}
	for _, a := range c.p.Artifacts {
		if t == nil || slices.ContainsFunc(t.Inputs.Artifacts, func(in Artifact) bool { return in.Name == a.Name }) {
			out.Artifacts = append(out.Artifacts, program.Argument{Name: a.Name, From: program.Binding{Ref: "workflow.artifacts." + a.Name}})
		}
	}
	return out
}

// workflowHooks compiles what runs beside and after the workflow as a whole.
func (c *compiler) workflowHooks() {
	spec := c.r.spec
	for _, name := range sortedNames(spec.Hooks) {
		h := spec.Hooks[name]
		if name == exitHook {
			continue
		}
		c.p.Lifecycle = append(c.p.Lifecycle, program.Lifecycle{Name: name, Expression: h.Expression,
			Call: program.Call{Name: name, Template: c.ref(localScope, h.Template, h.TemplateRef), Arguments: arguments(h.Arguments)}})
	}
	if h, ok := spec.Hooks[exitHook]; ok && spec.OnExit == "" {
		call := &program.Call{Name: "onExit", Template: c.ref(localScope, h.Template, h.TemplateRef), Arguments: c.exitArguments(localScope, h)}
		if h.Expression != "" {
			call.When = &program.Condition{Form: "expression", Source: h.Expression}
		}
		c.p.OnExit = call
	} else if spec.OnExit != "" {
		c.p.OnExit = &program.Call{Name: "onExit", Template: c.ref(localScope, spec.OnExit, nil), Arguments: c.workflowArguments(localScope, spec.OnExit)}
	}
}

// ref binds a call to a template by name, or by reference, and sees to it that the template is compiled.
func (c *compiler) ref(in, name string, ref *TemplateRef) program.TemplateRef {
	out := program.TemplateRef{Scope: in, Name: name}
	if ref != nil {
		out = program.TemplateRef{Scope: scopeName(ref.Name, ref.ClusterScope), Name: ref.Template}
	}
	if strings.Contains(out.Scope+out.Name, "{{") {
		c.queueAll(out)
	} else {
		c.queue = append(c.queue, templateKey{out.Scope, out.Name})
	}
	return out
}

// queueAll compiles all that a reference with placeholders may lead to.
func (c *compiler) queueAll(ref program.TemplateRef) {
	var names []string
	if !strings.Contains(ref.Scope, "{{") {
		names = []string{ref.Scope}
	} else {
		for name := range c.b.Templates {
			names = append(names, scopeName(name, false))
		}
		for name := range c.b.ClusterTemplates {
			names = append(names, scopeName(name, true))
		}
	}
	sort.Strings(names)
	for _, n := range names {
		s := c.scope(n)
		if s == nil {
			continue
		}
		for _, name := range s.order {
			if !strings.Contains(ref.Name, "{{") && ref.Name != name {
				continue
			}
			c.queue = append(c.queue, templateKey{n, name})
		}
	}
}

func (c *compiler) scope(name string) *scope {
	s, ok := c.scopes[name]
	if !ok {
		s = c.b.scope(name)
		c.scopes[name] = s
	}
	return s
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func sortedNames(hooks LifecycleHooks) []string { return slices.Sorted(maps.Keys(hooks)) }

// raw gives a value's JSON.
func raw(v any) (program.JSON, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return data, nil
}
