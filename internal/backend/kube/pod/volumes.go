package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sluice-ml/sluice/internal/program"
)

// ClaimName is the name of the volume claim that a run has for one of its volumeClaimTemplates.
func ClaimName(run, template string) string { return run + "-" + template }

// declare notes the volumes that there are: a template's go before those of the run.
func (b *builder) declare(run, template []corev1.Volume) {
	for _, list := range [][]corev1.Volume{run, template} {
		for _, v := range list {
			b.declared[v.Name] = v
		}
	}
	for _, v := range b.cmd.Body.Volumes {
		if _, known := b.declared[v.Name]; !known {
			b.declared[v.Name] = b.neutralVolume(v)
		}
	}
}

// neutralVolume makes a volume from the form that knows nothing of Kubernetes. A claim that the author's own volumes do
// not have is one of the run's claim templates.
func (b *builder) neutralVolume(v program.Volume) corev1.Volume {
	out := corev1.Volume{Name: v.Name}
	var items []corev1.KeyToPath
	for _, key := range sortedKeys(v.Items) {
		items = append(items, corev1.KeyToPath{Key: key, Path: v.Items[key]})
	}
	optional := &v.Optional
	if !v.Optional {
		optional = nil
	}
	switch v.Kind {
	case "configMap":
		out.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: v.Source}, Items: items, Optional: optional}
	case "secret":
		out.Secret = &corev1.SecretVolumeSource{SecretName: v.Source, Items: items, Optional: optional}
	case "claim":
		name := v.Source
		if slices.ContainsFunc(b.cmd.Body.Containers, func(c program.Container) bool { return len(c.Raw) > 0 }) {
			name = ClaimName(b.run.Name, v.Source)
		}
		out.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	default:
		out.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	return out
}

// volumes gives the pod the volumes that its containers mount, and no others: a volume that nothing mounts could keep a
// pod from starting. One that is declared nowhere is of the run's claim templates, since the front ends refuse manifests
// that mount what there is not.
func (b *builder) volumes() error {
	s := &b.pod.Spec
	for _, containers := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for _, c := range containers {
			names := make([]string, 0, len(c.VolumeMounts)+len(c.VolumeDevices))
			for _, m := range c.VolumeMounts {
				names = append(names, m.Name)
			}
			for _, d := range c.VolumeDevices {
				names = append(names, d.Name)
			}
			for _, name := range names {
				if err := b.need(name, c.Name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *builder) need(name, container string) error {
	s := &b.pod.Spec
	if slices.ContainsFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == name }) {
		return nil
	}
	v, known := b.declared[name]
	if !known {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return fmt.Errorf("container %s mounts %q, which is no name of a volume", container, name)
		}
		v = corev1.Volume{Name: name}
		v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: ClaimName(b.run.Name, name)}
	}
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{} // what Kubernetes makes of it
	}
	s.Volumes = append(s.Volumes, v)
	return nil
}
