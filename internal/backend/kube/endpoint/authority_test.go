package endpoint

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

// verify says whether a certificate is a server's, of an authority's, with a name, at a time.
func verify(t *testing.T, ca string, settings *tls.Config, name string, at time.Time) error {
	t.Helper()
	cert, err := settings.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca)) {
		t.Fatal("no certificate in it")
	}
	_, err = cert.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func TestAuthorityIsSharedAndReplacedInTime(t *testing.T) {
	secrets := fake.NewClientset().CoreV1().Secrets("sluice")
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	load := func() *Authority {
		t.Helper()
		a, err := loadAuthority(t.Context(), secrets, "ca", func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := load(), load()
	if first.CA() != second.CA() {
		t.Error("two controllers have two authorities")
	}
	settings := second.TLS("sluice.ns.svc", "10.0.0.1")
	for _, name := range []string{"sluice.ns.svc", "10.0.0.1"} {
		if err := verify(t, first.CA(), settings, name, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if verify(t, first.CA(), settings, "other.ns.svc", now) == nil {
		t.Error("it is good for another name")
	}
	old, _ := settings.GetCertificate(nil)
	now = now.Add(14 * 24 * time.Hour)
	if same, _ := settings.GetCertificate(nil); same != old {
		t.Error("made anew too early")
	}
	now = now.Add(20 * 24 * time.Hour) // beyond the end of the first one
	if err := verify(t, first.CA(), settings, "sluice.ns.svc", now); err != nil {
		t.Error(err)
	}
	now = now.Add(authorityLife - 100*24*time.Hour)
	third := load()
	if third.CA() == first.CA() {
		t.Error("the authority is about to run out and was not replaced")
	}
	if fourth := load(); fourth.CA() != third.CA() {
		t.Error("the new one was not kept")
	}
}

func TestAuthorityMadeByAnotherMeanwhile(t *testing.T) {
	clients := fake.NewClientset()
	secrets := clients.CoreV1().Secrets("sluice")
	var other *Authority
	clients.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		if other != nil {
			return false, nil, nil
		}
		made, data, err := newAuthority(time.Now)
		if err != nil {
			t.Fatal(err)
		}
		other = made
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "sluice"}, Data: data}
		if err := clients.Tracker().Create(corev1.SchemeGroupVersion.WithResource("secrets"), secret, "sluice"); err != nil {
			t.Fatal(err)
		}
		return true, nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, "ca")
	})
	mine, err := LoadAuthority(t.Context(), secrets, "ca")
	if err != nil || mine.CA() != other.CA() {
		t.Errorf("%v", err)
	}
}

func TestAuthorityThatIsNone(t *testing.T) {
	secrets := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ca", Namespace: "sluice"}, Data: map[string][]byte{authorityCert: []byte("x")}}).CoreV1().Secrets("sluice")
	if _, err := LoadAuthority(t.Context(), secrets, "ca"); err == nil || !strings.Contains(err.Error(), "(Secret ca): ") || !strings.Contains(err.Error(), "delete the Secret to have it made anew") {
		t.Error(err)
	}
}
