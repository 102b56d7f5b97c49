package pod

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// beforeFolder is where the init container puts inputs, below the shared folder.
const beforeFolder = "in"

// initContainer adds the container that brings the executor. Where there are inputs to bring first it does so under the
// executor itself, as any container of the task.
func (b *builder) initContainer(before spec.Pod, shared corev1.VolumeMount) error {
	c := corev1.Container{
		Name: InitContainer, Image: b.cfg.ExecutorImage, ImagePullPolicy: b.cfg.ImagePullPolicy,
		Command:   []string{"/sluice-executor", "install", spec.PodExecutor},
		Resources: b.cfg.Executor, VolumeMounts: []corev1.VolumeMount{shared}, SecurityContext: b.locked(),
	}
	if len(before.Task.Inputs) > 0 {
		c.Command = append([]string{"/sluice-executor", "pod"}, c.Command...)
		if before.Endpoint != "" {
			b.token(&c)
		}
		if err := b.specification(&c, before); err != nil {
			return err
		}
	}
	b.pod.Spec.InitContainers = slices.Insert(b.pod.Spec.InitContainers, 0, c)
	return nil
}

// bringBefore takes inputs out of a task, by their paths, for the init container to bring: a path that the command's user
// can neither write to nor be given a folder around gets what lies in the shared folder by then, as a mount.
func (b *builder) bringBefore(task *spec.Pod, paths []string) (before spec.Pod, mounts []corev1.VolumeMount) {
	before = spec.Pod{
		Task: spec.Spec{Path: task.Task.Path, Containers: []spec.Container{{Name: InitContainer, Inherit: true}}, Grace: task.Task.Grace},
		Main: InitContainer, Containers: []string{InitContainer},
	}
	var inputs []spec.Input
	var fetch []spec.Transfer
	for i, in := range task.Task.Inputs {
		from := slices.IndexFunc(task.Fetch, func(t spec.Transfer) bool { return t.Input == i })
		to, list, transfers := in, &inputs, &fetch
		if slices.Contains(paths, in.Path) {
			place := path.Join(beforeFolder, fmt.Sprint(len(mounts)))
			mounts = append(mounts, corev1.VolumeMount{Name: sharedVolume, MountPath: path.Clean(in.Path), SubPath: place})
			to.Path, list, transfers = path.Join(spec.PodDir, place), &before.Task.Inputs, &before.Fetch
		}
		if from >= 0 {
			t := task.Fetch[from]
			t.Input = len(*list)
			*transfers = append(*transfers, t)
		}
		*list = append(*list, to)
	}
	task.Task.Inputs, task.Fetch = inputs, fetch
	if len(before.Fetch) > 0 {
		before.Endpoint, before.CA = task.Endpoint, task.CA
	}
	if !b.needsEndpoint(task) {
		task.Endpoint, task.CA = "", ""
	}
	return before, mounts
}
