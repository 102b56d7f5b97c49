package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// client reaches one HTTP plugin.
type client struct {
	http    *http.Client
	url     string
	made    string // from what
	agent   string
	secrets Secrets
	tokens  Tokens
}

// client gives the hook's HTTP client, and makes it where it is new or the hook has changed.
func (d *Dispatcher) client(h Hook) (*client, error) {
	spec := h.Spec.HTTP
	if spec.URL == "" {
		return nil, errors.New("spec.http.service needs a cluster")
	}
	key := h.Metadata.Namespace + "/" + h.Name()
	made := spec.URL + " " + string(spec.CABundle)
	d.mu.Lock()
	defer d.mu.Unlock()
	old, there := d.clients[key]
	if there && old.made == made {
		return old, nil
	}
	if there {
		old.close()
	}
	transport := &http.Transport{
		DialContext:            d.cfg.Dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if len(spec.CABundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(spec.CABundle) {
			return nil, errors.New("spec.http.caBundle has no certificate")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	c := &client{
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		url:     spec.URL,
		made:    made,
		agent:   d.cfg.UserAgent,
		secrets: d.cfg.Secrets,
		tokens:  d.cfg.Tokens,
	}
	d.clients[key] = c
	return c, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// postOne sends one review.
func (c *client) postOne(ctx context.Context, hook Hook, d delivery) outcome {
	body, err := encode(v1alpha1.TaskReview{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview},
		Request:  asSent(d),
	})
	if err != nil {
		return outcome{err: fmt.Errorf("the request cannot be written: %w", err)}
	}
	data, err := c.post(ctx, hook, body, d.number, v1alpha1.MaxAnswerBytes)
	if err != nil {
		return outcome{err: err}
	}
	response, err := v1alpha1.DecodeResponse(data, d.request.Point, d.request.UID)
	if err != nil {
		return outcome{err: fmt.Errorf("bad answer: %w", err)}
	}
	return outcome{response: response}
}

// encode writes JSON as people would: "<" and "&" in commands stay readable.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// asSent is the request with its template in full or by digest.
func asSent(d delivery) *v1alpha1.TaskReviewRequest {
	if !d.digest || d.request.Task.TemplateDigest == "" {
		return d.request
	}
	r := *d.request
	r.Task.TemplateSpec = nil
	return &r
}

// post sends a body, signed where the hook says so, and gives the answer's body.
func (c *client) post(ctx context.Context, hook Hook, body []byte, number, limit int) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.agent)
	request.Header.Set(v1alpha1.HeaderHook, hook.Name())
	request.Header.Set(v1alpha1.HeaderDelivery, strconv.Itoa(number))
	if err := c.authenticate(ctx, hook, request.Header, body); err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	if err := checkStatus(response, data); err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, fmt.Errorf("bad answer: it is larger than %d MiB", limit>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("bad answer: it is empty; a TaskReview is expected")
	}
	return data, nil
}

// causeOf gives the reason why a call was ended from our side, where it was.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func checkStatus(response *http.Response, body []byte) error {
	status := response.StatusCode
	switch {
	case status == http.StatusOK:
		return nil
	case status >= 300 && status < 400:
		target := response.Header.Get("Location")
		if u, err := url.Parse(target); err == nil {
			target = u.Redacted()
		}
		return fmt.Errorf("HTTP %d: it redirects to %s, and redirects are not followed; register the final URL", status, clip(target, 100))
	}
	text := fmt.Sprintf("HTTP %d", status)
	if snippet := strings.TrimSpace(string(body)); snippet != "" {
		text += ": " + clip(snippet, 120)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			return &busyError{status: text, after: min(time.Duration(seconds)*time.Second, 10*time.Minute)}
		}
	}
	return errors.New(text)
}

// authenticate sets the headers that prove who is calling.
func (c *client) authenticate(ctx context.Context, hook Hook, header http.Header, body []byte) error {
	auth := hook.Spec.HTTP.Auth
	switch {
	case auth == nil:
		return nil
	case auth.HMAC != nil:
		if c.secrets == nil {
			return errors.New("its secret cannot be read: no secrets are configured")
		}
		secret, err := c.secrets.Secret(ctx, hook, auth.HMAC.SecretFrom)
		if err != nil {
			return err
		}
		taskhook.Sign(header, secret, body, time.Now())
		return nil
	case auth.ServiceAccountToken != nil && c.tokens != nil:
		token, err := c.tokens.Token(ctx, auth.ServiceAccountToken.Audience)
		if err != nil {
			return fmt.Errorf("its token cannot be made: %w", err)
		}
		header.Set("Authorization", "Bearer "+token)
		return nil
	}
	return errors.New("spec.http.auth.serviceAccountToken needs a cluster")
}
