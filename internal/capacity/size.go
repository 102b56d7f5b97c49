package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// step is one CPU size of Fargate with the memory sizes that it comes with, in MiB.
type step struct {
	milliCPU            int64
	least, most, stride int64
	sizes               []int64 // in place of the range
}

// steps are Fargate's sizes, in ascending order.
var steps = []step{
	{milliCPU: 250, sizes: []int64{512, 1024, 2048}},
	{milliCPU: 500, least: 1024, most: 4096, stride: 1024},
	{milliCPU: 1000, least: 2048, most: 8192, stride: 1024},
	{milliCPU: 2000, least: 4096, most: 16384, stride: 1024},
	{milliCPU: 4000, least: 8192, most: 30720, stride: 1024},
	{milliCPU: 8000, least: 16384, most: 61440, stride: 4096},
	{milliCPU: 16000, least: 32768, most: 122880, stride: 8192},
}

// overhead is the memory, in MiB, that Fargate keeps for the kubelet and its like.
const overhead = 256

// Ephemeral storage of Fargate, in MiB: what there is without asking, at most, and what is added to what is asked for.
const (
	freeStorage  = 20 << 10
	mostStorage  = 175 << 10
	extraStorage = 15 << 10
)

// fit gives the smallest size that has the CPU and memory asked for.
func fit(milliCPU, memory int64) (step, int64, bool) {
	for _, s := range steps {
		if s.milliCPU < milliCPU {
			continue
		}
		if m, ok := s.memory(memory); ok {
			return s, m, true
		}
	}
	return step{}, 0, false
}

// memory rounds up to one of a step's sizes.
func (s step) memory(asked int64) (int64, bool) {
	for _, size := range s.sizes {
		if size >= asked {
			return size, true
		}
	}
	if s.sizes != nil || asked > s.most {
		return 0, false
	}
	if asked <= s.least {
		return s.least, true
	}
	return s.least + (asked-s.least+s.stride-1)/s.stride*s.stride, true
}

// size works out what a pod is billed for: the largest init container or the sum of those that run together, whichever is
// more, for each of CPU and memory, with the overhead, rounded up to a size.
func (f *fargate) size(s *corev1.PodSpec) {
	asked := func(name corev1.ResourceName, unit int64) int64 {
		var together, alone int64
		for i := range s.InitContainers {
			c := &s.InitContainers[i]
			n := request(c, name, unit)
			if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
				together += n
				continue
			}
			alone = max(alone, together+n)
		}
		for i := range s.Containers {
			together += request(&s.Containers[i], name, unit)
		}
		return max(alone, together)
	}
	const mib = 1 << 20
	cpu, memory, storage := asked(corev1.ResourceCPU, 0), asked(corev1.ResourceMemory, mib), asked(corev1.ResourceEphemeralStorage, mib)
	if s.Resources != nil { // of the pod as a whole, which go before those of its containers
		if q, ok := s.Resources.Requests[corev1.ResourceCPU]; ok {
			cpu = q.MilliValue()
		}
		if q, ok := s.Resources.Requests[corev1.ResourceMemory]; ok {
			memory = (q.Value() + mib - 1) / mib
		}
	}
	size, given, ok := fit(cpu, memory+overhead)
	if !ok {
		last := steps[len(steps)-1]
		f.broken("spec.containers", "asks for %g vCPU and %g GB; with %d MB for the platform that is more than the largest size, %g vCPU and %g GB",
			float64(cpu)/1000, float64(memory)/1024, overhead, float64(last.milliCPU)/1000, float64(last.most)/1024)
	}
	total := int64(freeStorage)
	if storage > 0 {
		total = max(total, min(storage+extraStorage, mostStorage))
	}
	if storage > mostStorage {
		f.broken("spec.containers", "asks for %g GiB of ephemeral storage: at most %d GiB are there", float64(storage)/1024, mostStorage>>10)
	}
	f.v.Size = Size{MilliCPU: size.milliCPU, Memory: given, Storage: total}
}

// request is what a container asks for: its request, else its limit. unit is in bytes; 0 is for thousandths.
func request(c *corev1.Container, name corev1.ResourceName, unit int64) int64 {
	var q resource.Quantity
	if r, ok := c.Resources.Requests[name]; ok {
		q = r
	} else if l, ok := c.Resources.Limits[name]; ok {
		q = l
	}
	if unit == 0 {
		return q.MilliValue()
	}
	return (q.Value() + unit - 1) / unit
}
