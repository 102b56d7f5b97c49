package argo

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// templateSource is a template and where it was written.
type templateSource struct {
	t    *Template
	doc  *document
	path string
}

// sound says whether everything in the template could be used.
func (s templateSource) sound() bool { return s.doc.sound() && s.doc.whole(s.path) }

// scope is the templates that can be called by name alone.
type scope struct {
	name string
	// doc is the WorkflowTemplate's; nil for the local scope.
	doc       *document
	templates map[string]templateSource
	// order is the names in the order in which they were written.
	order []string
}

func (s *scope) add(doc *document, path string, templates []Template) {
	for i := range templates {
		name := templates[i].Name
		if _, ok := s.templates[name]; ok {
			continue
		}
		s.templates[name] = templateSource{&templates[i], doc, index(path, i)}
		s.order = append(s.order, name)
	}
}

// localScope is the scope of the workflow's own templates; the others are "namespaced/NAME" and "cluster/NAME".
const localScope = "local"

// scopeName is the scope that a reference to a WorkflowTemplate leads to.
func scopeName(name string, cluster bool) string {
	if cluster {
		return "cluster/" + name
	}
	return "namespaced/" + name
}

// scope finds a scope other than the local one; nil where no such template was loaded.
func (b *Bundle) scope(name string) *scope {
	kind, object, _ := strings.Cut(name, "/")
	from := b.Templates
	if kind == "cluster" {
		from = b.ClusterTemplates
	}
	o := from[object]
	if o == nil {
		return nil
	}
	s := &scope{name: name, doc: b.origin[o], templates: map[string]templateSource{}}
	s.add(b.origin[o], "spec.templates", o.Spec.Templates)
	return s
}

// runnable is the object to run as a workflow: its metadata, its spec with what it refers to merged in, and its
// templates.
type runnable struct {
	doc  *document
	meta metav1.ObjectMeta
	// own is the spec as written, at path; spec has the referred template's merged in.
	own  *WorkflowSpec
	path string
	spec *WorkflowSpec
	// ref is the WorkflowTemplate that it refers to, nil for none.
	ref   *WorkflowTemplate
	local *scope
	// extra is what a CronWorkflow adds to its workflows.
	extraLabels, extraAnnotations map[string]string
}

// resolve finds out what a document would run. The problem, where there is one, is on the reference.
func (b *Bundle) resolve(d *document) (*runnable, *Problem) {
	r := &runnable{doc: d, path: "spec", local: &scope{name: localScope, templates: map[string]templateSource{}}}
	switch o := d.object.(type) {
	case *Workflow:
		r.meta, r.own = o.ObjectMeta, &o.Spec
	case *WorkflowTemplate:
		r.meta, r.own = o.ObjectMeta, &o.Spec
	case *CronWorkflow:
		r.meta, r.own, r.path = o.ObjectMeta, &o.Spec.WorkflowSpec, "spec.workflowSpec"
		r.meta.Labels, r.meta.Annotations = nil, nil
		if m := o.Spec.WorkflowMetadata; m != nil {
			r.extraLabels, r.extraAnnotations = m.Labels, m.Annotations
		}
	default:
		return nil, &Problem{Path: "kind", Message: fmt.Sprintf("a %s cannot be run; give a Workflow, WorkflowTemplate, ClusterWorkflowTemplate or CronWorkflow", d.kind)}
	}
	r.spec = r.own
	r.local.add(d, r.path+".templates", r.own.Templates)
	ref := r.own.WorkflowTemplateRef
	if ref == nil {
		return r, nil
	}
	from, kind := b.Templates, "WorkflowTemplate"
	if ref.ClusterScope {
		from, kind = b.ClusterTemplates, "ClusterWorkflowTemplate"
	}
	r.ref = from[ref.Name]
	if r.ref == nil {
		return r, &Problem{Path: join(r.path, "workflowTemplateRef.name"),
			Message: fmt.Sprintf("there is no %s %q among the files; give it with -f FILE or --templates FOLDER", kind, ref.Name), InvalidSpec: true,
			Upstream: fmt.Sprintf("%ss.argoproj.io %q not found", strings.ToLower(kind), ref.Name)}
	}
	spec, err := mergeSpecs(&r.ref.Spec, r.own)
	if err != nil {
		return r, &Problem{Path: join(r.path, "workflowTemplateRef"), Message: fmt.Sprintf("cannot be merged with the %s: %v", kind, err)}
	}
	r.spec = spec
	r.local.add(b.origin[r.ref], "spec.templates", r.ref.Spec.Templates)
	return r, nil
}
