package capacity

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func podOf(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// The sizes of the user guide, its own examples among them.
func TestFargateSize(t *testing.T) {
	for name, tt := range map[string]struct {
		spec string
		want string
	}{
		"nothing asked":            {`containers: [{name: main}]`, "0.25 vCPU, 0.5 GB, 20 GiB storage"},
		"memory with the overhead": {`containers: [{name: main, resources: {requests: {memory: 512Mi}}}]`, "0.25 vCPU, 1 GB, 20 GiB storage"},
		"the guide's example":      {`containers: [{name: main, resources: {requests: {cpu: "1", memory: 8Gi}}}]`, "2 vCPU, 9 GB, 20 GiB storage"},
		"limit as request":         {`containers: [{name: main, resources: {limits: {cpu: 500m, memory: 1Gi}}}]`, "0.5 vCPU, 2 GB, 20 GiB storage"},
		"sum of containers": {
			`containers: [{name: main, resources: {requests: {cpu: 600m, memory: 1Gi}}}, {name: side, resources: {requests: {cpu: 500m, memory: 1Gi}}}]`,
			"2 vCPU, 4 GB, 20 GiB storage",
		},
		"largest init container": {
			`{initContainers: [{name: a, resources: {requests: {cpu: "2"}}}, {name: b, resources: {requests: {cpu: "3"}}}], containers: [{name: main, resources: {requests: {cpu: "1"}}}]}`,
			"4 vCPU, 8 GB, 20 GiB storage",
		},
		"a sidecar that stays": {
			`{initContainers: [{name: a, restartPolicy: Always, resources: {requests: {cpu: "1"}}}], containers: [{name: main, resources: {requests: {cpu: "1"}}}]}`,
			"2 vCPU, 4 GB, 20 GiB storage",
		},
		"strides of 4": {`containers: [{name: main, resources: {requests: {cpu: "8", memory: 17Gi}}}]`, "8 vCPU, 20 GB, 20 GiB storage"},
		"largest":      {`containers: [{name: main, resources: {requests: {cpu: "16", memory: 119Gi}}}]`, "16 vCPU, 120 GB, 20 GiB storage"},
		"storage":      {`containers: [{name: main, resources: {requests: {ephemeral-storage: 100Gi}}}]`, "0.25 vCPU, 0.5 GB, 115 GiB storage"},
		"of the pod":   {`{resources: {requests: {cpu: "1"}}, containers: [{name: main}]}`, "1 vCPU, 2 GB, 20 GiB storage"},
	} {
		t.Run(name, func(t *testing.T) {
			v := Fargate{}.Judge(podOf(t, "spec: "+indent(tt.spec)))
			if !v.Fits() || v.Size.String() != tt.want {
				t.Errorf("%s, broken %v; want %s", v.Size, v.Broken, tt.want)
			}
		})
	}
}

func indent(spec string) string {
	if strings.HasPrefix(spec, "{") {
		return spec
	}
	return "{" + spec + "}"
}

func TestFargateRules(t *testing.T) {
	for want, spec := range map[string]string{
		"spec.containers[0].securityContext.privileged: privileged containers are refused":           `containers: [{name: main, securityContext: {privileged: true}}]`,
		"spec.containers[0].securityContext.capabilities.add: capability SYS_PTRACE cannot be added": `containers: [{name: main, securityContext: {capabilities: {add: [SYS_PTRACE, CHOWN]}}}]`,
		"spec.initContainers[0].securityContext.privileged: privileged containers are refused":       `{initContainers: [{name: a, securityContext: {privileged: true}}], containers: [{name: main}]}`,
		"spec.hostNetwork: the host's namespaces cannot be shared":                                   `{hostNetwork: true, containers: [{name: main}]}`,
		"spec.containers[0].ports[0].hostPort: there is no host to have a port of":                   `containers: [{name: main, ports: [{containerPort: 80, hostPort: 80}]}]`,
		`spec.containers[0].resources.limits["nvidia.com/gpu"]: no such device is there`:             `containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]`,
		`spec.nodeSelector["kubernetes.io/arch"]: only amd64 is there, not arm64`:                    `{nodeSelector: {kubernetes.io/arch: arm64}, containers: [{name: main}]}`,
		`spec.nodeSelector["pool"]: no node of the pool has this label`:                              `{nodeSelector: {pool: gpu}, containers: [{name: main}]}`,
		"spec.volumes[0].hostPath: there is no host whose path could be mounted":                     `{volumes: [{name: v, hostPath: {path: /var/run/docker.sock}}], containers: [{name: main}]}`,
		"spec.volumes[0].awsElasticBlockStore: EBS volumes cannot be mounted":                        `{volumes: [{name: v, awsElasticBlockStore: {volumeID: x}}], containers: [{name: main}]}`,
		"spec.volumes[0].ephemeral: volumes cannot be provisioned for a pod":                         `{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}], containers: [{name: main}]}`,
		"spec.schedulerName: a pod of scheduler \"volcano\" does not get there":                      `{schedulerName: volcano, containers: [{name: main}]}`,
		"spec.topologySpreadConstraints: are not supported":                                          `{topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}], containers: [{name: main}]}`,
		"spec.containers: asks for 17 vCPU and 1 GB":                                                 `containers: [{name: main, resources: {requests: {cpu: "17", memory: 1Gi}}}]`,
		"spec.containers: asks for 1 vCPU and 120 GB":                                                `containers: [{name: main, resources: {requests: {cpu: "1", memory: 120Gi}}}]`,
		"spec.containers: asks for 200 GiB of ephemeral storage: at most 175 GiB are there":          `containers: [{name: main, resources: {requests: {ephemeral-storage: 200Gi}}}]`,
		"spec.resourceClaims: devices cannot be claimed":                                             `{resourceClaims: [{name: gpu, resourceClaimName: x}], containers: [{name: main}]}`,
	} {
		v := Fargate{}.Judge(podOf(t, "spec: "+indent(spec)))
		var found []string
		for _, b := range v.Broken {
			found = append(found, b.Path+": "+b.Message)
		}
		if len(found) != 1 || !strings.HasPrefix(found[0], want) {
			t.Errorf("%s: broken %q, want one that begins %q", spec, found, want)
		}
	}
}

func TestFargateNotes(t *testing.T) {
	v := Fargate{}.Judge(podOf(t, `spec: {affinity: {nodeAffinity: {}}, volumes: [{name: v, persistentVolumeClaim: {claimName: shared}}, {name: e, emptyDir: {}}, {name: s, secret: {secretName: x}}, {name: c, configMap: {name: x}}], containers: [{name: main}]}`))
	if !v.Fits() || len(v.Notes) != 2 || v.Notes[0].Path != "spec.affinity" || !strings.Contains(v.Notes[1].Message, "claim shared") {
		t.Errorf("broken %v, notes %v", v.Broken, v.Notes)
	}
}

func TestPrices(t *testing.T) {
	p := Prices{CPU: 0.04, Memory: 0.004, Storage: 0.0001, FreeStorage: freeStorage}
	if got, want := p.PerHour(Size{MilliCPU: 500, Memory: 2048, Storage: freeStorage + 10<<10}), 0.02+0.008+0.001; got < want-1e-9 || got > want+1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}
