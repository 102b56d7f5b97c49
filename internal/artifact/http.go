package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// httpStore is one URL: GET brings it, PUT stores it.
type httpStore struct {
	block httpBlock
	opts  Options
}

type httpBlock struct {
	URL     string `json:"url"`
	Headers []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"headers"`
	Auth httpAuth `json:"auth"`
}

func openHTTP(body program.JSON, opts Options) (Store, error) {
	s := httpStore{opts: opts}
	if err := json.Unmarshal(body, &s.block); err != nil {
		return nil, err
	}
	u, err := url.Parse(s.block.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("url %q must begin with http:// or https:// and name a host", s.block.URL)
	}
	return s, nil
}

// target is the URL of a key.
func (s httpStore) target(key string) (string, error) {
	if key == "" {
		return s.block.URL, nil
	}
	u, err := url.Parse(s.block.URL)
	if err != nil {
		return "", err
	}
	return u.JoinPath(strings.Split(key, "/")...).String(), nil
}

// do sends a request with the block's headers and credentials. Any status but 2xx is an error.
func (s httpStore) do(ctx context.Context, method, key string, body io.Reader, size int64) (*http.Response, error) {
	target, err := s.target(key)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.ContentLength = size
		if size == 0 {
			req.Body = http.NoBody
		}
	}
	for _, h := range s.block.Headers {
		if strings.EqualFold(h.Name, "Host") {
			req.Host = h.Value
			continue
		}
		req.Header.Add(h.Name, h.Value)
	}
	client, err := s.block.Auth.apply(ctx, req, s.opts)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 200 && answer.StatusCode <= 299 {
		return answer, nil
	}
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // only for the message
	_ = answer.Body.Close()
	err = &StatusError{Method: method, URL: target, Status: answer.StatusCode, Said: strings.TrimSpace(string(said))}
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusGone {
		err = fmt.Errorf("%w: %w", err, fs.ErrNotExist)
	}
	return nil, err
}

// StatusError is an answer of an HTTP store other than success.
type StatusError struct {
	Method, URL, Said string
	Status            int
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%s %s: status %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

func (s httpStore) Stat(ctx context.Context, key string) (Info, error) {
	answer, err := s.do(ctx, http.MethodHead, key, nil, 0)
	var status *StatusError
	if errors.As(err, &status) && (status.Status == http.StatusMethodNotAllowed || status.Status == http.StatusNotImplemented) {
		return Info{Size: -1}, nil // it is there, but will not say more
	}
	if err != nil {
		return Info{}, err
	}
	return Info{Size: answer.ContentLength}, answer.Body.Close()
}

func (s httpStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	answer, err := s.do(ctx, http.MethodGet, key, nil, 0)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Put sends a length, because many servers refuse a body without one; where it is not known the bytes go to a file first.
func (s httpStore) Put(ctx context.Context, key string, r io.Reader, size int64) (err error) {
	if size < 0 {
		spool, err := os.CreateTemp("", "sluice-put-*")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
		if size, err = io.Copy(spool, r); err != nil {
			return err
		}
		if _, err := spool.Seek(0, io.SeekStart); err != nil {
			return err
		}
		r = io.NopCloser(spool)
	}
	answer, err := s.do(ctx, http.MethodPut, key, r, size)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (s httpStore) Delete(ctx context.Context, key string) error {
	answer, err := s.do(ctx, http.MethodDelete, key, nil, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func (s httpStore) List(context.Context, string) ([]Info, error) {
	return nil, errors.New("an http store cannot be listed")
}
