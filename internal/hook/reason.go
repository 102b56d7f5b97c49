package hook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// busyError is a plugin that said when to come again (429 or 503 with Retry-After).
type busyError struct {
	status string
	after  time.Duration
}

func (e *busyError) Error() string { return e.status }

// reasonOf says in a few words why a call failed, for the message that the task shows. It leaves out what people know
// already (the method, the URL) and never contains a secret.
func reasonOf(err error) string {
	var (
		timeout errTimeout
		dns     *net.DNSError
		number  syscall.Errno
		unknown x509.UnknownAuthorityError
		verify  *tls.CertificateVerificationError
		host    x509.HostnameError
		asked   *url.Error
		file    *fs.PathError
	)
	switch {
	case errors.As(err, &timeout):
		return timeout.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns):
		return "no such host " + dns.Name
	case errors.As(err, &host):
		return clip("TLS: "+host.Error(), 200)
	case errors.As(err, &unknown):
		return "TLS: its certificate is signed by an unknown authority (caBundle?)"
	case errors.As(err, &verify):
		return clip("TLS: "+verify.Err.Error(), 200)
	case errors.As(err, &file): // a secret's: which one matters
		return clip(strings.TrimSpace(err.Error()), 300)
	case errors.As(err, &number):
		return number.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection without an answer"
	case errors.As(err, &asked):
		err = asked.Err
	}
	return clip(strings.TrimSpace(err.Error()), 300)
}

// DialPublic connects, but not to link-local addresses: there a cloud answers with the machine's credentials.
func DialPublic(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		host, _, _ = strings.Cut(host, "%")
		if ip := net.ParseIP(host); ip != nil && (ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()) {
			return fmt.Errorf("link-local addresses (%s) are not called", host)
		}
		return nil
	}}
	return dialer.DialContext(ctx, network, address)
}
