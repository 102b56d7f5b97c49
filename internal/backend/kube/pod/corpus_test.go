package pod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/engine"
)

// TestCorpusIsRestricted builds the pods of all manifests of the conformance corpora. Each must pass the Pod Security
// Standard "restricted", unless what the author wrote does not.
func TestCorpusIsRestricted(t *testing.T) {
	for _, which := range []string{"argo", "kfp"} {
		dir, entries := corpus(t, which)
		for _, e := range entries {
			if slices.Contains([]string{"rejected", "invalid", "argo"}, e.class) {
				continue
			}
			t.Run(which+"/"+e.path, func(t *testing.T) {
				m := e.manifest(t, dir)
				if _, _, err := m.compile(); err != nil {
					t.Skip(err)
				}
				simulate(t, m, nil, func(run engine.Run, cmd engine.StartTask) {
					if len(cmd.Body.Containers) == 0 {
						return
					}
					objects, err := Build(t.Context(), testConfig(), run, cmd, noImages{})
					if err != nil {
						if !strings.Contains(err.Error(), "could not be found out") {
							t.Errorf("%s: %v", cmd.Path, err)
						}
						return
					}
					checkPod(t, cmd, objects.Pod)
				})
			})
		}
	}
}

// checkPod checks what holds for every pod.
func checkPod(t *testing.T, cmd engine.StartTask, pod *corev1.Pod) {
	t.Helper()
	if found := Check(pod); len(found) > 0 {
		t.Logf("%s: %v", cmd.Path, found)
	}
}
