package kfp

import (
	"fmt"

	"github.com/sluice-ml/sluice/internal/program"
)

// settings collects what the kubernetes platform asks of one component.
type settings struct {
	config    *KubernetesConfig
	component *ComponentSpec
	body      *program.Body
	// set says which kinds of settings are applied to the task itself (see [Passthrough]).
	set map[string]bool
	// pod is the pod spec patch, main the patch of the task's container, with the directives that kfpexpr knows.
	pod, main map[string]any
	// given is what the task's own code gets in its TASK_CONFIG parameter.
	given map[string]any
}

// The kinds of settings that can be passed through.
var settingKinds = []string{"RESOURCES", "ENV", "KUBERNETES_AFFINITY", "KUBERNETES_TOLERATIONS", "KUBERNETES_NODE_SELECTOR", "KUBERNETES_VOLUMES"}

// appliesToTask says which kinds of settings are applied to the task: all but those that are only passed through.
func appliesToTask(spec *ComponentSpec) map[string]bool {
	out := map[string]bool{}
	for _, k := range settingKinds {
		out[k] = true
	}
	for _, p := range spec.TaskConfigPassthroughs {
		out[p.Field] = p.ApplyToTask
	}
	return out
}

// passes says whether a kind of settings is passed through to the task's code.
func (s *settings) passes(kind string) bool {
	for _, p := range s.component.TaskConfigPassthroughs {
		if p.Field == kind {
			return true
		}
	}
	return false
}

// podList and mainList add to lists of the pod and of its container, and of what the code is given.
func (s *settings) podList(kind, field string, v any) {
	if s.set[kind] || kind == "" {
		s.pod[field] = append(list(s.pod[field]), v)
	}
	s.give(kind, field, v)
}

func (s *settings) mainList(kind, field string, v any) {
	if s.set[kind] {
		s.main[field] = append(list(s.main[field]), v)
	}
	s.give(kind, field, v)
}

func (s *settings) give(kind, field string, v any) {
	if !s.passes(kind) {
		return
	}
	if s.given == nil {
		s.given = map[string]any{}
	}
	s.given[field] = append(list(s.given[field]), v)
}

// source is where a setting's name comes from: a constant, or a hidden input. Needs is that input, for the directive
// that drops what cannot be without it.
type source struct {
	constant, hidden string
}

func from(kind string, i int, constant string, p *TaskParameter) source {
	if p != nil {
		return source{hidden: hidden(kind, i)}
	}
	return source{constant: constant}
}

// json is the name in a patch.
func (s source) json() any {
	if s.hidden != "" {
		return map[string]any{"$parameter": s.hidden}
	}
	return s.constant
}

// text is the name in a text; empty where an optional input has no value.
func (s source) text() string {
	if s.hidden != "" {
		return "{{$.optional['" + s.hidden + "']}}"
	}
	return s.constant
}

// require marks a mapping that is dropped where the name has no value.
func (s source) require(m map[string]any) map[string]any {
	if s.hidden != "" {
		m["$require"] = s.hidden
	}
	return m
}

