package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend/kube/endpoint"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
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

type answers chan engine.Answered

func (a answers) Tell(_ string, e engine.Event) {
	if e.Answered != nil {
		a <- *e.Answered
	}
}

// A plugin that is not ready ends the wait by a call to the endpoint that also serves the pods, whose certificate the
// controller's authority has signed. Tokens are the same after a restart.
func TestPluginsCallBackAtTheTaskEndpoint(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("sluice")
	authority, err := endpoint.LoadAuthority(t.Context(), secrets, endpointObject)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan v1alpha1.TaskReviewRequest, 1)
	plugin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		review, err := v1alpha1.DecodeReview(data, v1alpha1.RefuseUnknown)
		if err != nil {
			t.Error(err)
			return
		}
		asked <- *review.Request
		fmt.Fprintf(w, `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":{"uid":%q,"pending":{"retryAfterSeconds":3600}}}`, review.Request.UID)
	}))
	defer plugin.Close()
	registered, err := hook.LoadFile("hooks.yaml", []byte("apiVersion: sluice.dev/v1alpha1\nkind: TaskHook\nmetadata: {name: slow}\nspec: {http: {url: \""+plugin.URL+"\"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	reg, err := hook.NewRegistry(registered)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	told := make(answers, 1)
	d, err := hook.New(hook.Config{Registry: reg, Sink: told, Callback: callbacksAt("https://"+l.Addr().String(), authority)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(t.Context()) }()
	pods := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	server := endpoint.NewServer(withCallbacks(pods, d.CallbackHandler()), authority.TLS("127.0.0.1"), slog.New(slog.DiscardHandler))
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(l, "", "") }()
	defer func() { _ = errors.Join(server.Close(), <-served) }()

	template := &program.Template{Key: "local/t", Name: "t", Source: program.JSON(`{"name":"t"}`)}
	d.Ask(t.Context(), engine.Run{Name: "flow", UID: "run", Namespace: "ml"}, &program.Program{Language: "argo", Name: "flow"}, engine.AskHook{
		Node: 1, Point: engine.Pre, Hook: "slow", Scope: "Task", UID: "u", Asked: time.Now(), Path: "flow.t", Name: "t", Template: template,
	})
	callback := (<-asked).Callback
	kept, err := secrets.Get(t.Context(), endpointObject, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(kept.Data["ca.crt"])
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	post := func(url, token string) int {
		t.Helper()
		body := `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":{"uid":"u","decision":"Run"}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	if got := post(callback.URL, "another"); got != http.StatusForbidden {
		t.Errorf("another token: %d", got)
	}
	if got := post("https://"+l.Addr().String()+"/v1/task", ""); got != http.StatusTeapot {
		t.Errorf("what pods ask: %d", got)
	}
	if got := post(callback.URL, callback.Token); got != http.StatusOK {
		t.Errorf("the answer: %d", got)
	}
	if a := <-told; a.Failure != "" || a.Answer.Decision != engine.DecideRun {
		t.Errorf("told %+v", a)
	}
	again, err := endpoint.LoadAuthority(t.Context(), secrets, endpointObject)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(callbacksAt("", again).Secret, callbacksAt("", authority).Secret) || bytes.Equal(again.Secret("a"), again.Secret("b")) {
		t.Error("the secret of tokens is not the authority's, for its purpose")
	}
}
