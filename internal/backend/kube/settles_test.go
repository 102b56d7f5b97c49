package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

func pendingWith(containers ...corev1.ContainerStatus) *corev1.Pod {
	return &corev1.Pod{Status: status(corev1.PodPending, containers...)}
}

func TestLags(t *testing.T) {
	deleted := pendingWith(exited("main", 0, "Completed", ""))
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"fast":        {pod: pendingWith(exited("main", 0, "Completed", "")), want: true},
		"failed fast": {pod: pendingWith(exited("main", 1, "Error", "")), want: true},
		"not begun":   {pod: pendingWith(held("main", "PodInitializing", ""))},
		"slow":        {pod: &corev1.Pod{Status: status(corev1.PodRunning, exited("main", 0, "Completed", ""))}},
		"over":        {pod: &corev1.Pod{Status: status(corev1.PodSucceeded, exited("main", 0, "Completed", ""))}},
		"deleted":     {pod: deleted},
	} {
		if got := lags(c.pod); got != c.want {
			t.Errorf("%s: it lags: %v, want %v", name, got, c.want)
		}
	}
}

// A task's end counts as soon as its container has ended. Its pod is let go, and its run's pods are settled, once the pod's
// phase says so, too.
func TestSettledOnceThePhaseFollows(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	start(t, b)
	eventually(t, c, "the pod", one)
	if err := b.AwaitSettled(t.Context(), aRun.UID); err != nil {
		t.Errorf("nothing is to be let go: %v", err)
	}
	p := c.pods(t)[0]
	zero := 0
	end := exited("main", 0, "Completed", report(t, spec.Result{Phase: spec.Succeeded, Ran: true, ExitCode: &zero}))
	if err := c.set(&p, status(corev1.PodPending, end)); err != nil {
		t.Fatal(err)
	}
	sink.end(t)
	b.Settled(aRun, "run.task")
	impatient := errors.New("impatient")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(impatient)
	if err := b.AwaitSettled(ctx, aRun.UID); !errors.Is(err, impatient) {
		t.Errorf("while the pod is Pending: %v, want %v", err, impatient)
	}
	if err := c.set(&p, status(corev1.PodSucceeded, end)); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitSettled(t.Context(), aRun.UID); err != nil {
		t.Fatal(err)
	}
	if left := c.pods(t)[0].Finalizers; len(left) > 0 {
		t.Errorf("finalizers are left: %q", left)
	}
}

// A pod whose phase never follows is let go all the same.
func TestSettledAlthoughThePhaseStays(t *testing.T) {
	c, sink := newCluster(), newTold()
	b := open(t, c, sink)
	start(t, b)
	eventually(t, c, "the pod", one)
	p := c.pods(t)[0]
	if err := c.set(&p, status(corev1.PodPending, exited("main", 1, "Error", ""))); err != nil {
		t.Fatal(err)
	}
	sink.end(t)
	b.Settled(aRun, "run.task")
	b.Settled(aRun, "run.task")
	if err := b.AwaitSettled(t.Context(), aRun.UID); err != nil {
		t.Fatal(err)
	}
	if left := c.pods(t)[0].Finalizers; len(left) > 0 {
		t.Errorf("finalizers are left: %q", left)
	}
}
