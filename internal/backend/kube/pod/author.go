package pod

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sluice-ml/sluice/internal/program"
)

// settings are the pod settings that manifests have, for a run or a template. Containers are sidecars.
type settings struct {
	corev1.PodSpec
	InitContainers []userContainer `json:"initContainers"`
	Containers     []userContainer `json:"containers"`
}

// userContainer is a container beside the task's own.
type userContainer struct {
	corev1.Container
	MirrorVolumeMounts bool `json:"mirrorVolumeMounts"`
}

func decodeSettings(data program.JSON, whose string) (settings, error) {
	var s settings
	if len(data) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("pod settings of the %s: %w", whose, err)
	}
	return s, nil
}

// author makes the pod as the author wrote it: without executor, folders and defaults.
func (b *builder) author() error {
	run, err := decodeSettings(b.cmd.RunPod, "workflow")
	if err != nil {
		return err
	}
	template, err := decodeSettings(b.cmd.Body.Pod, "template")
	if err != nil {
		return err
	}
	b.pod = &corev1.Pod{}
	s := &b.pod.Spec
	*s = overlay(run.PodSpec, template.PodSpec)
	for _, c := range b.cmd.Body.Containers {
		own, err := container(c)
		if err != nil {
			return err
		}
		s.Containers = append(s.Containers, own)
		b.names = append(b.names, own.Name)
	}
	b.main = b.names[len(b.names)-1]
	if slices.Contains(b.names, mainContainer) {
		b.main = mainContainer
	}
	var mirrored []corev1.VolumeMount
	for i := range s.Containers {
		if s.Containers[i].Name == b.main {
			mirrored = s.Containers[i].VolumeMounts
		}
	}
	for _, init := range template.InitContainers {
		s.InitContainers = append(s.InitContainers, init.with(mirrored))
	}
	for _, sidecar := range template.Containers {
		if slices.Contains(b.names, sidecar.Name) {
			return fmt.Errorf("a sidecar has the name of the task's own container %s", sidecar.Name)
		}
		b.mirrors[sidecar.Name] = sidecar.MirrorVolumeMounts
		s.Containers = append(s.Containers, sidecar.with(mirrored))
	}
	s.RestartPolicy = corev1.RestartPolicyNever
	b.declare(run.Volumes, template.Volumes)
	return nil
}

// with gives the container with the mounts that it is to share.
func (c userContainer) with(mirrored []corev1.VolumeMount) corev1.Container {
	if !c.MirrorVolumeMounts {
		return c.Container
	}
	out := c.Container
	for _, m := range mirrored {
		if !slices.ContainsFunc(out.VolumeMounts, func(own corev1.VolumeMount) bool { return own.MountPath == m.MountPath }) {
			out.VolumeMounts = append(out.VolumeMounts, m)
		}
	}
	return out
}

// overlay gives the settings of a run with a template's over them: each field as a whole, as Argo does.
func overlay(run, template corev1.PodSpec) corev1.PodSpec {
	out := corev1.PodSpec{
		NodeSelector: run.NodeSelector, Affinity: run.Affinity, Tolerations: run.Tolerations, SchedulerName: run.SchedulerName,
		PriorityClassName: run.PriorityClassName, ServiceAccountName: run.ServiceAccountName,
		AutomountServiceAccountToken: run.AutomountServiceAccountToken, HostAliases: append(slices.Clip(run.HostAliases), template.HostAliases...),
		HostNetwork: run.HostNetwork, DNSPolicy: run.DNSPolicy, DNSConfig: run.DNSConfig, ImagePullSecrets: run.ImagePullSecrets,
		SecurityContext: run.SecurityContext, Resources: run.Resources, ResourceClaims: run.ResourceClaims,
	}
	if len(template.NodeSelector) > 0 {
		out.NodeSelector = template.NodeSelector
	}
	if template.Affinity != nil {
		out.Affinity = template.Affinity
	}
	if len(template.Tolerations) > 0 {
		out.Tolerations = template.Tolerations
	}
	if template.SchedulerName != "" {
		out.SchedulerName = template.SchedulerName
	}
	if template.PriorityClassName != "" {
		out.PriorityClassName = template.PriorityClassName
	}
	if template.ServiceAccountName != "" {
		out.ServiceAccountName = template.ServiceAccountName
	}
	if template.AutomountServiceAccountToken != nil {
		out.AutomountServiceAccountToken = template.AutomountServiceAccountToken
	}
	if template.SecurityContext != nil {
		out.SecurityContext = template.SecurityContext
	}
	if template.Resources != nil {
		out.Resources = template.Resources
	}
	if len(template.ResourceClaims) > 0 {
		out.ResourceClaims = template.ResourceClaims
	}
	return out
}

// container is one of the task's containers: as the author wrote it where that is known, with the texts that the engine
// has resolved.
func container(c program.Container) (corev1.Container, error) {
	out := corev1.Container{Name: c.Name}
	if out.Name == "" {
		out.Name = mainContainer
	}
	if len(c.Raw) > 0 {
		if err := json.Unmarshal(c.Raw, &out); err != nil {
			return out, fmt.Errorf("container %s: %w", out.Name, err)
		}
		if c.Name != "" {
			out.Name = c.Name
		}
	} else if err := neutral(&out, c); err != nil {
		return out, fmt.Errorf("container %s: %w", out.Name, err)
	}
	out.Image, out.Command, out.Args = c.Image, c.Command, c.Args
	if c.WorkingDir != "" {
		out.WorkingDir = c.WorkingDir
	}
	return out, nil
}

// neutral fills a container from the form that knows nothing of Kubernetes.
func neutral(out *corev1.Container, c program.Container) error {
	for _, v := range c.Env {
		out.Env = append(out.Env, variable(v))
	}
	for _, m := range c.Mounts {
		out.VolumeMounts = append(out.VolumeMounts, corev1.VolumeMount{Name: m.Volume, MountPath: m.Path, SubPath: m.SubPath, ReadOnly: m.ReadOnly})
	}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: c.CPULimit, corev1.ResourceMemory: c.MemoryLimit} {
		if text == "" {
			continue
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s limit %q: %w", name, text, err)
		}
		if out.Resources.Limits == nil {
			out.Resources.Limits = corev1.ResourceList{}
		}
		out.Resources.Limits[name] = q
	}
	return nil
}

func variable(v program.EnvVar) corev1.EnvVar {
	out := corev1.EnvVar{Name: v.Name}
	switch {
	case v.Secret != "":
		out.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret}, Key: v.Key, Optional: &v.Optional,
		}}
	case v.ConfigMap != "":
		out.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: v.ConfigMap}, Key: v.Key, Optional: &v.Optional,
		}}
	case strings.HasPrefix(v.Field, "limits.") || strings.HasPrefix(v.Field, "requests."):
		out.ValueFrom = &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: v.Field}}
	case v.Field != "":
		out.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: v.Field}}
	default:
		out.Value = v.Value
	}
	return out
}
