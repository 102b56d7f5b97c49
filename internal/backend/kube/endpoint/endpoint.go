// Package endpoint is the task endpoint: by it the pods of tasks, which have credentials of no store and no right to the
// Kubernetes API, get their inputs and hand in their outputs. docs/task-endpoint.md tells the protocol.
//
// A pod proves which one it is with a token that Kubernetes made for it. That says which attempt it works for, and it can
// reach the artifacts of that attempt only: its inputs for reading, its outputs for writing.
package endpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/tokenreview"
)

// Defaults of [Config].
const (
	defaultExpires = 15 * time.Minute
	defaultRetry   = 2 * time.Second
)

// maxToken bounds a token, in bytes.
const maxToken = 16 << 10

// Config is what an endpoint needs.
type Config struct {
	// Reviewer says whose a token is, Attempts which attempt a pod works for, Results keeps results that are too long for a
	// termination message.
	Reviewer Reviewer
	Attempts Attempts
	Results  Results
	// Carry brings all bytes through the endpoint: for clusters whose pods cannot reach the stores.
	Carry bool
	// Expires is how long a signed address is good for; 0 is 15 minutes.
	Expires time.Duration
	// Retry is what a pod that is not known yet is told to wait; 0 is two seconds.
	Retry time.Duration
	// Log is nil for none.
	Log *slog.Logger
}

// Pod is a pod as its token names it.
type Pod struct{ Namespace, Name, UID string }

// Reviewer says which pod a token was made for. A token that is no good is [ErrDenied]; any other error is that it cannot be
// said now.
type Reviewer interface {
	Review(ctx context.Context, token string) (Pod, error)
}

// ErrDenied says that a token is no pod's, or not for this endpoint, or has run out.
var ErrDenied = tokenreview.ErrDenied

// Attempt is what a pod works for.
type Attempt struct {
	Run engine.Run
	Cmd engine.StartTask
	// Artifacts are the options by which the run's stores are opened.
	Artifacts artifact.Options
}

// Attempts says which attempt a pod works for. An error that is [ErrOver] is final; after any other the pod asks again.
type Attempts interface {
	Attempt(ctx context.Context, namespace, pod, podUID string) (Attempt, error)
}

// ErrOver says that a pod's attempt has ended: nobody waits for what it does.
var ErrOver = errors.New("the attempt has ended")

// Results keeps the results of attempts that are too long for a termination message, as JSON of spec.Result, until they
// are in the journal.
type Results interface {
	Put(ctx context.Context, run engine.Run, path string, data []byte) error
	Get(ctx context.Context, run engine.Run, path string) ([]byte, error)
}

// maxResults is how many results are taken at the same time: one may have 64 MiB, and is in memory more than once.
const maxResults = 4

// server is the endpoint.
type server struct {
	cfg     Config
	results chan struct{}
}

// New makes the endpoint's handler.
func New(cfg Config) http.Handler {
	if cfg.Expires <= 0 {
		cfg.Expires = defaultExpires
	}
	if cfg.Retry <= 0 {
		cfg.Retry = defaultRetry
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{cfg: cfg, results: make(chan struct{}, maxResults)}
	mux := http.NewServeMux()
	mux.Handle("POST "+spec.SignPath, s.known(s.sign))
	mux.Handle("GET "+spec.DataPath, s.known(s.read))
	mux.Handle("PUT "+spec.DataPath, s.known(s.write))
	mux.Handle("PUT "+spec.ResultPath, s.known(s.result))
	return mux
}

// problem is an answer other than a success.
type problem struct {
	status int
	code   spec.Code
	text   string
	cause  error // for the log
	retry  time.Duration
}

func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) error {
	return &problem{status: status, text: fmt.Sprintf(format, args...)}
}

// known lets only pods in whose attempt is known.
func (s *server) known(handle func(w http.ResponseWriter, r *http.Request, a Attempt) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pod, err := s.pod(r)
		if err == nil {
			var a Attempt
			if a, err = s.attempt(r.Context(), pod); err == nil {
				err = handle(w, r, a)
			}
		}
		if err != nil {
			s.fail(w, r, pod, err)
		}
	})
}

func (s *server) pod(r *http.Request) (Pod, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > maxToken {
		return Pod{}, refuse(http.StatusUnauthorized, "send the pod's token for the audience %s as a bearer token", spec.TokenAudience)
	}
	pod, err := s.cfg.Reviewer.Review(r.Context(), token)
	switch {
	case errors.Is(err, ErrDenied):
		return Pod{}, &problem{
			status: http.StatusUnauthorized, cause: err,
			text: fmt.Sprintf("%v: it must be a pod's, for the audience %s, and not have run out; read it anew from its file", ErrDenied, spec.TokenAudience),
		}
	case err != nil:
		return Pod{}, &problem{status: http.StatusServiceUnavailable, cause: err, text: "the API server cannot say now whose the token is: try again", retry: s.cfg.Retry}
	}
	return pod, nil
}

func (s *server) attempt(ctx context.Context, pod Pod) (Attempt, error) {
	a, err := s.cfg.Attempts.Attempt(ctx, pod.Namespace, pod.Name, pod.UID)
	switch {
	case errors.Is(err, ErrOver):
		return a, &problem{status: http.StatusGone, cause: err, text: "this pod's attempt has ended: nobody waits for what it does"}
	case err != nil:
		return a, &problem{
			status: http.StatusServiceUnavailable, cause: err, retry: s.cfg.Retry,
			text: fmt.Sprintf("pod %s/%s is not known yet as one of a task: try again, the controller may just have started", pod.Namespace, pod.Name),
		}
	}
	return a, nil
}

// fail answers with what is wrong.
func (s *server) fail(w http.ResponseWriter, r *http.Request, pod Pod, err error) {
	var p *problem
	if !errors.As(err, &p) {
		p = storeProblem(err)
	}
	level := slog.LevelDebug
	if p.status >= http.StatusInternalServerError {
		level = slog.LevelWarn
	}
	s.cfg.Log.Log(r.Context(), level, "a task's request was refused", "pod", pod.Namespace+"/"+pod.Name, "request", r.Method+" "+r.URL.Path,
		"status", p.status, "reason", p.text, "error", p.cause)
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(p.retry.Seconds()))))
	}
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	answer(w, p.status, spec.Problem{Error: p.text, Code: p.code})
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil { // of these types it cannot fail
		status, data = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever has gone does not need it
}

// bodyTime is how long a body that is read into memory may take to come: nobody holds memory by sending slowly.
const bodyTime = 2 * time.Minute

// body reads a request's body of at most so many bytes.
func body(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err == nil {
		defer func() { _ = control.SetReadDeadline(time.Time{}) }() // of a connection that is gone it does not matter
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", limit)
	case err != nil:
		return nil, &problem{status: http.StatusBadRequest, text: "the body broke off: try again", cause: err}
	}
	return data, nil
}
