package argo

import "maps"

// memoryUnit is what Argo counts memory in, in bytes: a resource duration of 1 is 100 MiB for a second.
const memoryUnit = 100 << 20

// usage gives what a task used as Argo's clients show it: seconds of one processor, and seconds of [memoryUnit] of memory, rounded.
func usage(r map[string]int64) map[string]int64 {
	out := maps.Clone(r)
	if m, ok := out["memory"]; ok {
		out["memory"] = (m + memoryUnit/2) / memoryUnit
	}
	return out
}
