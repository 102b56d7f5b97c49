package argo

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	fieldNameForm     = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9]*$`)
	parameterNameForm = regexp.MustCompile(`^[-a-zA-Z0-9_]+$`)
)

const maxFieldName = 128

// fieldName checks the name of a template, step or task.
func (v *validator) fieldName(p place, name string) {
	switch {
	case name == "":
		v.invalid(p, p.name+" is required", "is missing")
	case hasTag(name):
	case len(name) > maxFieldName:
		v.invalid(p, fmt.Sprintf("%s: '%s' is invalid: must be no more than %d characters", p.name, name, maxFieldName), "has %d characters; at most %d are allowed", len(name), maxFieldName)
	case !fieldNameForm.MatchString(name):
		v.invalid(p, fmt.Sprintf("%s: '%s' is invalid: name must consist of alpha-numeric characters or '-', and must start with an alpha-numeric character", p.name, name),
			"%s is not a valid name; use letters, digits and dashes, and begin with a letter or digit", shorten(name))
	}
}

// templates checks all templates in the queue and those that they lead to.
func (v *validator) templates() {
	for len(v.queue) > 0 {
		key := v.queue[0]
		v.queue = v.queue[1:]
		if v.done[key.String()] {
			continue
		}
		v.done[key.String()] = true
		s := v.scope(key.scope)
		if s == nil {
			continue
		}
		if src, ok := s.templates[key.name]; ok && src.sound() {
			v.template(place{doc: src.doc, path: src.path, name: "templates." + key.name}, src.t, key.scope, nil)
		}
	}
}

// target checks what a call, or the workflow itself, refers to, and that the arguments suffice. It gives the template,
// or nil where that is not known. The place is the call's; upstream's messages about it begin with prefix.
func (v *validator) target(p place, prefix, in, name string, ref *TemplateRef, inline *Template, args *Arguments) *Template {
	if prefix != "" {
		prefix += " "
	}
	if inline != nil {
		v.supplied(p, prefix, inline, args)
		return inline
	}
	at := p
	if strings.HasSuffix(p.path, "]") || ref != nil {
		at = p.at("template")
	}
	key := templateKey{in, name}
	what := "template name '" + name + "' undefined"
	if ref != nil {
		at = p.at("templateRef")
		switch {
		case name != "":
			v.invalid(p, prefix+"template name cannot be specified with templateRef", "has both template and templateRef; keep one")
			return nil
		case ref.Name == "":
			v.invalid(at.at("name"), prefix+"resource name is required", "is missing; name the WorkflowTemplate")
			return nil
		case ref.Template == "":
			v.invalid(at.at("template"), prefix+"template name is required", "is missing; name a template of %s", ref.Name)
			return nil
		}
		key = templateKey{scopeName(ref.Name, ref.ClusterScope), ref.Template}
		what = fmt.Sprintf("template reference %s.%s not found", ref.Name, ref.Template)
	}
	if hasTag(key.scope + key.name) {
		if ref == nil {
			v.invalid(at, prefix+what, "%s is not known before the run, and must be; only a templateRef may have placeholders", shorten(name))
		}
		return nil
	}
	s := v.scope(key.scope)
	if s == nil {
		kind := "WorkflowTemplate"
		if ref.ClusterScope {
			kind = "ClusterWorkflowTemplate"
		}
		v.invalid(at.at("name"), prefix+what, "there is no %s %q among the files; give it with -f FILE or --templates FOLDER", kind, ref.Name)
		return nil
	}
	src, ok := s.templates[key.name]
	if !ok {
		if ref != nil {
			at = at.at("template")
		}
		v.invalid(at, prefix+what, "there is no template %q%s", key.name, v.alternatives(s, key))
		return nil
	}
	v.queue = append(v.queue, key)
	if !src.sound() {
		return nil // what it takes and gives is not known
	}
	t := v.withDefaults(src.t)
	v.supplied(p, prefix+"templates."+t.Name+" ", t, args)
	return t
}

// alternatives says which templates there are.
func (v *validator) alternatives(s *scope, key templateKey) string {
	known := map[string]bool{}
	for _, n := range s.order {
		known[n] = true
	}
	if best := nearest(key.name, known); best != "" {
		return fmt.Sprintf("; did you mean %s?", best)
	}
	where := "here"
	if key.scope != localScope {
		where = "in " + key.scope[strings.IndexByte(key.scope, '/')+1:]
	}
	if len(s.order) == 0 {
		return "; there are none " + where
	}
	names := slices.Clone(s.order)
	if len(names) > 10 {
		names = append(names[:10], "...")
	}
	return fmt.Sprintf("; there is %s %s", strings.Join(names, ", "), where)
}

// supplied checks that a call gives all that its template must be given. Nil arguments may be anything.
func (v *validator) supplied(p place, prefix string, t *Template, args *Arguments) {
	if args == nil {
		return
	}
	for _, in := range t.Inputs.Parameters {
		if in.Value != nil || in.Default != nil || in.ValueFrom != nil {
			continue
		}
		if !slices.ContainsFunc(args.Parameters, func(a Parameter) bool { return a.Name == in.Name }) {
			v.invalid(p, fmt.Sprintf("%sinputs.parameters.%s was not supplied", prefix, in.Name),
				"gives no value for the parameter %s of %s; add it to arguments.parameters, or give the input a default", in.Name, t.Name)
		}
	}
	for _, in := range t.Inputs.Artifacts {
		if in.Optional || located(in) {
			continue
		}
		if !slices.ContainsFunc(args.Artifacts, func(a Artifact) bool { return a.Name == in.Name }) {
			v.invalid(p, fmt.Sprintf("%sinputs.artifacts.%s was not supplied", prefix, in.Name),
				"gives no artifact %s to %s; add it to arguments.artifacts, or make the input optional", in.Name, t.Name)
		}
	}
}

// template checks one template. Outer is set for one that is written inside a call.
func (v *validator) template(p place, t *Template, in string, outer *variables) {
	switch kinds := t.kinds(); len(kinds) {
	case 1:
	case 0:
		v.invalid(p, p.name+" template type unspecified. choose one of: container, containerSet, steps, script, resource, dag, suspend, template, template ref",
			"says nothing to do; give it a container, script, steps, dag, containerSet, resource, suspend, http, data or plugin")
		return
	default:
		v.refuse(p, "is of several kinds (%s); keep one", strings.Join(kinds, ", "))
		return
	}
	vars := &variables{v: v, t: t, outer: outer}
	v.inputs(p.at("inputs"), t)
	v.outputs(p.at("outputs"), t)
	v.retry(p.at("retryStrategy"), t.RetryStrategy)
	v.metrics(p.at("metrics"), t.Metrics)
	v.locks(p.at("synchronization"), t.Synchronization)
	v.times(p, t)
	v.podOnly(p, t)
	switch t.kind() {
	case "steps":
		v.steps(p, t, in, vars)
	case "dag":
		v.dag(p, t, in, vars)
	default:
		v.leaf(p, t)
		if node, ok := p.doc.tree.find(p.path); ok {
			node.texts(p.path, func(path, text string) { v.text(place{doc: p.doc, path: path, name: p.name}, p.name+":", text, vars) })
		}
	}
}

// leafKinds are the kinds that are not graphs.
func (t *Template) isGraph() bool { return t.Steps != nil || t.DAG != nil }

// times checks durations and limits.
func (v *validator) times(p place, t *Template) {
	if t.Timeout != "" {
		switch _, err := strconv.Atoi(t.Timeout); {
		case t.isGraph():
			v.refuse(p.at("timeout"), "is not possible for steps and dag; give each of their templates its own")
		case t.Suspend != nil:
			v.refuse(p.at("timeout"), "is not possible for suspend; give it a duration, or activeDeadlineSeconds")
		case err == nil:
			v.invalid(p.at("timeout"), t.Name+" has invalid duration format in timeout", "%q has no unit; write %ss", t.Timeout, t.Timeout)
		case !hasTag(t.Timeout) && !validDuration(t.Timeout):
			v.late(p.at("timeout"), "%s is not a duration; write one like 90s, 10m or 2h", shorten(t.Timeout))
		}
	}
	if t.PendingTimeout != "" && t.isGraph() {
		v.invalid(p.at("pendingTimeout"), "template doesn't support pendingTimeout field", "is not possible for steps and dag")
	}
	if d := t.ActiveDeadlineSeconds; d != nil {
		n, err := strconv.ParseInt(string(*d), 10, 64)
		switch {
		case t.isGraph():
			v.refuse(p.at("activeDeadlineSeconds"), "is only possible for a task, not for steps and dag")
		case err != nil && !hasTag(string(*d)) || err == nil && n < 0:
			v.invalid(p.at("activeDeadlineSeconds"), p.name+".activeDeadlineSeconds must be a positive integer > 0 or an argo variable",
				"must be a positive whole number of seconds or a placeholder")
		}
	}
	if t.Parallelism != nil {
		switch {
		case !t.isGraph():
			v.invalid(p.at("parallelism"), p.name+".parallelism is only valid for steps and dag templates", "is only possible for steps and dag")
		case *t.Parallelism < 1:
			v.refuse(p.at("parallelism"), "must be at least 1")
		}
	}
	if s := t.Suspend; s != nil && s.Duration != "" && !hasTag(s.Duration) && !validDuration(s.Duration) {
		v.late(p.at("suspend.duration"), "%s is not a duration; write seconds (20), or one like 90s, 10m or 2h", shorten(s.Duration))
	}
}

// retry checks a retry strategy.
func (v *validator) retry(p place, r *RetryStrategy) {
	if r == nil {
		return
	}
	v.oneOf(p.at("retryPolicy"), r.RetryPolicy, "Always", "OnFailure", "OnError", "OnTransientError")
	if l := r.Limit.text(); l != "" && !hasTag(l) {
		if n, err := strconv.Atoi(l); err != nil || n < 0 {
			v.late(p.at("limit"), "must be a whole number that is not negative, or a placeholder")
		}
	}
	if b := r.Backoff; b != nil {
		for field, d := range map[string]AnyString{"duration": b.Duration, "maxDuration": b.MaxDuration, "cap": b.Cap} {
			if d != "" && !hasTag(string(d)) && !validDuration(string(d)) {
				v.late(p.at("backoff").at(field), "%s is not a duration; write seconds (20), or one like 90s, 10m or 2h", shorten(string(d)))
			}
		}
		if f := b.Factor.text(); f != "" && !hasTag(f) {
			if n, err := strconv.ParseFloat(f, 64); err != nil || n < 0 {
				v.late(p.at("backoff.factor"), "must be a number that is not negative, or a placeholder")
			}
		}
	}
	v.expression(p.at("expression"), r.Expression)
}

// locks checks mutexes and semaphores.
func (v *validator) locks(p place, s *Synchronization) {
	for i, m := range deref(s).Mutexes {
		if m.Name == "" {
			v.late(p.at("mutexes").item(i).at("name"), "is missing")
		}
	}
	for i, sem := range deref(s).Semaphores {
		at := p.at("semaphores").item(i)
		switch {
		case sem.ConfigMapKeyRef == nil && sem.Database == nil:
			v.late(at, "must say where its size is: configMapKeyRef with name and key, or database")
		case sem.ConfigMapKeyRef != nil && sem.Database != nil:
			v.late(at, "has both configMapKeyRef and database; keep one")
		case sem.ConfigMapKeyRef != nil && sem.ConfigMapKeyRef.Name == "":
			v.late(at.at("configMapKeyRef.name"), "is missing; name the ConfigMap that holds the size")
		}
	}
}

// metrics checks names and values of metrics.
func (v *validator) metrics(p place, m *Metrics) {
	for i, x := range deref(m).Prometheus {
		at := p.at("prometheus").item(i)
		if !metricNameForm.MatchString(x.Name) {
			v.refuse(at.at("name"), "%s is not a valid metric name; use letters, digits and underscores, and do not begin with a digit", shorten(x.Name))
		}
		if x.Help == "" {
			v.refuse(at.at("help"), "must say what the metric means")
		}
		for j, l := range x.Labels {
			if !metricNameForm.MatchString(l.Key) {
				v.refuse(at.at("labels").item(j).at("key"), "%s is not a valid label; use letters, digits and underscores", shorten(l.Key))
			}
		}
		kinds := 0
		if x.Counter != nil {
			kinds++
			v.metricValue(at.at("counter.value"), x.Counter.Value)
		}
		if x.Histogram != nil {
			kinds++
			v.metricValue(at.at("histogram.value"), x.Histogram.Value)
		}
		if x.Gauge != nil {
			kinds++
			v.metricValue(at.at("gauge.value"), x.Gauge.Value)
			v.oneOf(at.at("gauge.operation"), x.Gauge.Operation, "Set", "Add", "Sub")
			if deref(x.Gauge.Realtime) && strings.Contains(x.Gauge.Value, "resourcesDuration.") {
				v.refuse(at.at("gauge.value"), "cannot be resourcesDuration in a real-time gauge, as that is known at the end only")
			}
		}
		if kinds != 1 {
			v.late(at, "must have exactly one of counter, gauge and histogram")
		}
	}
}

func (v *validator) metricValue(p place, value string) {
	if value == "" {
		v.refuse(p, "must not be empty")
	}
}
