package argo

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/program"
)

// volumes gives the volumes that the containers mount, in the neutral form.
func (c *compiler) volumes(t *Template, containers []program.Container) []program.Volume {
	declared := map[string]corev1.Volume{}
	for _, v := range c.r.spec.Volumes {
		declared[v.Name] = v
	}
	maps.Copy(declared, c.capturing)
	for _, v := range t.Volumes {
		declared[v.Name] = v
	}
	claims := map[string]bool{}
	for _, claim := range c.r.spec.VolumeClaimTemplates {
		claims[claim.Name] = true
	}
	var out []program.Volume
	seen := map[string]bool{}
	for _, ctr := range containers {
		for _, m := range ctr.Mounts {
			if seen[m.Volume] {
				continue
			}
			seen[m.Volume] = true
			if v, ok := declared[m.Volume]; ok {
				out = append(out, volume(v))
			} else if claims[m.Volume] {
				out = append(out, program.Volume{Name: m.Volume, Kind: "claim", Source: m.Volume})
			}
		}
	}
	return out
}

func volume(v corev1.Volume) program.Volume {
	out := program.Volume{Name: v.Name, Kind: "other"}
	var items []corev1.KeyToPath
	switch {
	case v.EmptyDir != nil:
		out.Kind = "emptyDir"
	case v.ConfigMap != nil:
		out.Kind, out.Source, out.Optional, items = "configMap", v.ConfigMap.Name, deref(v.ConfigMap.Optional), v.ConfigMap.Items
	case v.Secret != nil:
		out.Kind, out.Source, out.Optional, items = "secret", v.Secret.SecretName, deref(v.Secret.Optional), v.Secret.Items
	case v.PersistentVolumeClaim != nil:
		out.Kind, out.Source = "claim", v.PersistentVolumeClaim.ClaimName
	case v.VolumeSource == corev1.VolumeSource{}:
		out.Kind = "emptyDir" // what Kubernetes makes of a volume without a source
	}
	for _, i := range items {
		if out.Items == nil {
			out.Items = map[string]string{}
		}
		out.Items[i.Key] = i.Path
	}
	return out
}

// podSettings is the part of a pod spec that manifests set, in Kubernetes' own JSON. Containers are sidecars; Argo's
// mirrorVolumeMounts stands in them as it was written.
type podSettings struct {
	NodeSelector                 map[string]string             `json:"nodeSelector,omitempty"`
	Affinity                     *corev1.Affinity              `json:"affinity,omitempty"`
	Tolerations                  []corev1.Toleration           `json:"tolerations,omitempty"`
	SchedulerName                string                        `json:"schedulerName,omitempty"`
	PriorityClassName            string                        `json:"priorityClassName,omitempty"`
	ServiceAccountName           string                        `json:"serviceAccountName,omitempty"`
	AutomountServiceAccountToken *bool                         `json:"automountServiceAccountToken,omitempty"`
	HostAliases                  []corev1.HostAlias            `json:"hostAliases,omitempty"`
	HostNetwork                  *bool                         `json:"hostNetwork,omitempty"`
	DNSPolicy                    *corev1.DNSPolicy             `json:"dnsPolicy,omitempty"`
	DNSConfig                    *corev1.PodDNSConfig          `json:"dnsConfig,omitempty"`
	ImagePullSecrets             []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	SecurityContext              *corev1.PodSecurityContext    `json:"securityContext,omitempty"`
	Volumes                      []corev1.Volume               `json:"volumes,omitempty"`
	InitContainers               []UserContainer               `json:"initContainers,omitempty"`
	Containers                   []UserContainer               `json:"containers,omitempty"`
	Resources                    *corev1.ResourceRequirements  `json:"resources,omitempty"`
	ResourceClaims               []corev1.PodResourceClaim     `json:"resourceClaims,omitempty"`
}

// json gives the settings' JSON, nil for none.
func (s podSettings) json() (program.JSON, error) {
	data, err := json.Marshal(s)
	if err != nil || string(data) == "{}" {
		return nil, err
	}
	return data, nil
}

// templatePod collects the pod settings of a template, and the workflow's volumes that only this template's inputs
// complete.
func (c *compiler) templatePod(t *Template, mounted []program.Volume) (program.JSON, error) {
	volumes := slices.Clone(t.Volumes)
	for _, v := range mounted {
		if rewritten, ok := c.capturing[v.Name]; ok && !slices.ContainsFunc(t.Volumes, func(own corev1.Volume) bool { return own.Name == v.Name }) {
			volumes = append(volumes, rewritten)
		}
	}
	return podSettings{
		NodeSelector: t.NodeSelector, Affinity: t.Affinity, Tolerations: t.Tolerations, SchedulerName: t.SchedulerName,
		PriorityClassName: t.PriorityClassName, ServiceAccountName: t.ServiceAccountName,
		AutomountServiceAccountToken: t.AutomountServiceAccountToken, HostAliases: t.HostAliases,
		SecurityContext: t.SecurityContext, Volumes: volumes, InitContainers: t.InitContainers, Containers: t.Sidecars,
		Resources: t.PodResources, ResourceClaims: t.ResourceClaims,
	}.json()
}

// pod collects the pod settings of the workflow, which are for all its pods.
func (c *compiler) pod() error {
	s := c.r.spec
	volumes := slices.DeleteFunc(slices.Clone(s.Volumes), func(v corev1.Volume) bool { _, ok := c.capturing[v.Name]; return ok })
	var err error
	c.p.Pod, err = podSettings{
		NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations, SchedulerName: s.SchedulerName,
		PriorityClassName: s.PodPriorityClassName, ServiceAccountName: c.p.ServiceAccount,
		AutomountServiceAccountToken: s.AutomountServiceAccountToken, HostAliases: s.HostAliases, HostNetwork: s.HostNetwork,
		DNSPolicy: s.DNSPolicy, DNSConfig: s.DNSConfig, ImagePullSecrets: s.ImagePullSecrets,
		SecurityContext: s.SecurityContext, Volumes: volumes, Resources: s.PodResources, ResourceClaims: s.ResourceClaims,
	}.json()
	return err
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