// apply goes through all settings.
func (s *settings) apply() {
	k := s.config
	for i, v := range k.SecretAsVolume {
		s.volume(fmt.Sprintf("secret-%d", i), "secret", "secretName", from("secretAsVolume", i, v.SecretName, v.SecretNameParameter), v)
	}
	for i, v := range k.ConfigMapAsVolume {
		s.volume(fmt.Sprintf("configmap-%d", i), "configMap", "name", from("configMapAsVolume", i, v.ConfigMapName, v.ConfigMapNameParameter), v)
	}
	for i, v := range k.SecretAsEnv {
		for _, e := range v.KeyToEnv {
			src := from("secretAsEnv", i, v.SecretName, v.SecretNameParameter)
			s.env(program.EnvVar{Name: e.EnvVar, Secret: src.text(), Key: e.SecretKey, Optional: v.Optional},
				"secretKeyRef", src, map[string]any{"name": src.json(), "key": e.SecretKey, "optional": v.Optional})
		}
	}
	for i, v := range k.ConfigMapAsEnv {
		for _, e := range v.KeyToEnv {
			src := from("configMapAsEnv", i, v.ConfigMapName, v.ConfigMapNameParameter)
			s.env(program.EnvVar{Name: e.EnvVar, ConfigMap: src.text(), Key: e.ConfigMapKey, Optional: v.Optional},
				"configMapKeyRef", src, map[string]any{"name": src.json(), "key": e.ConfigMapKey, "optional": v.Optional})
		}
	}
	for _, v := range k.FieldPathAsEnv {
		s.env(program.EnvVar{Name: v.Name, Field: v.FieldPath}, "fieldRef", source{}, map[string]any{"fieldPath": v.FieldPath})
	}
	for i, v := range k.PVCMount {
		s.claim(i, v)
	}
	for i, v := range k.ImagePullSecret {
		src := from("imagePullSecret", i, v.SecretName, v.SecretNameParameter)
		s.pod["imagePullSecrets"] = append(list(s.pod["imagePullSecrets"]), src.require(map[string]any{"name": src.json()}))
	}
	if k.ImagePullPolicy != "" {
		s.main["imagePullPolicy"] = k.ImagePullPolicy
	}
	if k.ActiveDeadlineSeconds > 0 {
		s.pod["activeDeadlineSeconds"] = k.ActiveDeadlineSeconds
	}
	s.emptyDirs()
	s.ephemeral()
	s.scheduling()
	s.security()
	s.initContainers()
}

// volume mounts a Secret or a ConfigMap.
func (s *settings) volume(name, kind, field string, src source, v ObjectAsVolume) {
	s.podList("KUBERNETES_VOLUMES", "volumes", src.require(map[string]any{
		"name": name, kind: map[string]any{field: src.json(), "optional": v.Optional},
	}))
	s.mainList("KUBERNETES_VOLUMES", "volumeMounts", src.require(map[string]any{"name": name, "mountPath": v.MountPath}))
	if s.set["KUBERNETES_VOLUMES"] {
		s.mount(program.Volume{Name: name, Kind: kind, Source: src.text(), Optional: v.Optional || src.hidden != ""},
			program.Mount{Path: v.MountPath, ReadOnly: true})
	}
}

// mount adds a volume and its mount to the neutral form.
func (s *settings) mount(v program.Volume, m program.Mount) {
	m.Volume = v.Name
	s.body.Volumes = append(s.body.Volumes, v)
	s.body.Containers[0].Mounts = append(s.body.Containers[0].Mounts, m)
}

// env sets an environment variable from somewhere.
func (s *settings) env(neutral program.EnvVar, ref string, src source, value map[string]any) {
	if src.hidden != "" {
		neutral.Optional = true
	}
	if s.set["ENV"] {
		s.body.Containers[0].Env = append(s.body.Containers[0].Env, neutral)
	}
	s.mainList("ENV", "env", src.require(map[string]any{"name": neutral.Name, "valueFrom": map[string]any{ref: value}}))
}

// claim mounts a volume claim.
func (s *settings) claim(i int, v PVCMount) {
	name := fmt.Sprintf("pvc-%d", i)
	src := from("pvcMount", i, v.Constant, v.parameter())
	s.podList("KUBERNETES_VOLUMES", "volumes", src.require(map[string]any{
		"name": name, "persistentVolumeClaim": map[string]any{"claimName": src.json()},
	}))
	m := map[string]any{"name": name, "mountPath": v.MountPath}
	if v.SubPath != "" {
		m["subPath"] = v.SubPath
	}
	s.mainList("KUBERNETES_VOLUMES", "volumeMounts", src.require(m))
	if s.set["KUBERNETES_VOLUMES"] {
		s.mount(program.Volume{Name: name, Kind: "claim", Source: src.text()}, program.Mount{Path: v.MountPath, SubPath: v.SubPath})
	}
}

