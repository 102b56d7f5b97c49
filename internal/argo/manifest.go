package argo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/program"
)

// Workflow gives the object to run as a Workflow as Argo's tools would submit it: a template by reference, a
// CronWorkflow's spec with its metadata, each with the options' values. Its status has no more than the spec that it
// takes from a template. The result shares nothing with the bundle. The error says that nothing can be run.
func (b *Bundle) Workflow(opts Options) (*Workflow, error) {
	if b.run == nil {
		return nil, fmt.Errorf("%s holds nothing that can be run", b.mainFile())
	}
	r, problem := b.resolve(b.run)
	if problem != nil {
		p := *problem
		p.File = b.run.file
		return nil, Problems{p}
	}
	w := &Workflow{TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: "Workflow"}}
	w.Labels, w.Annotations = map[string]string{}, map[string]string{}
	stored := r.ref
	switch o := b.run.object.(type) {
	case *WorkflowTemplate:
		cluster := b.run.kind == "ClusterWorkflowTemplate"
		w.GenerateName = o.Name + "-"
		w.Spec.WorkflowTemplateRef = &WorkflowTemplateRef{Name: o.Name, ClusterScope: cluster}
		label := labelTemplate
		if cluster {
			label = labelClusterTemplate
		}
		w.Labels[label] = o.Name
		stored = o
	case *CronWorkflow:
		w.GenerateName = o.Name + "-"
		w.Labels[labelCron] = o.Name
		w.Spec = *r.own
	default:
		w.ObjectMeta = *r.meta.DeepCopy()
		w.Spec = *r.own
	}
	if w.Labels == nil {
		w.Labels = map[string]string{}
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	maps.Copy(w.Labels, r.extraLabels)
	maps.Copy(w.Annotations, r.extraAnnotations)
	applyOptions(w, opts)
	if w.Name == "" && w.GenerateName == "" {
		w.GenerateName = "workflow-"
	}
	if stored != nil {
		w.Status = &WorkflowStatus{StoredWorkflowTemplateSpec: r.spec}
	}
	return clone(w)
}

// applyOptions puts what a submission says into the object.
func applyOptions(w *Workflow, opts Options) {
	if opts.Name != "" {
		w.Name, w.GenerateName = opts.Name, ""
	} else if opts.GenerateName != "" {
		w.Name, w.GenerateName = "", opts.GenerateName
	}
	w.Spec.Entrypoint = firstOf(opts.Entrypoint, w.Spec.Entrypoint)
	w.Spec.ServiceAccountName = firstOf(opts.ServiceAccount, w.Spec.ServiceAccountName)
	if opts.Resubmitted {
		w.Spec.Shutdown = ""
	}
	maps.Copy(w.Labels, opts.Labels)
	maps.Copy(w.Annotations, opts.Annotations)
	w.Spec.Arguments.Parameters = withValues(w.Spec.Arguments.Parameters, opts.Parameters)
	w.Spec.Arguments.Artifacts = withLocations(w.Spec.Arguments.Artifacts, opts.Artifacts)
}

// withValues gives arguments with the values that a submission, or a retry, gives them.
func withValues(arguments []Parameter, given map[string]string) []Parameter {
	out := slices.Clone(arguments)
	for _, name := range sortedKeys(given) {
		value := AnyString(given[name])
		i := slices.IndexFunc(out, func(p Parameter) bool { return p.Name == name })
		if i < 0 {
			i, out = len(out), append(out, Parameter{Name: name})
		}
		out[i].Value, out[i].ValueFrom = &value, nil
	}
	return out
}

// withLocations gives artifact arguments with the places that a submission gives them, as far as Argo has words for them.
func withLocations(arguments []Artifact, given map[string][]program.Artifact) []Artifact {
	out := slices.Clone(arguments)
	for _, name := range sortedKeys(given) {
		i := slices.IndexFunc(out, func(a Artifact) bool { return a.Name == name })
		if i < 0 {
			i, out = len(out), append(out, Artifact{Name: name})
		}
		for _, a := range given[name] {
			var l ArtifactLocation
			if json.Unmarshal(a.Store, &l) == nil {
				out[i].ArtifactLocation, out[i].From, out[i].FromExpression, out[i].FromMetadata = l, "", "", nil
			}
		}
	}
	return out
}

// clone copies an object by way of its JSON.
func clone[T any](v *T) (*T, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal(data, out)
}
