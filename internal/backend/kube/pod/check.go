package pod

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Violation is a rule that a pod breaks.
type Violation struct {
	// Field is the path of what breaks it, as "spec.containers[main].securityContext.privileged".
	Field string
	// Rule says what is demanded.
	Rule string
}

func (v Violation) String() string { return v.Field + " " + v.Rule }

// Check lists what of a pod breaks the Pod Security Standard "restricted" (as of Kubernetes 1.34: later ones allow more), in
// the order of the fields; nothing for a pod that passes. What is relaxed for Windows and user namespaces is not.
func Check(pod *corev1.Pod) []Violation {
	v := &violations{}
	s := &pod.Spec
	v.host(s)
	v.volumes(s)
	sc := s.SecurityContext
	if sc == nil {
		sc = &corev1.PodSecurityContext{}
	}
	v.podContext(sc)
	eachContainer(s, func(field string, c *corev1.Container) {
		v.container("spec."+field, sc, c)
	})
	return v.found
}

// eachContainer visits all containers of a pod with the names of their fields.
func eachContainer(s *corev1.PodSpec, visit func(field string, c *corev1.Container)) {
	for i := range s.InitContainers {
		visit("initContainers["+s.InitContainers[i].Name+"]", &s.InitContainers[i])
	}
	for i := range s.Containers {
		visit("containers["+s.Containers[i].Name+"]", &s.Containers[i])
	}
	for i := range s.EphemeralContainers {
		c := corev1.Container(s.EphemeralContainers[i].EphemeralContainerCommon)
		visit("ephemeralContainers["+c.Name+"]", &c)
	}
}

type violations struct{ found []Violation }

func (v *violations) add(broken bool, field, rule string, args ...any) {
	if one := (Violation{Field: field, Rule: fmt.Sprintf(rule, args...)}); broken && !slices.Contains(v.found, one) {
		v.found = append(v.found, one)
	}
}

func (v *violations) host(s *corev1.PodSpec) {
	v.add(s.HostNetwork, "spec.hostNetwork", "must not be true")
	v.add(s.HostPID, "spec.hostPID", "must not be true")
	v.add(s.HostIPC, "spec.hostIPC", "must not be true")
}

// volumes checks their kinds.
func (v *violations) volumes(s *corev1.PodSpec) {
	for _, one := range s.Volumes {
		kind := volumeKind(one)
		v.add(!slices.Contains(allowedVolumes(), kind), "spec.volumes["+one.Name+"]", "must not be of kind %s", kind)
	}
}

func allowedVolumes() []string {
	return []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}
}

func (v *violations) podContext(sc *corev1.PodSecurityContext) {
	const field = "spec.securityContext."
	v.add(sc.RunAsNonRoot != nil && !*sc.RunAsNonRoot, field+"runAsNonRoot", "must not be false")
	v.add(sc.RunAsUser != nil && *sc.RunAsUser == 0, field+"runAsUser", "must not be 0")
	v.seccomp(field, sc.SeccompProfile)
	v.selinux(field, sc.SELinuxOptions)
	v.appArmor(field, sc.AppArmorProfile)
	v.add(sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil && *sc.WindowsOptions.HostProcess, field+"windowsOptions.hostProcess", "must not be true")
	for _, ctl := range sc.Sysctls {
		v.add(!slices.Contains(safeSysctls(), ctl.Name), field+"sysctls["+ctl.Name+"]", "is not among the safe ones")
	}
}

func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
		"net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
		"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
	}
}

func (v *violations) container(field string, pod *corev1.PodSecurityContext, c *corev1.Container) {
	sc := c.SecurityContext
	if sc == nil {
		sc = &corev1.SecurityContext{}
	}
	for _, p := range c.Ports {
		v.add(p.HostPort != 0, field+".ports.hostPort", "must not be set")
	}
	field += ".securityContext."
	v.add(sc.Privileged != nil && *sc.Privileged, field+"privileged", "must not be true")
	v.add(sc.AllowPrivilegeEscalation == nil || *sc.AllowPrivilegeEscalation, field+"allowPrivilegeEscalation", "must be false")
	v.add(!drops(sc.Capabilities, "ALL"), field+"capabilities.drop", `must have "ALL"`)
	if sc.Capabilities != nil {
		for _, name := range sc.Capabilities.Add {
			v.add(name != "NET_BIND_SERVICE", field+"capabilities.add", "must not have %q", name)
		}
	}
	nonRoot := sc.RunAsNonRoot
	if nonRoot == nil && (pod.RunAsNonRoot == nil || *pod.RunAsNonRoot) { // else it is said of the pod
		nonRoot = pod.RunAsNonRoot
		v.add(nonRoot == nil, field+"runAsNonRoot", "must be true")
	}
	v.add(sc.RunAsNonRoot != nil && !*sc.RunAsNonRoot, field+"runAsNonRoot", "must not be false")
	v.add(sc.RunAsUser != nil && *sc.RunAsUser == 0, field+"runAsUser", "must not be 0")
	v.add(sc.SeccompProfile == nil && pod.SeccompProfile == nil, field+"seccompProfile", "must be RuntimeDefault or Localhost")
	v.seccomp(field, sc.SeccompProfile)
	v.selinux(field, sc.SELinuxOptions)
	v.appArmor(field, sc.AppArmorProfile)
	v.add(sc.ProcMount != nil && *sc.ProcMount != corev1.DefaultProcMount, field+"procMount", "must be Default")
	v.add(sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil && *sc.WindowsOptions.HostProcess, field+"windowsOptions.hostProcess", "must not be true")
	v.probes(field, c)
}

// probes checks that the kubelet is not sent to other machines.
func (v *violations) probes(field string, c *corev1.Container) {
	field = field[:len(field)-len("securityContext.")]
	for name, p := range map[string]*corev1.Probe{"livenessProbe": c.LivenessProbe, "readinessProbe": c.ReadinessProbe, "startupProbe": c.StartupProbe} {
		if p == nil {
			continue
		}
		v.add(p.HTTPGet != nil && p.HTTPGet.Host != "" || p.TCPSocket != nil && p.TCPSocket.Host != "", field+name+".host", "must not be set")
	}
	if c.Lifecycle == nil {
		return
	}
	for name, h := range map[string]*corev1.LifecycleHandler{"postStart": c.Lifecycle.PostStart, "preStop": c.Lifecycle.PreStop} {
		if h == nil {
			continue
		}
		v.add(h.HTTPGet != nil && h.HTTPGet.Host != "" || h.TCPSocket != nil && h.TCPSocket.Host != "", field+"lifecycle."+name+".host", "must not be set")
	}
}

func drops(c *corev1.Capabilities, name corev1.Capability) bool {
	return c != nil && slices.Contains(c.Drop, name)
}

func (v *violations) seccomp(field string, p *corev1.SeccompProfile) {
	v.add(p != nil && p.Type != corev1.SeccompProfileTypeRuntimeDefault && p.Type != corev1.SeccompProfileTypeLocalhost,
		field+"seccompProfile", "must be RuntimeDefault or Localhost")
}

func (v *violations) selinux(field string, o *corev1.SELinuxOptions) {
	if o == nil {
		return
	}
	v.add(!slices.Contains([]string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}, o.Type), field+"seLinuxOptions.type", "must not be %q", o.Type)
	v.add(o.User != "" || o.Role != "", field+"seLinuxOptions", "must not set user or role")
}

func (v *violations) appArmor(field string, p *corev1.AppArmorProfile) {
	v.add(p != nil && p.Type == corev1.AppArmorProfileTypeUnconfined, field+"appArmorProfile", "must not be Unconfined")
}
