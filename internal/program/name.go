package program

import (
	"fmt"
	"hash/fnv"
)

// maxPrefix is what is left of the 253 characters of a Kubernetes object's name for what stands before the hash: Argo
// reserves ten for that, and one for the dash, also where the hash is shorter.
const maxPrefix = 253 - 10 - 1

// PodName is the name of an attempt's pod, as Argo builds it (POD_NAMES=v2): the run's name for the entry itself, else
// run, template and the 32-bit FNV-1a hash of the path, the first two cut so that all fit in 253 characters.
func PodName(run, template, path string) string {
	if path == run {
		return run
	}
	hash := fmt.Sprintf("%d", pathHash(path))
	prefix := run
	if template != "" {
		prefix += "-" + template
	}
	if len(prefix) > maxPrefix {
		prefix = prefix[:maxPrefix]
	}
	return prefix + "-" + hash
}

// NodeID is the ID that Argo gives the node of a path: the run's name for the entry itself, else that and the path's hash.
// Two paths of a large run may share one.
func NodeID(run, path string) string {
	if path == run {
		return run
	}
	return fmt.Sprintf("%s-%d", run, pathHash(path))
}

func pathHash(path string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return h.Sum32()
}
