package pod

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// CheckPatch lists what a patch gives a pod that its author did not: what breaks the Pod Security Standard "restricted" and
// did not before, another service account or its token, secrets, volumes of kinds that reach outside of the pod, and a
// node that the scheduler has no say in.
func CheckPatch(before, after *corev1.PodSpec) []Violation {
	v := &violations{}
	old := Check(&corev1.Pod{Spec: hardened(before)})
	for _, found := range Check(&corev1.Pod{Spec: hardened(after)}) {
		if !slices.Contains(old, found) {
			v.found = append(v.found, found)
		}
	}
	v.add(accountOf(before) != accountOf(after), "spec.serviceAccountName", "must stay %q", accountOf(before))
	v.add(isTrue(after.AutomountServiceAccountToken) && !isTrue(before.AutomountServiceAccountToken), "spec.automountServiceAccountToken", "must not be switched on")
	v.add(before.NodeName != after.NodeName, "spec.nodeName", "must not be set: use nodeSelector or affinity")
	v.secrets(before, after)
	return v.found
}

// accountOf is the service account of a pod: the API server takes it from the old field, too, where the new one is empty.
func accountOf(s *corev1.PodSpec) string {
	if s.ServiceAccountName == "" {
		return s.DeprecatedServiceAccount
	}
	return s.ServiceAccountName
}

// hardened is a pod as it will be, for a comparison.
func hardened(s *corev1.PodSpec) corev1.PodSpec {
	out := s.DeepCopy()
	harden(out, defaultUser, nil)
	return *out
}

// secrets looks for Secrets and volumes that were not there before.
func (v *violations) secrets(before, after *corev1.PodSpec) {
	old := secretRefs(before)
	for _, ref := range secretRefs(after) {
		v.add(!slices.Contains(old, ref), ref.Field, "must not take the Secret %s", ref.Rule)
	}
	for _, one := range after.Volumes {
		same := func(o corev1.Volume) bool { return equality.Semantic.DeepEqual(o, one) }
		if slices.ContainsFunc(before.Volumes, same) {
			continue
		}
		switch kind := volumeKind(one); kind {
		case "configMap", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim":
		case "projected":
			for _, source := range one.Projected.Sources {
				v.add(source.Secret != nil || source.ServiceAccountToken != nil, "spec.volumes["+one.Name+"].projected", "must not have a Secret or token")
			}
		default:
			v.add(true, "spec.volumes["+one.Name+"]", "must not be of kind %s", kind)
		}
	}
}

// secretRefs lists the Secrets that the variables of a pod take: the field, and the Secret in Rule's place.
func secretRefs(s *corev1.PodSpec) []Violation {
	var out []Violation
	eachContainer(s, func(field string, c *corev1.Container) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				ref := e.ValueFrom.SecretKeyRef
				out = append(out, Violation{"spec." + field + ".env[" + e.Name + "]", ref.Name + "/" + ref.Key})
			}
		}
		for _, e := range c.EnvFrom {
			if e.SecretRef != nil {
				out = append(out, Violation{"spec." + field + ".envFrom", e.SecretRef.Name})
			}
		}
	})
	return out
}

// volumeKind names the kind of a volume's source as its field does; "emptyDir" for none, which Kubernetes takes for one.
func volumeKind(v corev1.Volume) string {
	source := reflect.ValueOf(v.VolumeSource)
	for i := range source.NumField() {
		if !source.Field(i).IsNil() {
			name, _, _ := strings.Cut(source.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return "emptyDir"
}

func isTrue(b *bool) bool { return b != nil && *b }
