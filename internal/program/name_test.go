package program

import (
	"strings"
	"testing"
)

func TestPodName(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, tc := range []struct{ run, template, path, want string }{
		{"wf", "main", "wf", "wf"},
		{"wf", "echo", "wf[0].a", "wf-echo-3986212215"},
		{"wf", "", "wf.a", "wf-2962115457"},
		{"wf", long, "wf.a", "wf-" + long[:239] + "-2962115457"},
	} {
		got := PodName(tc.run, tc.template, tc.path)
		if got != tc.want {
			t.Errorf("the pod of %s is %s, want %s", tc.path, got, tc.want)
		}
		if len(got) > 253 {
			t.Errorf("%s has %d characters", got, len(got))
		}
	}
}

func TestNodeID(t *testing.T) {
	for path, want := range map[string]string{"wf": "wf", "wf[0].a": "wf-3986212215", "wf.a": "wf-2962115457"} {
		if got := NodeID("wf", path); got != want {
			t.Errorf("the ID of %s is %s, want %s", path, got, want)
		}
	}
}
