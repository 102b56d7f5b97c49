package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"pgregory.net/rapid"
)

// judge is Kubernetes' own word on a pod: what of it the Pod Security Standard "restricted" forbids; empty for nothing.
func judge(t interface {
	Helper()
	Fatal(...any)
}, pod *corev1.Pod) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.MajorMinorVersion(1, 34)}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

// Whatever a pod says of its security, Check and Kubernetes agree whether that is "restricted".
func TestCheckAgreesWithKubernetes(t *testing.T) {
	broken, passed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		found, want := Check(pod), judge(t, pod)
		if (len(found) == 0) != (want == "") {
			t.Fatalf("Check says %v, Kubernetes %q, of %+v", found, want, pod.Spec)
		}
		if want == "" {
			passed++
		} else {
			broken++
		}
	})
	if broken == 0 || passed == 0 {
		t.Errorf("%d pods passed and %d did not: that shows nothing", passed, broken)
	}
}

// mostly draws the first value nine times of ten, so that pods pass now and then.
func mostly[T any](t *rapid.T, name string, values ...T) T {
	if rapid.IntRange(0, 9).Draw(t, name+"?") != 9 {
		return values[0]
	}
	return rapid.SampledFrom(values).Draw(t, name)
}

func ref[T any](v T) *T { return &v }

func drawPod(t *rapid.T) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	s := &pod.Spec
	s.HostNetwork, s.HostPID, s.HostIPC = mostly(t, "hostNetwork", false, true), mostly(t, "hostPID", false, true), mostly(t, "hostIPC", false, true)
	if mostly(t, "pod context", true, false) {
		s.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: mostly(t, "pod nonRoot", ref(true), nil, ref(false)), RunAsUser: mostly(t, "pod user", nil, ref(int64(0)), ref(int64(5))),
			SeccompProfile: drawSeccomp(t, "pod"), SELinuxOptions: drawSELinux(t, "pod"), AppArmorProfile: drawAppArmor(t, "pod"),
			Sysctls: mostly(t, "sysctls", nil, []corev1.Sysctl{{Name: "net.ipv4.tcp_rmem"}}, []corev1.Sysctl{{Name: "kernel.msgmax"}}),
		}
	}
	for _, v := range rapid.SliceOfN(rapid.IntRange(0, 20), 0, 2).Draw(t, "volumes") {
		sources := []corev1.VolumeSource{
			{EmptyDir: &corev1.EmptyDirVolumeSource{}}, {HostPath: &corev1.HostPathVolumeSource{}}, {NFS: &corev1.NFSVolumeSource{}}, {CSI: &corev1.CSIVolumeSource{}},
			{Secret: &corev1.SecretVolumeSource{}}, {Projected: &corev1.ProjectedVolumeSource{}}, {Image: &corev1.ImageVolumeSource{}},
			{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}, {Ephemeral: &corev1.EphemeralVolumeSource{}}, {ConfigMap: &corev1.ConfigMapVolumeSource{}},
		}
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "v", VolumeSource: sources[v%len(sources)]})
	}
	s.Containers = []corev1.Container{drawContainer(t, "a")}
	if rapid.Bool().Draw(t, "init") {
		s.InitContainers = []corev1.Container{drawContainer(t, "i")}
	}
	return pod
}

func drawContainer(t *rapid.T, name string) corev1.Container {
	c := corev1.Container{Name: name}
	c.Ports = mostly(t, name+" ports", nil, []corev1.ContainerPort{{HostPort: 80}}, []corev1.ContainerPort{{ContainerPort: 80}})
	get := &corev1.HTTPGetAction{Host: mostly(t, name+" host", "", "1.2.3.4")}
	c.LivenessProbe = mostly(t, name+" liveness", nil, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}})
	c.Lifecycle = mostly(t, name+" lifecycle", nil, &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: get}})
	if !mostly(t, name+" context", true, false) {
		return c
	}
	add := [][]corev1.Capability{nil, {"NET_BIND_SERVICE"}, {"NET_ADMIN"}}
	drop := [][]corev1.Capability{{"ALL"}, {"KILL", "ALL"}, {"KILL"}, nil}
	c.SecurityContext = &corev1.SecurityContext{
		Privileged:               mostly(t, name+" privileged", nil, ref(true), ref(false)),
		AllowPrivilegeEscalation: mostly(t, name+" escalation", ref(false), nil, ref(true)),
		Capabilities:             mostly(t, name+" capabilities", &corev1.Capabilities{Add: mostly(t, name+" add", add...), Drop: mostly(t, name+" drop", drop...)}, nil),
		RunAsNonRoot:             mostly(t, name+" nonRoot", nil, ref(true), ref(false)), RunAsUser: mostly(t, name+" user", nil, ref(int64(0)), ref(int64(5))),
		SeccompProfile: mostly(t, name+" seccomp", nil, drawSeccomp(t, name)), SELinuxOptions: drawSELinux(t, name), AppArmorProfile: drawAppArmor(t, name),
		ProcMount: mostly(t, name+" proc", nil, ref(corev1.UnmaskedProcMount), ref(corev1.DefaultProcMount)),
	}
	return c
}

