package argo

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// leaf checks the work of a task.
func (v *validator) leaf(p place, t *Template) {
	switch t.kind() {
	case "container":
		v.container(p.at("container"), t, t.Container, deref(v.r.spec.TemplateDefaults).Container)
	case "script":
		var defaults *corev1.Container
		if d := deref(v.r.spec.TemplateDefaults).Script; d != nil {
			defaults = &d.Container
		}
		v.container(p.at("script"), t, &t.Script.Container, defaults)
	case "containerSet":
		v.containerSet(p.at("containerSet"), t)
	case "resource":
		v.resource(p.at("resource"), t)
	case "http":
		v.http(p.at("http"), t.HTTP)
	case "data":
		for i, step := range t.Data.Transformation {
			v.expression(p.at("data.transformation").item(i).at("expression"), step.Expression)
		}
	case "plugin":
		v.plugin(p.at("plugin"))
	}
	for i, c := range t.InitContainers {
		v.mounts(p.at("initContainers").item(i), t, c.VolumeMounts)
	}
	for i, c := range t.Sidecars {
		if reserved(c.Name) {
			v.invalid(p.at("sidecars").item(i).at("name"), fmt.Sprintf("%s.sidecars: %q is a reserved Argo container name", p.name, c.Name), "%q is a name that the system uses; take another", c.Name)
		}
		v.mounts(p.at("sidecars").item(i), t, c.VolumeMounts)
	}
	if m := t.Memoize; m != nil {
		if m.Key == "" {
			v.late(p.at("memoize.key"), "must not be empty; use what makes the work the same, such as {{inputs.parameters.x}}")
		}
		if m.MaxAge != "" && !hasTag(m.MaxAge) && !validDuration(m.MaxAge) {
			v.late(p.at("memoize.maxAge"), "%s is not a duration; write one like 10s, 5m or 24h", shorten(m.MaxAge))
		}
	}
}

// podOnly checks what only a template with a pod of its own can have.
func (v *validator) podOnly(p place, t *Template) {
	if t.PodResources != nil && (t.HTTP != nil || t.Plugin != nil) {
		v.invalid(p.at("podResources"), fmt.Sprintf("%s.podResources is not supported for %s templates", p.name, t.kind()), "is not possible for %s templates, which have no pod of their own", t.kind())
	}
	v.podResources(p.at("podResources"), t.PodResources)
	if len(t.ResourceClaims) > 0 && (t.isGraph() || t.HTTP != nil || t.Plugin != nil || t.Suspend != nil) {
		v.invalid(p.at("resourceClaims"), fmt.Sprintf("%s.resourceClaims is not supported for %s templates, which do not create a pod", p.name, t.kind()), "is not possible for %s templates, which have no pod of their own", t.kind())
	}
}

// podResources checks resources of a whole pod: Kubernetes has fewer of them than of containers.
func (v *validator) podResources(p place, r *corev1.ResourceRequirements) {
	if r == nil {
		return
	}
	if len(r.Claims) > 0 {
		v.invalid(p.at("claims"), p.name+".claims is not supported for pod-level resources", "is not possible for a whole pod; use resourceClaims")
	}
	for field, list := range map[string]corev1.ResourceList{"limits": r.Limits, "requests": r.Requests} {
		for name := range list {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
				v.invalid(p.at(field).at(string(name)), fmt.Sprintf("%s: %q is not a valid pod-level resource, only cpu, memory and hugepages-* are supported", p.name, name),
					"is not possible for a whole pod; only cpu, memory and hugepages-* are")
			}
		}
	}
}

// reserved says whether a container name is one that Argo puts in pods itself.
func reserved(name string) bool {
	return name == "wait" || name == "supervisor" || strings.HasPrefix(name, "artifact-plugin-")
}

func (v *validator) container(p place, t *Template, c, defaults *corev1.Container) {
	if c.Image == "" && deref(defaults).Image == "" {
		v.invalid(p.at("image"), p.name+".image may not be empty", "must not be empty")
	}
	v.mounts(p, t, c.VolumeMounts)
}

// mounts checks that volumes exist and that no two things lie in one place.
func (v *validator) mounts(p place, t *Template, mounts []corev1.VolumeMount) {
	taken := map[string]string{}
	for i, m := range mounts {
		at := p.at("volumeMounts").item(i)
		if first, ok := taken[m.MountPath]; ok && !hasTag(m.MountPath) {
			problem := Problem{InvalidSpec: true, Upstream: fmt.Sprintf("%s.mountPath '%s' already mounted in %s", at.name, m.MountPath, first), Message: fmt.Sprintf("%s is already mounted by %s", m.MountPath, first)}
			problem.Warning = !strings.HasSuffix(p.path, ".container") // of others the pod is refused when its time comes
			v.add(at.at("mountPath"), problem)
		}
		taken[m.MountPath] = m.Name
		if !hasTag(m.Name) && !v.hasVolume(t, m.Name) {
			v.add(at.at("name"), Problem{Warning: true, Message: fmt.Sprintf("there is no volume %q; add it to the volumes of the template or the workflow", m.Name)})
		}
	}
	for i, a := range t.Inputs.Artifacts {
		if first, ok := taken[a.Path]; ok && a.Path != "" && !hasTag(a.Path) {
			at := p
			at.path = p.path[:strings.LastIndexByte(p.path, '.')] + fmt.Sprintf(".inputs.artifacts[%d].path", i)
			v.invalid(at, fmt.Sprintf("inputs.artifacts[%d].path '%s' already mounted in container.volumeMounts.%s", i, a.Path, first), "%s is already where volume %s is mounted", a.Path, first)
		}
	}
}

