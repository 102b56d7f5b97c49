package argo

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/program"
)

// body compiles the work of a leaf template.
func (c *compiler) body(t *Template) (*program.Body, error) {
	out := &program.Body{}
	var err error
	switch t.kind() {
	case "container":
		out.Kind = program.Containers
		err = c.containers(out, t, []ContainerNode{{Container: *t.Container}})
	case "containerSet":
		out.Kind = program.Containers
		err = c.containers(out, t, setContainers(t.ContainerSet))
	case "script":
		out.Kind, out.Script = program.Script, t.Script.Source
		if t.Script.Source == "" {
			out.Kind = program.Containers // as Argo: without a source there is no file to hand over
		}
		err = c.containers(out, t, []ContainerNode{{Container: t.Script.Container}})
	case "http":
		out.Kind, out.Request, out.Result = program.HTTP, request(t.HTTP), true
	case "data":
		out.Kind, out.Result = program.Data, true
		out.Data, err = raw(t.Data)
		if paths := t.Data.Source.ArtifactPaths; paths != nil {
			out.Source = artifactBinding(paths.Artifact)
		}
	case "plugin":
		out.Kind, out.Plugin = program.Plugin, t.Plugin.RawMessage
	case "resource":
		out.Kind = program.Resource
		out.Resource, err = raw(t.Resource)
	default:
		err = fmt.Errorf("has no kind of work")
	}
	if err != nil {
		return nil, err
	}
	if t.kind() != "http" && t.kind() != "plugin" {
		out.Pod, err = c.templatePod(t, out.Volumes)
		out.Patch = joinPatches(c.r.spec.PodSpecPatch, t.PodSpecPatch)
	}
	return out, err
}

// joinPatches puts the workflow's pod patch before the template's, as two YAML documents that are applied in order.
func joinPatches(workflow, template string) string {
	if workflow == "" || template == "" {
		return workflow + template
	}
	return workflow + "\n---\n" + template
}

// setContainers gives the containers of a set with the set's own mounts and retries.
func setContainers(s *ContainerSetTemplate) []ContainerNode {
	out := make([]ContainerNode, len(s.Containers))
	for i, n := range s.Containers {
		n.VolumeMounts = append(append([]corev1.VolumeMount{}, s.VolumeMounts...), n.VolumeMounts...)
		out[i] = n
	}
	return out
}

// containers compiles containers and the volumes that they mount.
func (c *compiler) containers(out *program.Body, t *Template, nodes []ContainerNode) error {
	for i := range nodes {
		n := &nodes[i]
		if t.ContainerSet == nil {
			n.Name = "main"
		}
		ctr, err := c.container(&n.Container)
		if err != nil {
			return err
		}
		ctr.Needs = n.Dependencies
		if t.ContainerSet != nil && t.ContainerSet.RetryStrategy != nil {
			ctr.Retries = t.ContainerSet.RetryStrategy.Retries.text()
			ctr.RetryDelay = t.ContainerSet.RetryStrategy.Duration
		}
		out.Containers = append(out.Containers, ctr)
	}
	out.Volumes = c.volumes(t, out.Containers)
	return nil
}

func (c *compiler) container(k *corev1.Container) (program.Container, error) {
	out := program.Container{
		Name: k.Name, Image: k.Image, Command: k.Command, Args: k.Args, WorkingDir: k.WorkingDir,
		CPULimit: quantity(k.Resources.Limits, corev1.ResourceCPU), MemoryLimit: quantity(k.Resources.Limits, corev1.ResourceMemory),
	}
	for _, from := range k.EnvFrom {
		out.Env = append(out.Env, c.envFrom(from)...)
	}
	for _, e := range k.Env {
		out.Env = append(out.Env, envVar(e))
	}
	for _, m := range k.VolumeMounts {
		sub := m.SubPath
		if sub == "" {
			sub = m.SubPathExpr
		}
		out.Mounts = append(out.Mounts, program.Mount{Volume: m.Name, Path: m.MountPath, SubPath: sub, ReadOnly: m.ReadOnly})
	}
	var err error
	out.Raw, err = raw(k)
	return out, err
}

func quantity(list corev1.ResourceList, name corev1.ResourceName) string {
	if q, ok := list[name]; ok {
		return q.String()
	}
	return ""
}

func envVar(e corev1.EnvVar) program.EnvVar {
	out := program.EnvVar{Name: e.Name, Value: e.Value}
	from := e.ValueFrom
	switch {
	case from == nil:
	case from.SecretKeyRef != nil:
		out.Secret, out.Key, out.Optional = from.SecretKeyRef.Name, from.SecretKeyRef.Key, deref(from.SecretKeyRef.Optional)
	case from.ConfigMapKeyRef != nil:
		out.ConfigMap, out.Key, out.Optional = from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, deref(from.ConfigMapKeyRef.Optional)
	case from.FieldRef != nil:
		out.Field = from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		out.Field = from.ResourceFieldRef.Resource
	}
	return out
}

// envFrom gives one variable for each key of a ConfigMap or Secret that was loaded. Others are in the raw container.
func (c *compiler) envFrom(from corev1.EnvFromSource) []program.EnvVar {
	var out []program.EnvVar
	if ref := from.ConfigMapRef; ref != nil {
		for _, k := range sortedKeys(c.b.ConfigMaps[ref.Name]) {
			out = append(out, program.EnvVar{Name: from.Prefix + k, ConfigMap: ref.Name, Key: k, Optional: deref(ref.Optional)})
		}
	}
	if ref := from.SecretRef; ref != nil {
		for _, k := range sortedKeys(c.b.Secrets[ref.Name]) {
			out = append(out, program.EnvVar{Name: from.Prefix + k, Secret: ref.Name, Key: k, Optional: deref(ref.Optional)})
		}
	}
	return out
}

func request(h *HTTP) *program.Request {
	out := &program.Request{
		Method: h.Method, URL: h.URL, Body: h.Body, TimeoutSeconds: deref(h.TimeoutSeconds),
		SuccessCondition: h.SuccessCondition, InsecureSkipVerify: h.InsecureSkipVerify,
	}
	if h.BodyFrom != nil {
		out.BodyBytes = h.BodyFrom.Bytes
	}
	for _, header := range h.Headers {
		v := program.EnvVar{Name: header.Name, Value: header.Value}
		if header.ValueFrom != nil && header.ValueFrom.SecretKeyRef != nil {
			v.Secret, v.Key = header.ValueFrom.SecretKeyRef.Name, header.ValueFrom.SecretKeyRef.Key
		}
		out.Headers = append(out.Headers, v)
	}
	return out
}