func drawSeccomp(t *rapid.T, name string) *corev1.SeccompProfile {
	kind := mostly(t, name+" seccomp type", corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeLocalhost, corev1.SeccompProfileTypeUnconfined)
	return mostly(t, name+" seccomp profile", &corev1.SeccompProfile{Type: kind}, nil)
}

func drawSELinux(t *rapid.T, name string) *corev1.SELinuxOptions {
	return mostly(t, name+" selinux", nil, &corev1.SELinuxOptions{}, &corev1.SELinuxOptions{Type: "container_t"}, &corev1.SELinuxOptions{Type: "spc_t"},
		&corev1.SELinuxOptions{User: "u"}, &corev1.SELinuxOptions{Role: "r"})
}

func drawAppArmor(t *rapid.T, name string) *corev1.AppArmorProfile {
	return mostly(t, name+" apparmor", nil, &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}, &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault})
}

func TestCheckPatch(t *testing.T) {
	author := func() *corev1.PodSpec {
		return &corev1.PodSpec{
			ServiceAccountName: "sa",
			Containers: []corev1.Container{{Name: "main", Env: []corev1.EnvVar{secretVar("own")}}, {
				Name: "root", SecurityContext: &corev1.SecurityContext{RunAsUser: ref(int64(0))},
			}},
			Volumes: []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}},
		}
	}
	for name, test := range map[string]struct {
		patch func(*corev1.PodSpec)
		field string // the first that is broken; "" for none
	}{
		"nothing":     {func(*corev1.PodSpec) {}, ""},
		"a node pool": {func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"a": "b"} }, ""},
		"a node":      {func(s *corev1.PodSpec) { s.NodeName = "n" }, "spec.nodeName"},
		"an image":    {func(s *corev1.PodSpec) { s.Containers[0].Image = "x" }, ""},
		"root": {func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ref(int64(0))}
		}, "spec.containers[main].securityContext.capabilities.drop"},
		"less than it had":   {func(s *corev1.PodSpec) { s.Containers[1].SecurityContext.RunAsUser = ref(int64(5)) }, ""},
		"root for root":      {func(s *corev1.PodSpec) { s.Containers[1].SecurityContext.RunAsNonRoot = ref(false) }, "spec.containers[root].securityContext.runAsNonRoot"},
		"another container":  {func(s *corev1.PodSpec) { s.Containers = append(s.Containers, corev1.Container{Name: "x"}) }, ""},
		"a service account":  {func(s *corev1.PodSpec) { s.ServiceAccountName = "admin" }, "spec.serviceAccountName"},
		"its token":          {func(s *corev1.PodSpec) { s.AutomountServiceAccountToken = ref(true) }, "spec.automountServiceAccountToken"},
		"a token by volume":  {func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, tokenOf()) }, "spec.volumes[token].projected"},
		"a secret":           {func(s *corev1.PodSpec) { s.Containers[0].Env = append(s.Containers[0].Env, secretVar("x")) }, "spec.containers[main].env[x]"},
		"a secret elsewhere": {func(s *corev1.PodSpec) { s.Containers[1].Env = []corev1.EnvVar{secretVar("own")} }, "spec.containers[root].env[own]"},
		"all of a secret": {func(s *corev1.PodSpec) {
			s.Containers[0].EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
		}, "spec.containers[main].envFrom"},
		"another for a volume": {func(s *corev1.PodSpec) { s.Volumes[0].Secret.SecretName = "x" }, "spec.volumes[s]"},
		"a folder":             {func(s *corev1.PodSpec) { s.Volumes = append(s.Volumes, emptyDir("e")) }, ""},
		"the host": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
		}, "spec.volumes[h]"},
		"the host's network": {func(s *corev1.PodSpec) { s.HostNetwork = true }, "spec.hostNetwork"},
	} {
		t.Run(name, func(t *testing.T) {
			after := author()
			test.patch(after)
			got := ""
			if found := CheckPatch(author(), after); len(found) > 0 {
				got = found[0].Field
			}
			if got != test.field {
				t.Errorf("%q, want %q: %v", got, test.field, CheckPatch(author(), after))
			}
		})
	}
}

func secretVar(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
}

func tokenOf() corev1.Volume {
	return corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
	}}}
}

// The API server takes the account from its old field where the new one is empty: so does the check.
func TestCheckPatchOfOldField(t *testing.T) {
	before, after := &corev1.PodSpec{}, &corev1.PodSpec{DeprecatedServiceAccount: "admin"}
	if found := CheckPatch(before, after); len(found) != 1 || found[0].Field != "spec.serviceAccountName" {
		t.Errorf("another account by its old name: %v", found)
	}
	if found := CheckPatch(after, &corev1.PodSpec{ServiceAccountName: "admin"}); len(found) > 0 {
		t.Errorf("the same account by its new name: %v", found)
	}
}
