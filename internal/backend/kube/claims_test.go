package kube

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/sluice-ml/sluice/internal/engine"
)

func TestClaims(t *testing.T) {
	client := fake.NewClientset(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "run-foreign", Namespace: "ns"}})
	templates := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	names := func() []string {
		list, err := client.CoreV1().PersistentVolumeClaims("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range list.Items {
			out = append(out, c.Name)
		}
		slices.Sort(out)
		return out
	}
	for range 2 { // a second time makes nothing new
		if err := MakeClaims(t.Context(), client, aRun, templates); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(); !slices.Equal(got, []string{"run-a", "run-b", "run-foreign"}) {
		t.Fatal(got)
	}
	if err := MakeClaims(t.Context(), client, aRun, []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}}); err == nil {
		t.Error("another's claim is taken")
	}
	if err := DeleteClaims(t.Context(), client, aRun, templates, "", engine.FailedPhase); err != nil || len(names()) != 3 {
		t.Errorf("after a failure: %v %v", names(), err)
	}
	for range 2 {
		if err := DeleteClaims(t.Context(), client, aRun, templates, ClaimsOnCompletion, engine.FailedPhase); err != nil {
			t.Error(err)
		}
	}
	if got := names(); !slices.Equal(got, []string{"run-foreign"}) {
		t.Error(got)
	}
	if err := DeleteClaims(t.Context(), client, aRun, templates, "Never", engine.FailedPhase); err == nil {
		t.Error("an unknown strategy is accepted")
	}
}