// hasVolume says whether a volume is declared anywhere.
func (v *validator) hasVolume(t *Template, name string) bool {
	is := func(x corev1.Volume) bool { return x.Name == name || hasTag(x.Name) }
	return slices.ContainsFunc(t.Volumes, is) || slices.ContainsFunc(v.r.spec.Volumes, is) ||
		slices.ContainsFunc(deref(v.r.spec.TemplateDefaults).Volumes, is) ||
		slices.ContainsFunc(v.r.spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name })
}

func (v *validator) containerSet(p place, t *Template) {
	set := t.ContainerSet
	if len(set.Containers) == 0 {
		v.invalid(p.at("containers"), p.name+".containers must have at least one container", "must have at least one container")
	}
	index, needs := map[string]int{}, make([][]int, len(set.Containers))
	for i, c := range set.Containers {
		at := p.at("containers").item(i)
		v.fieldName(at.at("name"), c.Name)
		if _, ok := index[c.Name]; ok && c.Name != "" {
			v.invalid(at.at("name"), fmt.Sprintf("%s.containers[%d].name '%s' is not unique", p.name, i, c.Name), "%s is also the name of another container; give each its own", shorten(c.Name))
		}
		if reserved(c.Name) {
			v.invalid(at.at("name"), fmt.Sprintf("%s.containers: %q is a reserved Argo container name", p.name, c.Name), "%q is a name that the system uses; take another", c.Name)
		}
		index[c.Name] = i
		v.mounts(at, &Template{Volumes: t.Volumes}, append(slices.Clone(set.VolumeMounts), c.VolumeMounts...))
	}
	for i, c := range set.Containers {
		for j, d := range c.Dependencies {
			n, ok := index[d]
			if !ok {
				v.invalid(p.at("containers").item(i).at("dependencies").item(j), fmt.Sprintf("%s.containers.%s dependency '%s' not defined", p.name, c.Name, d),
					"there is no container %q%s", d, maybe(nearest(d, index)))
				continue
			}
			needs[i] = append(needs[i], n)
		}
	}
	if cycle := findCycle(needs); cycle != nil {
		names := make([]string, len(cycle))
		for i, n := range cycle {
			names[i] = set.Containers[n].Name
		}
		v.invalid(p.at("containers"), p.name+".containers dependency cycle detected: "+strings.Join(names, "->"), "wait for each other in a circle: %s", strings.Join(names, " -> "))
	}
	if _, ok := index["main"]; !ok && (len(t.Inputs.Artifacts) > 0 || len(t.Outputs.Parameters) > 0 || len(t.Outputs.Artifacts) > 0) {
		v.invalid(p.at("containers"), p.name+`.containers must have a container named "main" for input or output`, `must have a container named "main", which has the inputs and outputs`)
	}
	if r := set.RetryStrategy; r != nil && r.Duration != "" && !hasTag(r.Duration) && !validDuration(r.Duration) {
		v.late(p.at("retryStrategy.duration"), "%s is not a duration; write one like 10s or 5m", shorten(r.Duration))
	}
}

func maybe(name string) string {
	if name == "" {
		return ""
	}
	return "; did you mean " + name + "?"
}

func (v *validator) resource(p place, t *Template) {
	r := t.Resource
	v.oneOf(p.at("action"), r.Action, "get", "create", "apply", "delete", "replace", "patch")
	v.oneOf(p.at("mergeStrategy"), r.MergeStrategy, "strategic", "merge", "json")
	switch {
	case r.Manifest != "" && r.ManifestFrom != nil:
		v.refuse(p, "has both manifest and manifestFrom; keep one")
	case r.Manifest == "" && r.ManifestFrom == nil && r.Action != "delete" && r.Action != "get":
		v.invalid(p.at("manifest"), fmt.Sprintf("either %s.manifest or %s.manifestFrom must be specified", p.name, p.name), "is missing; give manifest or manifestFrom")
	}
	if r.ManifestFrom != nil && r.ManifestFrom.Artifact != nil {
		name := r.ManifestFrom.Artifact.Name
		if !slices.ContainsFunc(t.Inputs.Artifacts, func(a Artifact) bool { return a.Name == name }) {
			v.invalid(p.at("manifestFrom.artifact.name"), fmt.Sprintf("artifact %s in `manifestFrom` refer to a non-exist artifact", name), "there is no input artifact %q; add it to inputs.artifacts", name)
		}
	}
	if r.Manifest != "" && !hasTag(r.Manifest) && r.Action != "delete" && r.Action != "get" {
		if _, _, err := parseDocuments([]byte(r.Manifest)); err != nil {
			v.invalid(p.at("manifest"), p.name+".manifest must be a valid yaml", "%v", err)
		}
	}
}

func (v *validator) http(p place, h *HTTP) {
	if h.URL == "" {
		v.late(p.at("url"), "is missing")
	}
	v.unusual(p.at("method"), strings.ToUpper(h.Method), "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE")
	if h.Body != "" && h.BodyFrom != nil {
		v.late(p.at("bodyFrom"), "cannot be given together with body; keep one")
	}
	if h.TimeoutSeconds != nil && *h.TimeoutSeconds < 0 {
		v.late(p.at("timeoutSeconds"), "must not be negative")
	}
	v.expression(p.at("successCondition"), h.SuccessCondition)
}

// plugin checks that exactly one plugin is named.
func (v *validator) plugin(p place) {
	node, ok := p.doc.tree.find(p.path)
	if !ok {
		return
	}
	if node.kind != mapNode || len(node.keys) != 1 {
		v.refuse(p, "must have exactly one field: the plugin's name, with what is for it")
	}
}
