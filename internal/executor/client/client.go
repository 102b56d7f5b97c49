// Package client is the task's side of the task endpoint (docs/task-endpoint.md): by it a pod gets its inputs and hands in
// its outputs, without credentials of any store.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// defaultPatience is how long the endpoint or a store may be away in all before a task gives up on one step. A controller
// that is replaced, or a store that is, takes less.
const defaultPatience = 15 * time.Minute

// defaultChunk is how much is sent at once where the size is not known, and held in memory for it: in bytes. S3 wants 5 MiB
// for a part.
const defaultChunk = 8 << 20

// Config says where the endpoint is. Base and TokenFile are needed.
type Config struct {
	// Base is its URL, CA the PEM certificates that it is trusted by; empty is the system's.
	Base, CA string
	// TokenFile holds the token; it is read for every request, because it is replaced now and then.
	TokenFile string
	// Patience is how long to go on trying; 0 is 15 minutes.
	Patience time.Duration
	// Chunk is the size of parts in bytes; 0 is 8 MiB.
	Chunk int64
	// Wait waits between two tries; nil is by the clock.
	Wait func(ctx context.Context, d time.Duration) error
}

// Client speaks to one endpoint. It is safe for concurrent use.
type Client struct {
	cfg      Config
	endpoint *http.Client

	mu     sync.Mutex
	stores map[string]*http.Client // by CA
}

// New makes a client. Nothing is sent yet.
func New(cfg Config) (*Client, error) {
	if u, err := url.Parse(cfg.Base); err != nil || u.Host == "" {
		return nil, fmt.Errorf("task endpoint: %q is no URL", cfg.Base)
	}
	cfg.Base = strings.TrimSuffix(cfg.Base, "/")
	if cfg.Patience <= 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Chunk <= 0 {
		cfg.Chunk = defaultChunk
	}
	if cfg.Wait == nil {
		cfg.Wait = wait
	}
	// The task's proxy is for the world outside; the endpoint is in the cluster.
	endpoint, err := newHTTP(cfg.CA, nil)
	if err != nil {
		return nil, fmt.Errorf("task endpoint: %w", err)
	}
	return &Client{cfg: cfg, endpoint: endpoint, stores: map[string]*http.Client{}}, nil
}

// newHTTP makes a client that follows no redirect: what it is to send, and with it a token, goes nowhere else.
func newHTTP(ca string, proxy func(*http.Request) (*url.URL, error)) (*http.Client, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("its CA holds no certificate")
		}
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: proxy, DialContext: dialer.DialContext, TLSClientConfig: settings, TLSHandshakeTimeout: 10 * time.Second,
			ResponseHeaderTimeout: 2 * time.Minute, MaxIdleConnsPerHost: 4,
			DisableCompression: true, // bytes are to arrive as they are stored
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// store is the client for a store with a CA.
func (c *Client) store(ca string) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.stores[ca]; known != nil {
		return known, nil
	}
	made, err := newHTTP(ca, http.ProxyFromEnvironment)
	if err == nil {
		c.stores[ca] = made
	}
	return made, err
}

// PutResult hands in a result that is too long for a termination message: JSON of a spec.Result.
func (c *Client) PutResult(ctx context.Context, data []byte) error {
	err := c.retry(ctx, func() error {
		answer, err := c.send(ctx, spec.Request{Method: http.MethodPut, URL: spec.ResultPath}, bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("hand in the result: %w", err)
	}
	return nil
}

// ask puts a question until it is answered.
func (c *Client) ask(ctx context.Context, ask spec.Ask) (spec.Answer, error) {
	var answer spec.Answer
	err := c.retry(ctx, func() error {
		var err error
		answer, err = c.askOnce(ctx, ask)
		return err
	})
	return answer, err
}

func (c *Client) askOnce(ctx context.Context, ask spec.Ask) (spec.Answer, error) {
	var answer spec.Answer
	data, err := json.Marshal(ask)
	if err != nil {
		return answer, err
	}
	r, err := c.send(ctx, spec.Request{Method: http.MethodPost, URL: spec.SignPath}, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return answer, err
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return answer, transient(fmt.Errorf("read the task endpoint's answer: %w", err), 0)
	}
	return answer, nil
}

// send sends one request, to the endpoint or to a store. Any status but 2xx is an error, which says whether another try
// makes sense.
func (c *Client) send(ctx context.Context, what spec.Request, body io.Reader, size int64) (*http.Response, error) {
	target, own := what.URL, strings.HasPrefix(what.URL, "/")
	if own {
		target = c.cfg.Base + what.URL
	}
	req, err := http.NewRequestWithContext(ctx, what.Method, target, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.ContentLength = size
		if size == 0 {
			req.Body = http.NoBody
		}
	}
	for name, value := range what.Headers {
		req.Header.Set(name, value)
	}
	client := c.endpoint
	if own {
		token, err := os.ReadFile(c.cfg.TokenFile)
		if err != nil {
			return nil, transient(fmt.Errorf("read the token for the task endpoint: %w", err), 0)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	} else if client, err = c.store(what.CA); err != nil {
		return nil, fmt.Errorf("the artifact's store: %w", err)
	}
	answer, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
			return nil, fmt.Errorf("%w: the certificate authority that the pod was given is another's", withoutQuery(err))
		}
		return nil, transient(withoutQuery(err), 0)
	}
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, refusal(answer, own)
}

// withoutQuery takes the signature out of an error that names a signed URL.
func withoutQuery(err error) error {
	var named *url.Error
	if !errors.As(err, &named) {
		return err
	}
	address, _, _ := strings.Cut(named.URL, "?")
	return fmt.Errorf("%s %s: %w", named.Op, address, named.Err)
}

// refusal is the error for an answer that is no success.
func refusal(answer *http.Response, own bool) error {
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10)) // only for the message
	text := strings.TrimSpace(string(said))
	var problem spec.Problem
	if own && json.Unmarshal(said, &problem) == nil && problem.Error != "" {
		text = problem.Error
	}
	who := "the artifact's store"
	if own {
		who = "the task endpoint"
	}
	err := fmt.Errorf("%s says %d %s: %s", who, answer.StatusCode, http.StatusText(answer.StatusCode), text)
	switch problem.Code {
	case spec.CodeAbsent:
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	case spec.CodeTree:
		return fmt.Errorf("%w: %w", err, transfer.ErrTree)
	case spec.CodeReadOnly:
		return fmt.Errorf("%w: %w", err, transfer.ErrReadOnly)
	case spec.CodeUploadGone:
		return &broken{err}
	case spec.CodeElsewhere:
		return fmt.Errorf("%w: %w", err, errElsewhere)
	}
	switch status := answer.StatusCode; {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return transient(err, retryAfter(answer.Header))
	case status == http.StatusUnauthorized && own, status == http.StatusForbidden && !own:
		return &stale{err}
	case status == http.StatusNotFound && !own:
		return fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return err
}
