package kfp

import (
	"fmt"
	"maps"

	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// workspacePath is where a run's workspace is mounted, workspaceVolume the name of its volume.
const (
	workspacePath   = kfpexpr.WorkspacePath
	workspaceVolume = "kfp-workspace"
)

// kubernetesOf gives the platform settings of a component; never nil.
func (c *compiler) kubernetesOf(spec *ComponentSpec) *KubernetesConfig {
	if k := c.pipeline.Platform.Kubernetes.DeploymentSpec.Executors[spec.ExecutorLabel]; k != nil {
		return k
	}
	return &KubernetesConfig{}
}

// platform puts a component's platform settings into its template: those that mean something everywhere into the
// neutral fields, and all of them into a pod patch for Kubernetes.
func (c *compiler) platform(t *program.Template, spec *ComponentSpec) {
	k := c.kubernetesOf(spec)
	s := &settings{config: k, component: spec, body: t.Task, set: appliesToTask(spec), pod: map[string]any{}, main: map[string]any{}}
	s.apply()
	s.passContainer(c.pipeline.Spec.DeploymentSpec.Executors[spec.ExecutorLabel].Container)
	if !s.set["RESOURCES"] || !s.set["ENV"] {
		s.withhold()
	}
	if c.pipeline.Platform.Kubernetes.PipelineConfig.Workspace != nil && mayUseWorkspace(c.pipeline, spec) {
		mountWorkspace(t.Task)
		s.pod["volumes"] = append(list(s.pod["volumes"]), map[string]any{"name": workspaceVolume, "persistentVolumeClaim": map[string]any{
			"claimName": "{{$.pipeline_job_resource_name}}-" + workspaceVolume,
		}})
		s.main["volumeMounts"] = append(list(s.main["volumeMounts"]), map[string]any{"name": workspaceVolume, "mountPath": workspacePath})
	}
	if len(s.main) > 0 {
		s.main["name"] = mainContainer
		s.pod["containers"] = []any{s.main}
	}
	if len(s.pod) > 0 {
		t.Task.Patch = patchText(s.pod)
	}
	if k.PodMetadata != nil {
		t.Labels, t.Annotations = k.PodMetadata.Labels, k.PodMetadata.Annotations
	}
	if k.ActiveDeadlineSeconds > 0 {
		t.Deadline = fmt.Sprint(k.ActiveDeadlineSeconds)
	}
	for _, p := range platformParameters(k) {
		t.Inputs.Parameters = append(t.Inputs.Parameters, program.Input{Name: p.name, Optional: true})
	}
	s.taskConfig(t)
}

// mayUseWorkspace says whether a task can come across the workspace's path: in its own texts, or in what it is given.
func mayUseWorkspace(p *Pipeline, spec *ComponentSpec) bool {
	if len(spec.InputDefinitions.Parameters)+len(spec.InputDefinitions.Artifacts) > 0 {
		return true
	}
	e := p.Spec.DeploymentSpec.Executors[spec.ExecutorLabel]
	return e != nil && e.Container != nil && usesWorkspace(e.Container)
}

// mountWorkspace mounts the run's workspace: a volume claim of the run's own.
func mountWorkspace(body *program.Body) {
	body.Volumes = append(body.Volumes, program.Volume{
		Name: workspaceVolume, Kind: "claim", Source: "{{$.pipeline_job_resource_name}}-" + workspaceVolume,
	})
	for i := range body.Containers {
		body.Containers[i].Mounts = append(body.Containers[i].Mounts, program.Mount{Volume: workspaceVolume, Path: workspacePath})
	}
}

// WorkflowSettings gives what a pipeline as a whole asks of a cluster, as fields of a Workflow's spec: volumeClaimTemplates
// for its workspace, and ttlStrategy for how long its objects stay. It is nil for a pipeline that asks for nothing.
func (p *Pipeline) WorkflowSettings() program.JSON {
	config := p.Platform.Kubernetes.PipelineConfig
	out := map[string]any{}
	ttl := map[string]any{}
	for name, v := range map[string]int64{
		"secondsAfterCompletion": config.ResourceTTLOnCompletion, "secondsAfterSuccess": config.ResourceTTLOnSuccess,
		"secondsAfterFailure": config.ResourceTTLOnFailure,
	} {
		if v > 0 {
			ttl[name] = v
		}
	}
	if len(ttl) > 0 {
		out["ttlStrategy"] = ttl
	}
	if w := config.Workspace; w != nil {
		spec := map[string]any{"accessModes": []any{"ReadWriteOnce"}}
		if w.Size != "" {
			spec["resources"] = map[string]any{"requests": map[string]any{"storage": w.Size}}
		}
		maps.Copy(spec, w.Kubernetes.PVCSpecPatch)
		out["volumeClaimTemplates"] = []any{map[string]any{"metadata": map[string]any{"name": workspaceVolume}, "spec": spec}}
	}
	if len(out) == 0 {
		return nil
	}
	return toJSON(out)
}

// named is a platform setting that a parameter of the graph around the task gives, with the hidden input that brings it
// to the task.
type named struct {
	name string
	from *TaskParameter
}

// platformParameters lists the settings that come from parameters.
func platformParameters(k *KubernetesConfig) []named {
	var out []named
	add := func(kind string, i int, p *TaskParameter) {
		if p != nil {
			out = append(out, named{hidden(kind, i), p})
		}
	}
	for i, v := range k.SecretAsVolume {
		add("secretAsVolume", i, v.SecretNameParameter)
	}
	for i, v := range k.SecretAsEnv {
		add("secretAsEnv", i, v.SecretNameParameter)
	}
	for i, v := range k.ConfigMapAsVolume {
		add("configMapAsVolume", i, v.ConfigMapNameParameter)
	}
	for i, v := range k.ConfigMapAsEnv {
		add("configMapAsEnv", i, v.ConfigMapNameParameter)
	}
	for i, v := range k.PVCMount {
		add("pvcMount", i, v.parameter())
	}
	for i, v := range k.ImagePullSecret {
		add("imagePullSecret", i, v.SecretNameParameter)
	}
	if k.NodeSelector != nil {
		add("nodeSelector", 0, k.NodeSelector.NodeSelectorJSON)
	}
	for i, v := range k.Tolerations {
		add("tolerations", i, v.TolerationJSON)
	}
	for i, v := range k.NodeAffinity {
		add("nodeAffinity", i, v.NodeAffinityJSON)
	}
	return out
}

// hidden is the name of a setting's hidden input.
func hidden(kind string, i int) string { return fmt.Sprintf("%s%s-%d", kfpexpr.HiddenInput, kind, i) }

// parameter gives the source of the claim's name in one form; nil for a constant of the deprecated form.
func (m PVCMount) parameter() *TaskParameter {
	switch {
	case m.PVCNameParameter != nil:
		return m.PVCNameParameter
	case m.TaskOutputParameter != nil:
		return &TaskParameter{TaskOutputParameter: m.TaskOutputParameter}
	case m.ComponentInputParameter != "":
		return &TaskParameter{ComponentInputParameter: m.ComponentInputParameter}
	}
	return nil
}

// platformArguments binds the hidden inputs in the graph around the task.
func (b *binder) platformArguments() []program.Argument {
	var out []program.Argument
	for _, p := range platformParameters(b.compiler.kubernetesOf(b.target)) {
		out = append(out, program.Argument{Name: p.name, From: b.parameter(p.from)})
	}
	return out
}

// platformTasks names the tasks whose outputs the task's platform settings take.
func (b *binder) platformTasks() []string {
	var out []string
	if b.target.Dag != nil {
		return nil
	}
	for _, p := range platformParameters(b.compiler.kubernetesOf(b.target)) {
		out = append(out, p.from.producer()...)
	}
	return out
}

// patchText writes a patch in the form that kfpexpr evaluates.
func patchText(v map[string]any) string { return kfpexpr.PatchMarker + string(toJSON(v)) }

func list(v any) []any {
	l, _ := v.([]any)
	return l
}
