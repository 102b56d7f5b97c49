package builtin

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Argo's default, and how much of an answer can be a result.
const (
	defaultTimeout = 30 * time.Second
	maxBody        = 8 << 20
)

// request does an HTTP task: its result is the answer's body. As with Argo, it succeeds with any 2xx status unless a
// success condition says otherwise, over request.{method,url,body,headers} and response.{statusCode,body,headers}.
func (b *Backend) request(ctx context.Context, cmd engine.StartTask, opts artifact.Options) engine.Result {
	r := cmd.Body.Request
	if r == nil {
		return broken(errors.New("the task has no request"))
	}
	req, body, err := newRequest(ctx, *r, opts.Secrets)
	if err != nil {
		result := broken(err)
		result.Transient = errors.Is(err, artifact.ErrNotNow)
		return result
	}
	client, done := b.client(*r)
	defer done()
	answer, err := client.Do(req)
	if err != nil {
		return engine.Result{Phase: engine.FailedPhase, Message: err.Error(), Transient: true}
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if err != nil {
		return engine.Result{Phase: engine.FailedPhase, Message: fmt.Sprintf("read the answer: %v", err), Transient: true}
	}
	if len(data) > maxBody {
		return broken(fmt.Errorf("the answer is larger than %d bytes", maxBody))
	}
	text := string(data)
	result := engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Result: &text}}
	if r.SuccessCondition == "" {
		if answer.StatusCode < 200 || answer.StatusCode > 299 {
			result.Phase, result.Message = engine.FailedPhase, fmt.Sprintf("received non-2xx response code: %d", answer.StatusCode)
		}
		return result
	}
	ok, err := b.succeeded(*r, req, body, answer, text)
	switch {
	case err != nil:
		result.Phase, result.Message = engine.ErrorPhase, fmt.Sprintf("successCondition %q: %v", r.SuccessCondition, err)
	case !ok:
		result.Phase, result.Message = engine.FailedPhase, fmt.Sprintf("successCondition '%s' evaluated false", r.SuccessCondition)
	}
	return result
}

func newRequest(ctx context.Context, r program.Request, secrets artifact.SecretFunc) (*http.Request, string, error) {
	body := []byte(r.Body)
	if len(r.BodyBytes) > 0 {
		body = r.BodyBytes
	}
	method := strings.ToUpper(r.Method)
	if method == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, method, r.URL, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	for _, h := range r.Headers {
		value := h.Value
		if h.Secret != "" {
			if value, err = secretOf(secrets, h.Secret, h.Key); err != nil && (!h.Optional || errors.Is(err, artifact.ErrNotNow)) {
				return nil, "", fmt.Errorf("header %s: %w", h.Name, err)
			}
		}
		if strings.EqualFold(h.Name, "Host") {
			req.Host = value
			continue
		}
		req.Header.Add(h.Name, value)
	}
	return req, string(body), nil
}

func secretOf(secrets artifact.SecretFunc, name, key string) (string, error) {
	if secrets == nil {
		return "", fmt.Errorf("no key %q of a Secret %q is known here", key, name)
	}
	return secrets(name, key)
}

// client shares its connections with others, unless the request asks for other settings.
func (b *Backend) client(r program.Request) (client *http.Client, done func()) {
	transport := b.cfg.Transport
	if transport == nil {
		transport = http.DefaultTransport.(*http.Transport) //nolint:forcetypeassert // it is one by the library's documentation
	}
	own := http.Client{Transport: transport, Timeout: defaultTimeout}
	if r.TimeoutSeconds > 0 {
		own.Timeout = time.Duration(r.TimeoutSeconds) * time.Second
	}
	if !r.InsecureSkipVerify {
		return &own, func() {}
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the template asks for it (insecureSkipVerify)
	own.Transport = transport
	return &own, transport.CloseIdleConnections
}

// succeeded evaluates a success condition.
func (b *Backend) succeeded(r program.Request, req *http.Request, body string, answer *http.Response, text string) (bool, error) {
	if b.cfg.Eval == nil {
		return false, errors.New("conditions cannot be evaluated here")
	}
	value, err := b.cfg.Eval(r.SuccessCondition, map[string]any{
		"request":  map[string]any{"method": req.Method, "url": r.URL, "body": body, "headers": headers(req.Header)},
		"response": map[string]any{"statusCode": int64(answer.StatusCode), "body": text, "headers": headers(answer.Header)},
	})
	if err != nil {
		return false, err
	}
	ok, isBool := value.(bool)
	if !isBool {
		return false, fmt.Errorf("is no boolean but %T", value)
	}
	return ok, nil
}

func headers(h http.Header) map[string]any {
	out := make(map[string]any, len(h))
	for name, values := range h {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		out[name] = list
	}
	return out
}
