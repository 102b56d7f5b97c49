package argo

import (
	"fmt"
	"slices"
	"strings"
)

// Validate gives everything that is wrong with the object to run and what it refers to, without the options' values
// being known to Argo's own rules: a parameter that the submission gives needs no value in the manifest.
func (b *Bundle) Validate(opts Options) Problems {
	if b.run == nil {
		return append(b.reading(nil), Problem{File: b.mainFile(), Message: "holds nothing that can be run; give a Workflow, WorkflowTemplate, ClusterWorkflowTemplate or CronWorkflow"})
	}
	var out Problems
	for _, d := range b.docs {
		if _, ok := d.object.(*Workflow); ok && d.main && d != b.run {
			out = append(out, Problem{File: d.file, Line: d.tree.line, Column: d.tree.column, Path: strings.TrimSuffix(d.prefix, ": "),
				Message: "is another Workflow; one is run at a time, give each its own file"})
		}
	}
	v := &validator{b: b, opts: opts, done: map[string]bool{}, used: map[*document]bool{}}
	v.object(b.run)
	v.runnable(b.run)
	return slices.Concat(b.reading(v.used), out, v.problems)
}

// Lint gives everything that is wrong with the objects of the main file and what they refer to, whether or not one of
// them can be run. Arguments need not have values yet; of the options only what is given to the run counts.
func (b *Bundle) Lint(opts Options) Problems {
	var out Problems
	used := map[*document]bool{}
	for _, d := range b.docs {
		if !d.main || !strings.HasPrefix(d.tree.str("apiVersion"), Group+"/") {
			continue
		}
		v := &validator{b: b, lint: true, opts: Options{Parameters: opts.Parameters, Artifacts: opts.Artifacts}, done: map[string]bool{}, used: used}
		v.object(d)
		switch d.object.(type) {
		case *Workflow, *CronWorkflow, *WorkflowTemplate:
			v.runnable(d)
		}
		out = append(out, v.problems...)
	}
	return append(b.reading(used), out...)
}

func (b *Bundle) mainFile() string {
	if len(b.docs) == 0 {
		return ""
	}
	return b.docs[0].file
}

// validator collects what is wrong with one object and the templates that it leads to.
type validator struct {
	b    *Bundle
	opts Options
	// lint allows arguments without a value. soft makes all problems warnings.
	lint     bool
	soft     bool
	problems Problems

	r      *runnable
	global *globals
	// used are the documents that the object refers to.
	used map[*document]bool
	// done are templates that have been checked, by key.
	done  map[string]bool
	queue []templateKey
	// scopes and merged cache lookups, and templates with their defaults.
	scopes map[string]*scope
	merged map[*Template]*Template
}

// withDefaults gives a template with the workflow's templateDefaults. Where they cannot be merged it is as written:
// compiling it says why.
func (v *validator) withDefaults(t *Template) *Template {
	m, ok := v.merged[t]
	if !ok {
		var err error
		if m, err = withDefaults(t, v.r.spec.TemplateDefaults); err != nil {
			m = t
		}
		if v.merged == nil {
			v.merged = map[*Template]*Template{}
		}
		v.merged[t] = m
	}
	return m
}

// place is where a problem is: a path in a document, and how Argo's messages name it.
type place struct {
	doc  *document
	path string
	name string
}

// at goes to a field of the place. Argo's messages name it the same way.
func (p place) at(field string) place {
	p.path = join(p.path, field)
	p.name = join(p.name, field)
	return p
}

// item goes to an entry of a list.
func (p place) item(i int) place {
	p.path, p.name = index(p.path, i), index(p.name, i)
	return p
}

func (v *validator) add(p place, problem Problem) {
	if len(v.problems) >= maxProblems {
		return
	}
	if v.soft {
		problem.Warning, problem.InvalidSpec, problem.Upstream = true, false, ""
	}
	if p.doc.known(p.path) {
		return
	}
	problem.File, problem.Path = p.doc.file, p.path
	problem.place(p.doc.tree)
	problem.Path = p.doc.prefix + p.path
	v.problems = append(v.problems, problem)
}

// refuse reports what an API server would refuse.
func (v *validator) refuse(p place, format string, args ...any) {
	v.add(p, Problem{Message: fmt.Sprintf(format, args...)})
}

// invalid reports what Argo finds once the workflow has been accepted; upstream is its message after "invalid spec: ".
func (v *validator) invalid(p place, upstream, format string, args ...any) {
	v.add(p, Problem{InvalidSpec: true, Upstream: upstream, Message: fmt.Sprintf(format, args...)})
}

// late warns of what Argo finds only when it gets there, so that the workflow starts all the same and may never get there.
func (v *validator) late(p place, format string, args ...any) {
	v.add(p, Problem{Warning: true, Message: fmt.Sprintf(format, args...)})
}

// scope finds a scope by its name; nil where it was not loaded.
func (v *validator) scope(name string) *scope {
	if name == localScope {
		return v.r.local
	}
	if v.scopes == nil {
		v.scopes = map[string]*scope{}
	}
	s, ok := v.scopes[name]
	if !ok {
		s = v.b.scope(name)
		v.scopes[name] = s
		if s != nil {
			v.used[s.doc] = true
		}
	}
	return s
}

// hasTag says whether a text holds a placeholder, so that what it will be is not known yet.
func hasTag(s string) bool { return strings.Contains(s, "{{") }
