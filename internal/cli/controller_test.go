package cli

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/program"
)

// A workflow reads the Secrets of its own namespace as they are now, and of the controller's files those of its namespace only.
func TestStoresOfANamespace(t *testing.T) {
	core := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "s"}, Data: map[string][]byte{"k": []byte("one")},
	})
	opts := runArtifacts(core, "/data/artifacts", "ml")
	if v, err := opts.Secrets("s", "k"); v != "one" || err != nil {
		t.Errorf("%q %v", v, err)
	}
	changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "s"}, Data: map[string][]byte{"k": []byte("two")}}
	if _, err := core.CoreV1().Secrets("ml").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := opts.Secrets("s", "k"); v != "two" || err != nil {
		t.Errorf("%q %v after the Secret has changed", v, err)
	}
	if _, err := runArtifacts(core, "/data/artifacts", "other").Secrets("s", "k"); err == nil || errors.Is(err, artifact.ErrNotNow) {
		t.Errorf("the Secret of another namespace: %v", err)
	}
	if _, err := opts.Secrets("s", "none"); err == nil || errors.Is(err, artifact.ErrNotNow) {
		t.Errorf("a key that is not there: %v", err)
	}
	core.PrependReactor("get", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServiceUnavailable("busy")
	})
	if _, err := opts.Secrets("s", "k"); !errors.Is(err, artifact.ErrNotNow) {
		t.Errorf("an API server that is busy: %v", err)
	}
	for uri, may := range map[string]bool{
		"/data/artifacts/ml/run-1/x": true, "/data/artifacts/other/run-1/x": false, "/data/artifacts": false,
		"file:///var/run/secrets/kubernetes.io/serviceaccount/token": false,
	} {
		if _, err := artifact.OpenArtifact(program.Artifact{URI: uri}, opts); errors.Is(err, artifact.ErrOutside) == may {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

func TestHTTPTemplatesReachNoMetadataService(t *testing.T) {
	transport := publicTransport()
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://169.254.169.254/latest", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := transport.RoundTrip(req); err == nil {
		_ = answer.Body.Close()
		t.Error("the metadata service of the machine was asked")
	} else if want := "link-local addresses (169.254.169.254) are not called"; !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
