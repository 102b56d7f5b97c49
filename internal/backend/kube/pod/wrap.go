package pod

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

const (
	// maxVariable is how long a specification may be that stands in a variable: the kernel takes 128 KiB.
	maxVariable = 100 << 10
	// maxConfig is how much a ConfigMap takes, less what is around the data.
	maxConfig = 1<<20 - 8<<10
	// backstop is how much later than the engine the cluster ends a pod.
	backstop = 10 * time.Minute
	// tokenSeconds is how long a token for the endpoint is good for; the kubelet renews it.
	tokenSeconds = 3600
)

// grace is how long commands may take to end: the author's own, if there is one.
func (b *builder) grace() time.Duration {
	if s := b.written.terminationGrace; s != nil {
		return time.Duration(*s) * time.Second
	}
	return b.cfg.Grace
}

// wrap puts every container under the executor.
func (b *builder) wrap() error {
	s := &b.pod.Spec
	b.written.terminationGrace = s.TerminationGracePeriodSeconds
	seconds := int64(math.Ceil((b.grace() + spec.HandIn).Seconds()))
	s.TerminationGracePeriodSeconds = &seconds
	b.deadline()
	shared := corev1.VolumeMount{Name: sharedVolume, MountPath: spec.PodDir}
	s.Volumes = append(s.Volumes, emptyDir(sharedVolume))
	var before spec.Pod // what the init container brings
	var mirrored []corev1.VolumeMount
	order := make([]*corev1.Container, 0, len(s.Containers)) // main first: its folders are what sidecars mirror
	for i := range s.Containers {
		if c := &s.Containers[i]; c.Name == b.main {
			order = slices.Insert(order, 0, c)
		} else {
			order = append(order, c)
		}
	}
	for _, c := range order {
		for _, m := range c.VolumeMounts {
			if at := path.Clean(m.MountPath); within(at, spec.PodDir) || within(at, path.Dir(spec.TokenFile)) {
				return fmt.Errorf("container %s mounts a volume at %s, where the executor works", c.Name, at)
			}
		}
		task, err := b.task(c.Name)
		if err != nil {
			return err
		}
		plan := b.plan(c, &task.Task)
		task.Task.Folders = plan.make
		mounts := b.mountFolders(c, plan.mounts)
		if len(plan.before) > 0 {
			var placed []corev1.VolumeMount
			before, placed = b.bringBefore(&task, plan.before)
			c.VolumeMounts = append(c.VolumeMounts, placed...)
			mounts = append(mounts, placed...)
		}
		if c.Name == b.main {
			mirrored = mounts
		} else if b.mirrors[c.Name] {
			for _, m := range mirrored {
				if !slices.ContainsFunc(c.VolumeMounts, func(own corev1.VolumeMount) bool { return path.Clean(own.MountPath) == m.MountPath }) {
					c.VolumeMounts = append(c.VolumeMounts, m)
				}
			}
		}
		if err := b.under(c, task); err != nil {
			return err
		}
		c.VolumeMounts = append(c.VolumeMounts, shared)
	}
	return b.initContainer(before, shared)
}

// under makes a container run the executor, which runs the container's own command.
func (b *builder) under(c *corev1.Container, task spec.Pod) error {
	home := ""
	if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil && *sc.RunAsUser == b.cfg.User {
		home = spec.PodDir + homePrefix + c.Name
		task.Task.Folders = append(task.Task.Folders, home)
	}
	command := append(slices.Clone(c.Command), c.Args...)
	if b.cmd.Body.Kind == program.Script && c.Name == b.main {
		command = append(command, scriptFile)
	}
	c.Command, c.Args = []string{spec.PodExecutor, "pod"}, command
	c.TerminationMessagePath, c.TerminationMessagePolicy = spec.TerminationLog, corev1.TerminationMessageReadFile
	b.environment(c, home)
	if task.Endpoint != "" {
		b.token(c)
	}
	return b.specification(c, task)
}

