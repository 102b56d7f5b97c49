package capacity

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Fargate are the rules of AWS Fargate for EKS, as its user guide has them (pages "Simplify compute management with AWS
// Fargate" and "Understand Fargate Pod configuration details").
type Fargate struct{}

// Name implements [Profile].
func (Fargate) Name() string { return "fargate" }

// Judge implements [Profile].
func (Fargate) Judge(pod *corev1.Pod) Verdict {
	f := &fargate{}
	f.host(&pod.Spec)
	f.placement(&pod.Spec)
	for i := range pod.Spec.InitContainers {
		f.container(fmt.Sprintf("spec.initContainers[%d]", i), &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		f.container(fmt.Sprintf("spec.containers[%d]", i), &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.Volumes {
		f.volume(fmt.Sprintf("spec.volumes[%d]", i), &pod.Spec.Volumes[i])
	}
	f.size(&pod.Spec)
	if len(f.v.Broken) > 0 {
		f.v.Size = Size{}
	}
	return f.v
}

type fargate struct{ v Verdict }

func (f *fargate) broken(path, format string, args ...any) {
	f.v.Broken = append(f.v.Broken, Finding{path, fmt.Sprintf(format, args...)})
}

func (f *fargate) note(path, format string, args ...any) {
	f.v.Notes = append(f.v.Notes, Finding{path, fmt.Sprintf(format, args...)})
}

// host: every pod has a machine of its own, so there is nothing of a host to share.
func (f *fargate) host(s *corev1.PodSpec) {
	for path, set := range map[string]bool{"spec.hostNetwork": s.HostNetwork, "spec.hostPID": s.HostPID, "spec.hostIPC": s.HostIPC} {
		if set {
			f.broken(path, "the host's namespaces cannot be shared")
		}
	}
	slices.SortFunc(f.v.Broken, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	if len(s.ResourceClaims) > 0 {
		f.broken("spec.resourceClaims", "devices cannot be claimed")
	}
	if s.RuntimeClassName != nil && *s.RuntimeClassName != "" {
		f.broken("spec.runtimeClassName", "no other runtime can be chosen")
	}
	if s.OS != nil && s.OS.Name == corev1.Windows {
		f.broken("spec.os.name", "Windows does not run there")
	}
}

// schedulers that a pod may name: Fargate's own is set by its webhook.
var schedulers = []string{"", "default-scheduler", "fargate-scheduler"}

func (f *fargate) placement(s *corev1.PodSpec) {
	if !slices.Contains(schedulers, s.SchedulerName) {
		f.broken("spec.schedulerName", "a pod of scheduler %q does not get there: leave it out", s.SchedulerName)
	}
	if len(s.TopologySpreadConstraints) > 0 {
		f.broken("spec.topologySpreadConstraints", "are not supported")
	}
	if s.NodeName != "" {
		f.broken("spec.nodeName", "a pod cannot name its node")
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		path, value := fmt.Sprintf("spec.nodeSelector[%q]", key), s.NodeSelector[key]
		switch {
		case key == corev1.LabelArchStable && value != "amd64":
			f.broken(path, "only amd64 is there, not %s", value)
		case key == corev1.LabelOSStable && value != "linux":
			f.broken(path, "only linux is there, not %s", value)
		case key == corev1.LabelArchStable, key == corev1.LabelOSStable:
		case key == "eks.amazonaws.com/compute-type" && value == "fargate":
		default:
			f.broken(path, "no node of the pool has this label")
		}
	}
	if s.Affinity != nil {
		f.note("spec.affinity", "is ignored")
	}
}

func (f *fargate) container(path string, c *corev1.Container) {
	if sc := c.SecurityContext; sc != nil {
		if sc.Privileged != nil && *sc.Privileged {
			f.broken(path+".securityContext.privileged", "privileged containers are refused")
		}
		if sc.Capabilities != nil {
			for _, add := range sc.Capabilities.Add {
				if !slices.Contains(defaultCapabilities, add) {
					f.broken(path+".securityContext.capabilities.add", "capability %s cannot be added", add)
				}
			}
		}
	}
	for i, p := range c.Ports {
		if p.HostPort != 0 {
			f.broken(fmt.Sprintf("%s.ports[%d].hostPort", path, i), "there is no host to have a port of")
		}
	}
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"requests", c.Resources.Requests}, {"limits", c.Resources.Limits}} {
		for _, name := range slices.Sorted(maps.Keys(list.of)) {
			if !plainResource(name) {
				f.broken(fmt.Sprintf("%s.resources.%s[%q]", path, list.name, name), "no such device is there: only CPU, memory and ephemeral storage")
			}
		}
	}
	if len(c.Resources.Claims) > 0 {
		f.broken(path+".resources.claims", "devices cannot be claimed")
	}
	if len(c.VolumeDevices) > 0 {
		f.broken(path+".volumeDevices", "block devices are not there")
	}
}

// defaultCapabilities are those that containers have anyway.
var defaultCapabilities = []corev1.Capability{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP",
	"SETUID", "SYS_CHROOT",
}

func plainResource(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return false
}

// volume: what lives in the pod, EFS and FSx-free network storage that exists already; nothing of a host, no block storage
// and nothing that is provisioned for the pod.
func (f *fargate) volume(path string, v *corev1.Volume) {
	s := v.VolumeSource
	switch {
	case s.HostPath != nil:
		f.broken(path+".hostPath", "there is no host whose path could be mounted")
	case s.AWSElasticBlockStore != nil:
		f.broken(path+".awsElasticBlockStore", "EBS volumes cannot be mounted")
	case s.Ephemeral != nil:
		f.broken(path+".ephemeral", "volumes cannot be provisioned for a pod: use an emptyDir")
	case s.CSI != nil:
		f.broken(path+".csi", "volumes of driver %s cannot be mounted", s.CSI.Driver)
	case s.Image != nil:
		f.broken(path+".image", "images cannot be mounted")
	case s.ISCSI != nil, s.FC != nil, s.RBD != nil, s.FlexVolume != nil, s.Glusterfs != nil, s.GCEPersistentDisk != nil, s.AzureDisk != nil:
		f.broken(path, "this kind of volume cannot be mounted")
	case s.EmptyDir != nil && strings.HasPrefix(string(s.EmptyDir.Medium), string(corev1.StorageMediumHugePages)):
		f.broken(path+".emptyDir.medium", "there are no huge pages")
	case s.PersistentVolumeClaim != nil:
		f.note(path+".persistentVolumeClaim", "must be bound to an EFS volume that exists: claim %s is not looked at here", s.PersistentVolumeClaim.ClaimName)
	}
}
