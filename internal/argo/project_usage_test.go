package argo

import (
	"maps"
	"testing"
)

// `argo get` writes 1 as "1s*(100Mi memory)".
func TestUsage(t *testing.T) {
	for _, c := range []struct{ used, want map[string]int64 }{
		{nil, nil},
		{map[string]int64{"cpu": 2, "memory": 3 * 512 << 20}, map[string]int64{"cpu": 2, "memory": 15}},
		{map[string]int64{"cpu": 0, "memory": 280963}, map[string]int64{"cpu": 0, "memory": 0}},
		{map[string]int64{"memory": 60 << 20}, map[string]int64{"memory": 1}},
	} {
		before := maps.Clone(c.used)
		if got := usage(c.used); !maps.Equal(got, c.want) {
			t.Errorf("%v is shown as %v, want %v", c.used, got, c.want)
		}
		if !maps.Equal(c.used, before) {
			t.Errorf("%v became %v", before, c.used)
		}
	}
}