// environment tells a container who it is. What the author says of a variable goes before this.
func (b *builder) environment(c *corev1.Container, home string) {
	vars := []corev1.EnvVar{
		{Name: "SLUICE_RUN", Value: b.run.Name}, {Name: "SLUICE_RUN_UID", Value: b.run.UID},
		{Name: "SLUICE_TASK", Value: b.cmd.Path}, {Name: "SLUICE_ATTEMPT", Value: strconv.Itoa(b.cmd.Attempt)},
		{Name: "ARGO_WORKFLOW_NAME", Value: b.run.Name}, {Name: "ARGO_POD_NAME", Value: Name(b.cmd)},
		{Name: "KFP_RUN_ID", Value: b.run.UID}, {Name: "KFP_POD_NAME", Value: Name(b.cmd)},
	}
	if home != "" {
		vars = append(vars, corev1.EnvVar{Name: "HOME", Value: home})
	}
	own := slices.DeleteFunc(slices.Clone(c.Env), func(v corev1.EnvVar) bool { return v.Name == spec.PodEnv || v.Name == spec.PodFileEnv })
	vars = slices.DeleteFunc(vars, func(v corev1.EnvVar) bool {
		return slices.ContainsFunc(own, func(o corev1.EnvVar) bool { return o.Name == v.Name })
	})
	for i := range vars {
		vars[i].Value = strings.ReplaceAll(vars[i].Value, "$", "$$") // the kubelet would look for variables in it
	}
	c.Env = append(vars, own...)
}

// token gives a container the token by which the endpoint knows its pod.
func (b *builder) token(c *corev1.Container) {
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: tokenVolume, MountPath: path.Dir(spec.TokenFile), ReadOnly: true})
	if slices.ContainsFunc(b.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == tokenVolume }) {
		return
	}
	seconds := int64(tokenSeconds)
	b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: spec.TokenAudience, ExpirationSeconds: &seconds, Path: path.Base(spec.TokenFile),
		}}}},
	}})
}

// specification gives a container what it has to do: in a variable, or in a file where it is too long for one.
func (b *builder) specification(c *corev1.Container, task spec.Pod) error {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(task); err != nil {
		return fmt.Errorf("container %s: encode its specification: %w", c.Name, err)
	}
	data := strings.TrimSpace(buf.String())
	// The kubelet would look for variables in it. A dollar sign can only stand in a string of JSON.
	text := strings.ReplaceAll(data, "$", `\u0024`)
	if len(text) <= maxVariable {
		c.Env = append(c.Env, corev1.EnvVar{Name: spec.PodEnv, Value: text})
		return nil
	}
	file := c.Name + ".json"
	if b.config == nil {
		b.config = &corev1.ConfigMap{Data: map[string]string{}}
		b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, corev1.Volume{Name: specVolume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: Name(b.cmd)}},
		}})
	}
	b.config.Data[file] = data
	size := 0
	for _, d := range b.config.Data {
		size += len(d)
	}
	if size > maxConfig {
		return fmt.Errorf("the task's scripts and raw artifacts take %d bytes and a cluster holds %d: pass what is large as an artifact of a store", size, maxConfig)
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: spec.PodFileEnv, Value: specFolder + "/" + file})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: specVolume, MountPath: specFolder, ReadOnly: true})
	return nil
}

// deadline lets the cluster end a pod that nobody looks after any more. The engine's own timer is earlier: it lets the
// task end gently, and hand in what it has.
func (b *builder) deadline() {
	if b.cmd.Timeout <= 0 {
		return
	}
	latest := int64(math.Ceil((b.cmd.Timeout + b.grace() + spec.HandIn + backstop).Seconds()))
	if own := b.pod.Spec.ActiveDeadlineSeconds; own == nil || *own < latest {
		b.pod.Spec.ActiveDeadlineSeconds = &latest
	}
}