func (s *settings) emptyDirs() {
	dirs := s.config.EmptyDirMounts
	if m := s.config.EnabledSharedMemory; m != nil {
		name := m.VolumeName
		if name == "" {
			name = "shm"
		}
		dirs = append(dirs, EmptyDirMount{VolumeName: name, MountPath: "/dev/shm", Medium: "Memory", SizeLimit: m.Size})
	}
	for _, v := range dirs {
		dir := map[string]any{}
		if v.Medium != "" {
			dir["medium"] = v.Medium
		}
		if v.SizeLimit != "" {
			dir["sizeLimit"] = v.SizeLimit
		}
		s.podList("KUBERNETES_VOLUMES", "volumes", map[string]any{"name": v.VolumeName, "emptyDir": dir})
		s.mainList("KUBERNETES_VOLUMES", "volumeMounts", map[string]any{"name": v.VolumeName, "mountPath": v.MountPath})
		if s.set["KUBERNETES_VOLUMES"] {
			s.mount(program.Volume{Name: v.VolumeName, Kind: "emptyDir"}, program.Mount{Path: v.MountPath})
		}
	}
}

func (s *settings) ephemeral() {
	for _, v := range s.config.GenericEphemeralVolume {
		spec := map[string]any{"accessModes": v.AccessModes, "resources": map[string]any{"requests": map[string]any{"storage": v.Size}}}
		if !v.DefaultStorageClass && v.StorageClassName != "" {
			spec["storageClassName"] = v.StorageClassName
		}
		template := map[string]any{"spec": spec}
		if v.Metadata != nil {
			template["metadata"] = map[string]any{"labels": v.Metadata.Labels, "annotations": v.Metadata.Annotations}
		}
		s.podList("KUBERNETES_VOLUMES", "volumes", map[string]any{
			"name": v.VolumeName, "ephemeral": map[string]any{"volumeClaimTemplate": template},
		})
		s.mainList("KUBERNETES_VOLUMES", "volumeMounts", map[string]any{"name": v.VolumeName, "mountPath": v.MountPath})
		if s.set["KUBERNETES_VOLUMES"] {
			// It lives as long as the task, as an empty folder does.
			s.mount(program.Volume{Name: v.VolumeName, Kind: "emptyDir"}, program.Mount{Path: v.MountPath})
		}
	}
}

func (s *settings) security() {
	c := s.config.SecurityContext
	if c == nil {
		return
	}
	out := map[string]any{}
	if c.RunAsUser != nil {
		out["runAsUser"] = *c.RunAsUser
	}
	if c.RunAsGroup != nil {
		out["runAsGroup"] = *c.RunAsGroup
	}
	if c.RunAsNonRoot != nil {
		out["runAsNonRoot"] = *c.RunAsNonRoot
	}
	if len(out) > 0 {
		s.main["securityContext"] = out
	}
}

func (s *settings) initContainers() {
	for _, v := range s.config.InitContainers {
		c := map[string]any{"name": v.Name, "image": v.Image}
		set := func(k string, v any, ok bool) {
			if ok {
				c[k] = v
			}
		}
		set("command", v.Command, len(v.Command) > 0)
		set("args", v.Args, len(v.Args) > 0)
		set("restartPolicy", v.RestartPolicy, v.RestartPolicy != "")
		var env, mounts []any
		for _, e := range v.Env {
			env = append(env, map[string]any{"name": e.Name, "value": e.Value})
		}
		for _, m := range v.VolumeMounts {
			mounts = append(mounts, map[string]any{"name": m.VolumeName, "mountPath": m.MountPath})
		}
		set("env", env, env != nil)
		set("volumeMounts", mounts, mounts != nil)
		r := map[string]any{}
		if len(v.Resources.Limits) > 0 {
			r["limits"] = v.Resources.Limits
		}
		if len(v.Resources.Requests) > 0 {
			r["requests"] = v.Resources.Requests
		}
		set("resources", r, len(r) > 0)
		s.pod["initContainers"] = append(list(s.pod["initContainers"]), c)
	}
}
