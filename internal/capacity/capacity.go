// Package capacity says whether a pool of machines takes a task's pod: what it breaks of the pool's rules, or at which size
// it is billed. It is pure: a profile and a pod in, a verdict out.
package capacity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Profile is a pool's rules.
type Profile interface {
	// Name is what users call it: "fargate".
	Name() string
	// Judge says whether the pool takes a pod. The pod is as it would be created.
	Judge(pod *corev1.Pod) Verdict
}

// Verdict is what a profile says of a pod.
type Verdict struct {
	// Size is what is billed where the pod fits.
	Size Size `json:"size,omitzero"`
	// Broken are the rules that keep it out, Notes what the pool would ignore or what cannot be known before.
	Broken []Finding `json:"broken,omitempty"`
	Notes  []Finding `json:"notes,omitempty"`
}

// Fits says whether the pool takes the pod.
func (v Verdict) Fits() bool { return len(v.Broken) == 0 }

// Finding is a rule and the field that it is about.
type Finding struct {
	// Path is the field in the pod, "spec.containers[0].securityContext.privileged".
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Size is what a pool bills for a pod.
type Size struct {
	// MilliCPU are thousandths of a virtual CPU, Memory and Storage MiB.
	MilliCPU int64 `json:"milliCPU"`
	Memory   int64 `json:"memoryMiB"`
	Storage  int64 `json:"storageMiB"`
}

// String gives a size as people write it: "0.25 vCPU, 0.5 GB, 20 GiB".
func (s Size) String() string {
	return fmt.Sprintf("%g vCPU, %g GB, %g GiB storage", float64(s.MilliCPU)/1000, float64(s.Memory)/1024, float64(s.Storage)/1024)
}

// Prices are what a pool asks, in any currency: for an hour of a virtual CPU, of a GiB of memory, and of a GiB of storage
// beyond what is free.
type Prices struct {
	CPU     float64 `json:"cpuHour"`
	Memory  float64 `json:"memoryGiBHour"`
	Storage float64 `json:"storageGiBHour"`
	// FreeStorage is in MiB.
	FreeStorage int64 `json:"freeStorageMiB"`
}

// PerHour is what a size costs for an hour.
func (p Prices) PerHour(s Size) float64 {
	const thousand, mib = 1000, 1024
	return p.CPU*float64(s.MilliCPU)/thousand + p.Memory*float64(s.Memory)/mib + p.Storage*float64(max(0, s.Storage-p.FreeStorage))/mib
}

// Named gives the profile of a kind.
func Named(kind string) (Profile, error) {
	i := slices.IndexFunc(Known(), func(p Profile) bool { return p.Name() == kind })
	if i < 0 {
		return nil, fmt.Errorf("there is no capacity profile %q: known are %v", kind, Names())
	}
	return Known()[i], nil
}

// Known are the profiles that there are.
func Known() []Profile { return []Profile{Fargate{}} }

// Names are their names.
func Names() []string {
	var names []string
	for _, p := range Known() {
		names = append(names, p.Name())
	}
	return names
}
