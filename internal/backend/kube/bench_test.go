package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

type counter struct{ finished int }

func (c *counter) Tell(_ string, e engine.Event) {
	if e.Finished != nil {
		c.finished++
	}
}

// BenchmarkEnds is the way from the informer's event to the told end, with 10,000 pods.
func BenchmarkEnds(b *testing.B) {
	const many = 10_000
	sink := &counter{}
	backend, err := New(Config{Client: newCluster(), Pod: pod.Config{ExecutorImage: "executor"}}, sink)
	if err != nil {
		b.Fatal(err)
	}
	defer backend.Close()
	zero := 0
	message := report(b, spec.Result{Phase: spec.Succeeded, ExitCode: &zero, Ran: true, Started: noon, Finished: noon, Parameters: map[string]any{"a": "b"}})
	for b.Loop() {
		b.StopTimer()
		var pods []*corev1.Pod
		clear(backend.attempts)
		clear(backend.byPod)
		for i := range many {
			cmd := aTask()
			cmd.Path = fmt.Sprintf("run.task(%d:x)", i)
			id := key{aRun.UID, cmd.Path}
			backend.attempts[id] = &attempt{b: backend, id: id, run: aRun, cmd: cmd, changed: make(chan struct{}, 1), discarded: map[types.UID]bool{}}
			pods = append(pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: "p", Namespace: aRun.Namespace, UID: types.UID(fmt.Sprint(i)), Annotations: map[string]string{pod.IdentityAnnotation: id.identity()},
				},
				Spec: corev1.PodSpec{NodeName: "node"}, Status: status(corev1.PodSucceeded, exited("main", 0, "Completed", message)),
			})
		}
		sink.finished = 0
		b.StartTimer()
		for _, p := range pods {
			backend.seen(p, false)
		}
		if sink.finished != many {
			b.Fatal(sink.finished)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/pod")
}
