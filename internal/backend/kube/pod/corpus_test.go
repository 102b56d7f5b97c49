package pod

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/engine"
)

// TestCorpusIsRestricted builds the pods of all manifests of the conformance corpora, as Kubernetes judges them. None of
// them asks for more than "restricted" has, so all must pass.
func TestCorpusIsRestricted(t *testing.T) {
	cfg := testConfig()
	for _, image := range []string{"nginx:1.13", "nginx:latest", "influxdb:1.2", "argoproj/argosay:v1", "gcr.io/image"} { // those without a command
		cfg.ImageTable[image] = Image{Cmd: []string{"run"}}
	}
	for _, which := range []string{"argo", "kfp"} {
		dir, entries := corpus(t, which)
		pods := 0
		for _, e := range entries {
			if slices.Contains([]string{"rejected", "invalid", "argo"}, e.class) {
				continue
			}
			m := e.manifest(t, dir)
			if _, _, err := m.compile(); err != nil {
				continue // it is to fail, which the front ends' own tests look at
			}
			t.Run(which+"/"+e.path, func(t *testing.T) {
				simulate(t, m, nil, func(run engine.Run, cmd engine.StartTask) {
					if len(cmd.Body.Containers) == 0 {
						return
					}
					objects, err := Build(t.Context(), cfg, run, cmd, noImages{})
					if err != nil {
						t.Errorf("%s: %v", cmd.Path, err)
						return
					}
					pods++
					checkPod(t, objects.Pod)
					again, err := Build(t.Context(), cfg, run, cmd, noImages{})
					if diff := cmp.Diff(objects, again); err != nil || diff != "" {
						t.Errorf("%s: the same task gives another pod: %v %s", cmd.Path, err, diff)
					}
				})
			})
		}
		if pods < 100 {
			t.Errorf("only %d pods of %s were built", pods, which)
		}
	}
}

// checkPod checks what holds for every pod.
func checkPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if found, said := Check(pod), judge(t, pod); len(found) > 0 || said != "" {
		t.Errorf("%s: %v; Kubernetes says %q", pod.Name, found, said)
	}
	if n := len(pod.Spec.InitContainers); n == 0 || pod.Spec.InitContainers[0].Name != InitContainer {
		t.Errorf("%s: %d init containers, and the first is not the executor's", pod.Name, n)
	}
	mounted := map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			places := map[string]bool{}
			for _, m := range c.VolumeMounts {
				if places[m.MountPath] {
					t.Errorf("%s: %s has two volumes at %s", pod.Name, c.Name, m.MountPath)
				}
				places[m.MountPath], mounted[m.Name] = true, true
				if m.MountPath == "/" || slices.ContainsFunc(systemFolders(), func(s string) bool { return within(m.MountPath, s) }) && strings.HasPrefix(m.Name, "sluice") {
					t.Errorf("%s: %s hides %s", pod.Name, c.Name, m.MountPath)
				}
			}
		}
	}
	names := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		if names[v.Name] || !mounted[v.Name] {
			t.Errorf("%s: the volume %s is there twice, or for nothing", pod.Name, v.Name)
		}
		names[v.Name] = true
		delete(mounted, v.Name)
	}
	if len(mounted) > 0 {
		t.Errorf("%s: mounts volumes that there are not: %v", pod.Name, mounted)
	}
}
