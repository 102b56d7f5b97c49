package argo

import (
	"fmt"
	"maps"

	"github.com/sluice-ml/sluice/internal/program"
)

// template compiles a template that is in the queue, once. A template that does not exist is a fact that shows when
// the call is entered, as its name may never be reached; Validate reports those that are plain mistakes.
func (c *compiler) template(key templateKey) error {
	name := key.String()
	if _, done := c.p.Templates[name]; done {
		return nil
	}
	s := c.scope(key.scope)
	if s == nil {
		return nil
	}
	src, ok := s.templates[key.name]
	if !ok {
		return nil
	}
	t, err := c.compileTemplate(src.t, key.scope, name)
	if err != nil {
		return fmt.Errorf("%s%s: %w", src.doc.prefix, src.path, err)
	}
	c.p.Templates[name] = t
	return nil
}

// compileTemplate compiles a template; calls in it are bound in the given scope.
func (c *compiler) compileTemplate(written *Template, in, key string) (*program.Template, error) {
	t, err := c.withDefaults(written)
	if err != nil {
		return nil, err
	}
	source, err := raw(t)
	if err != nil {
		return nil, err
	}
	out := &program.Template{
		Key: key, Name: t.Name, Inputs: inputs(t.Inputs), Outputs: outputs(t.Outputs, t.Inputs), Source: source,
		Timeout: t.Timeout, Deadline: t.ActiveDeadlineSeconds.text(), Parallelism: deref(t.Parallelism),
		Locks: locks(t.Synchronization), Daemon: deref(t.Daemon),
	}
	out.Retry = retry(t.RetryStrategy)
	if out.Retry == nil {
		out.Retry = retry(c.r.spec.RetryStrategy) // the workflow's is for every template that has none
	}
	if m := t.Memoize; m != nil {
		out.Cache = &program.Cache{Scheme: "key", Key: m.Key, MaxAge: m.MaxAge}
		if m.Cache != nil && m.Cache.ConfigMap != nil {
			out.Cache.Name = m.Cache.ConfigMap.Name
		}
	}
	c.templateMetadata(t, out)
	switch t.kind() {
	case "steps":
		out.Graph, err = c.steps(t, in, key)
	case "dag":
		out.Graph, err = c.dag(t, in, key)
	case "suspend":
		out.Suspend = &program.Suspend{Duration: t.Suspend.Duration}
	default:
		out.Task, err = c.body(t)
	}
	if err != nil {
		return nil, err
	}
	c.captureVolumes(out)
	if out.Graph != nil {
		c.wantResults(out)
	}
	return out, nil
}

// templateMetadata sets the labels and annotations of a task: the workflow's for all pods, then the template's own.
func (c *compiler) templateMetadata(t *Template, out *program.Template) {
	if t.Steps != nil || t.DAG != nil {
		return
	}
	labels, annotations := map[string]string{}, map[string]string{}
	if m := c.r.spec.PodMetadata; m != nil {
		maps.Copy(labels, m.Labels)
		maps.Copy(annotations, m.Annotations)
	}
	maps.Copy(labels, t.Metadata.Labels)
	maps.Copy(annotations, t.Metadata.Annotations)
	if len(labels) > 0 {
		out.Labels = labels
	}
	if len(annotations) > 0 {
		out.Annotations = annotations
	}
}

// wantResults notes which templates must keep their standard output: those that a call runs whose result the graph's
// own text refers to. A call by a computed name may lead to any.
func (c *compiler) wantResults(t *program.Template) {
	wanted := resultNames(t.Source)
	for i := range t.Graph.Calls {
		call := &t.Graph.Calls[i]
		if !wanted[call.Name] {
			continue
		}
		if call.Template.Inline != nil {
			if call.Template.Inline.Task != nil {
				call.Template.Inline.Task.Result = true
			}
			continue
		}
		c.results[call.Template.Scope+"/"+call.Template.Name] = true
	}
}

// locks lists the semaphores and mutexes in the order in which they are taken.
func locks(s *Synchronization) []program.Lock {
	if s == nil {
		return nil
	}
	var out []program.Lock
	for _, sem := range s.Semaphores {
		l := program.Lock{Semaphore: true, Namespace: sem.Namespace}
		if ref := sem.ConfigMapKeyRef; ref != nil {
			l.Name, l.Key = ref.Name, ref.Key
		}
		if sem.Database != nil {
			l.Database, l.Name = true, sem.Database.Key
		}
		out = append(out, l)
	}
	for _, m := range s.Mutexes {
		out = append(out, program.Lock{Namespace: m.Namespace, Name: m.Name, Database: m.Database})
	}
	return out
}

func retry(r *RetryStrategy) *program.Retry {
	if r == nil {
		return nil
	}
	out := &program.Retry{Limit: r.Limit.text(), Policy: r.RetryPolicy, Expression: r.Expression}
	if out.Policy == "" {
		out.Policy = "OnFailure"
		if r.Expression != "" {
			out.Policy = "Always"
		}
	}
	if b := r.Backoff; b != nil {
		out.Backoff = &program.Backoff{Duration: string(b.Duration), Factor: b.Factor.text(), Cap: string(b.Cap), MaxDuration: string(b.MaxDuration)}
	}
	return out
}
