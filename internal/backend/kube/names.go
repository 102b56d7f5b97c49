package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/program"
)

type container = program.Container

// restartsAnnotation counts the pods before this one that the cluster lost before their commands began.
const restartsAnnotation = "sluice.dev/restarts"

// specVolume is the volume of a pod that holds its specification, see the package pod. Only what it names is this program's.
const specVolume = "sluice-spec"

// key identifies an attempt.
type key struct{ run, path string }

func (k key) identity() string { return pod.Identity(k.run, k.path) }

// keyOf reads which attempt a pod is for; false for a pod that is for none.
func keyOf(p *corev1.Pod) (key, bool) {
	run, path, ok := strings.Cut(p.Annotations[pod.IdentityAnnotation], "/")
	return key{run, path}, ok && run != "" && path != ""
}
