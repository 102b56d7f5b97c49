package program

import (
	"fmt"
	"hash/fnv"
)

// maxName is the longest name of a Kubernetes object.
const maxName = 253

// PodName is the name of an attempt's pod, as Argo builds it (POD_NAMES=v2): the run's name for the entry itself, else
// run, template and the 32-bit FNV-1a hash of the path, the first two cut so that all fit in 253 characters.
func PodName(run, template, path string) string {
	if path == run {
		return run
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	hash := fmt.Sprintf("%d", h.Sum32())
	prefix := run
	if template != "" {
		prefix += "-" + template
	}
	if most := maxName - len(hash) - 1; len(prefix) > most {
		prefix = prefix[:most]
	}
	return prefix + "-" + hash
}
