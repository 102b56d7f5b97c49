package endpoint

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// How long certificates are good for. The authority's is in the specification of every pod that runs; the endpoint's own
// is made anew, in memory, after half of its time.
const (
	authorityLife = 10 * 365 * 24 * time.Hour
	authorityRest = 90 * 24 * time.Hour // with less left it is replaced when a controller starts
	serverLife    = 30 * 24 * time.Hour
	clockSkew     = time.Hour
)

// The keys of the Secret that holds an authority.
const (
	authorityCert = "ca.crt"
	authorityKey  = "ca.key"
)

// Authority is a certificate authority of this installation's own. All its controllers share it by a Secret, so that a pod
// trusts whichever of them leads.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  func() time.Time
}

// LoadAuthority takes the authority from a Secret, which it makes where there is none.
func LoadAuthority(ctx context.Context, secrets coreclient.SecretInterface, name string) (*Authority, error) {
	a, err := loadAuthority(ctx, secrets, name, time.Now)
	if err != nil {
		return nil, fmt.Errorf("certificate authority of the task endpoint (Secret %s): %w", name, err)
	}
	return a, nil
}

func loadAuthority(ctx context.Context, secrets coreclient.SecretInterface, name string, now func() time.Time) (*Authority, error) {
	const tries = 5 // other controllers may start at the same time
	var err error
	for range tries {
		var kept *corev1.Secret
		if kept, err = secrets.Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		missing := err != nil
		if !missing {
			a, err := parseAuthority(kept.Data, now)
			if err != nil {
				return nil, fmt.Errorf("%w: delete the Secret to have it made anew", err)
			}
			if now().Add(authorityRest).Before(a.cert.NotAfter) {
				return a, nil
			}
		}
		a, data, e := newAuthority(now)
		if e != nil {
			return nil, e
		}
		if missing {
			_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		} else {
			kept.Data = data
			_, err = secrets.Update(ctx, kept, metav1.UpdateOptions{})
		}
		switch {
		case err == nil:
			return a, nil
		case !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return nil, err
}

// Secret derives a secret for a purpose, the same whenever this authority is loaded: who has it learns nothing of the key.
func (a *Authority) Secret(purpose string) []byte {
	key, err := a.key.Bytes()
	if err != nil { // the curve is one of the standard library's
		panic(fmt.Sprintf("task endpoint: the authority's key: %v", err))
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte("sluice " + purpose))
	return h.Sum(nil)
}

func newAuthority(now func() time.Time) (*Authority, map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Sluice task endpoint"}, NotBefore: now().Add(-clockSkew), NotAfter: now().Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := issue(template, template, key, key)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return &Authority{cert: cert, key: key, now: now}, map[string][]byte{
		authorityCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		authorityKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}),
	}, nil
}

func parseAuthority(data map[string][]byte, now func() time.Time) (*Authority, error) {
	pair, err := tls.X509KeyPair(data[authorityCert], data[authorityKey])
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !cert.IsCA {
		return nil, errors.New("it is no authority that this program has made")
	}
	return &Authority{cert: cert, key: key, now: now}, nil
}

func issue(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	var err error
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(raw)
}

// CA is the authority's certificate as PEM: what pods trust the endpoint by.
func (a *Authority) CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// TLS are the settings of a server with these names, DNS names or IP addresses.
func (a *Authority) TLS(names ...string) *tls.Config {
	var mu sync.Mutex
	var current *tls.Certificate
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			if current != nil && a.now().Add(serverLife/2).Before(current.Leaf.NotAfter) {
				return current, nil
			}
			made, err := a.serverCertificate(names)
			if err == nil {
				current = made
			}
			return made, err
		},
	}
}

func (a *Authority) serverCertificate(names []string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Sluice task endpoint"}, NotBefore: a.now().Add(-clockSkew), NotAfter: a.now().Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	cert, err := issue(template, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate of the task endpoint: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert}, nil
}

// NewServer is an HTTPS server for the endpoint: start it with ServeTLS(listener, "", ""). A whole transfer has no time limit,
// since artifacts have no size limit; a peer that has gone is noticed by TCP.
func NewServer(handler http.Handler, settings *tls.Config, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: handler, TLSConfig: settings, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
