package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod that is let go late leaves a later pod of its name alone, and the ConfigMap that this one starts from.
func TestReleaseLeavesWhatIsAnothers(t *testing.T) {
	c := newCluster()
	b := open(t, c, newTold())
	p, err := c.CoreV1().Pods("ns").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "task", Namespace: "ns", Labels: map[string]string{}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Tracker().Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "task", Namespace: "ns"}}); err != nil {
		t.Fatal(err)
	}
	left := func() int {
		list, err := c.CoreV1().ConfigMaps("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	if err := b.release(t.Context(), reference{namespace: "ns", name: "task", uid: "an earlier one", configured: true}); err != nil || left() != 1 {
		t.Errorf("of an earlier pod: %v; %d ConfigMaps are left, want 1", err, left())
	}
	if err := b.release(t.Context(), reference{namespace: "ns", name: "task", uid: p.UID, configured: true}); err != nil || left() != 0 {
		t.Errorf("of the pod itself: %v; %d ConfigMaps are left, want none", err, left())
	}
}
