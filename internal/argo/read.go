package argo

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// read decodes a document by its kind.
func (b *Bundle) read(d *document) {
	if d.tree.kind != mapNode {
		b.problem(d, Problem{Message: fmt.Sprintf("must be an object with apiVersion, kind, metadata and spec, not %s", d.tree.kind)})
		return
	}
	version, kind := d.tree.str("apiVersion"), d.tree.str("kind")
	d.kind = kind
	for _, field := range []string{"apiVersion", "kind"} {
		if d.tree.str(field) != "" {
			continue
		}
		hint := ""
		for _, k := range d.tree.keys {
			if strings.HasSuffix(k, field) || strings.EqualFold(k, field) {
				hint = fmt.Sprintf("; did you mean %s where it says %s?", field, k)
			}
		}
		if v := d.tree.get(field); v != nil {
			b.problem(d, Problem{Path: field, Message: fmt.Sprintf("must be a string, not %s", v.kind)})
			continue
		}
		b.problem(d, Problem{Path: field, Message: "is missing; every object needs apiVersion and kind" + hint})
	}
	if version == "" || kind == "" {
		return
	}
	switch version {
	case APIVersion:
		b.readArgo(d)
	case "v1":
		b.readCore(d)
	default:
		if strings.HasPrefix(version, Group+"/") {
			b.problem(d, Problem{Path: "apiVersion", Message: fmt.Sprintf("%s is not a version of Argo's API; write %s", version, APIVersion)})
			return
		}
		d.name = d.tree.get("metadata").str("name")
	}
}

func (b *Bundle) readArgo(d *document) {
	var meta *metav1.ObjectMeta
	switch d.kind {
	case "Workflow":
		o := &Workflow{}
		d.object, meta = o, &o.ObjectMeta
	case "WorkflowTemplate", "ClusterWorkflowTemplate":
		o := &WorkflowTemplate{}
		d.object, meta = o, &o.ObjectMeta
	case "CronWorkflow":
		o := &CronWorkflow{}
		d.object, meta = o, &o.ObjectMeta
	case "WorkflowEventBinding":
		o := &WorkflowEventBinding{}
		d.object, meta = o, &o.ObjectMeta
	default:
		o := &otherObject{}
		d.object, meta = o, &o.ObjectMeta
		known := map[string]bool{"WorkflowTaskSet": true, "WorkflowTaskResult": true, "WorkflowArtifactGCTask": true, "EventSource": true, "EventBus": true, "Sensor": true}
		if !known[d.kind] {
			b.problem(d, Problem{Path: "kind", Message: fmt.Sprintf("%q is not a kind of Argo's API; it has Workflow, WorkflowTemplate, ClusterWorkflowTemplate, CronWorkflow and WorkflowEventBinding", d.kind)})
			return
		}
	}
	if status := d.tree.get("status"); status != nil {
		status.dropped = true // what became of an object before is not what is to be done
	}
	b.decode(d)
	d.name = meta.Name
	if o, ok := d.object.(*WorkflowTemplate); ok {
		b.addTemplate(d, o)
	}
}

// readCore reads the companions of workflows; other kinds of Kubernetes objects are left alone.
func (b *Bundle) readCore(d *document) {
	switch d.kind {
	case "ConfigMap":
		o := &corev1.ConfigMap{}
		d.object = o
		b.decode(d)
		d.name = o.Name
		if b.named(d) {
			b.ConfigMaps[o.Name] = o.Data
		}
	case "Secret":
		o := &corev1.Secret{}
		d.object = o
		b.decode(d)
		d.name = o.Name
		if b.named(d) {
			values := map[string]string{}
			for k, v := range o.Data {
				values[k] = string(v)
			}
			maps.Copy(values, o.StringData)
			b.Secrets[o.Name] = values
		}
	case "PersistentVolumeClaim":
		o := &corev1.PersistentVolumeClaim{}
		d.object = o
		b.decode(d)
		d.name = o.Name
	default:
		d.name = d.tree.get("metadata").str("name")
	}
}

func (b *Bundle) decode(d *document) {
	dec := decoder{
		report: func(at mark, path, format string, args ...any) {
			b.problem(d, Problem{Line: at.line, Column: at.column, Path: path, Message: fmt.Sprintf(format, args...)})
		},
		warn: func(at mark, path, format string, args ...any) {
			b.problem(d, Problem{Line: at.line, Column: at.column, Path: path, Warning: true, Message: fmt.Sprintf(format, args...)})
		},
	}
	dec.decode(d.tree, "", d.object)
	d.dropped, d.missing = dec.dropped, dec.missing
}

// named reports an object that nothing can refer to, as it has no name.
func (b *Bundle) named(d *document) bool {
	if d.name == "" {
		b.problem(d, Problem{Path: "metadata.name", Message: fmt.Sprintf("is missing; a %s is referred to by its name", d.kind)})
	}
	return d.name != ""
}

func (b *Bundle) addTemplate(d *document, o *WorkflowTemplate) {
	b.origin[o] = d
	if o.Name == "" && o.GenerateName != "" || !b.named(d) {
		return
	}
	into := b.Templates
	if d.kind == "ClusterWorkflowTemplate" {
		into = b.ClusterTemplates
	}
	if _, ok := into[o.Name]; ok && d.main {
		b.problem(d, Problem{Path: "metadata.name", Message: fmt.Sprintf("there is another %s of the name %s; give each its own", d.kind, o.Name)})
		return
	}
	if _, ok := into[o.Name]; !ok {
		into[o.Name] = o // the main file goes before the others
	}
}

// choose finds the object to run: a Workflow of the main file, else a CronWorkflow, else the first template that has
// an entrypoint, else the first template.
func (b *Bundle) choose() {
	rank := func(d *document) int {
		switch o := d.object.(type) {
		case *Workflow:
			return 4
		case *CronWorkflow:
			return 3
		case *WorkflowTemplate:
			if o.Spec.Entrypoint != "" {
				return 2
			}
			return 1
		}
		return 0
	}
	best := 0
	for _, d := range b.docs {
		if d.main && rank(d) > best {
			b.run, best = d, rank(d)
		}
	}
}

// Name is the name of the object to run, or its generateName.
func (b *Bundle) Name() string {
	if b.run == nil {
		return ""
	}
	meta := b.run.tree.get("metadata")
	if name := meta.str("name"); name != "" {
		return name
	}
	return meta.str("generateName")
}
