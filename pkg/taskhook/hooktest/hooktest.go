// Package hooktest puts sample reviews to a plugin's server and explains what it answers. `sluice hooks test URL` prints
// its findings, and the conformance package makes a test of them.
package hooktest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	// OK is what was expected.
	OK Level = "ok"
	// Note is worth knowing: allowed, but perhaps not meant.
	Note Level = "note"
	// Problem is against the protocol: Sluice would take it as a failed call, or the plugin would do harm.
	Problem Level = "problem"
)

// Finding is what one check found.
type Finding struct {
	// Check is the check's name: "Pre", "retry", "Post", "signature", ...
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Text explains, in a sentence or two.
	Text string `json:"text"`
	// Took is how long the plugin needed, where that was measured.
	Took time.Duration `json:"took,omitempty"`
}

// Options say how the plugin is reached and what is tried.
type Options struct {
	// Hook is the name that reviews are sent under; "test" by default.
	Hook string
	// Secret signs the reviews, and tries what happens without.
	Secret []byte
	// Points are those that the plugin is registered for; both by default.
	Points []v1alpha1.Point
	// Batch also sends lists.
	Batch bool
	// Timeout is for one call, 10s by default; MaxWait for a pending answer, 30s by default.
	Timeout, MaxWait time.Duration
	// Client sends; by default one that follows no redirects.
	Client *http.Client
	// Samples replace the usual sample reviews, at most one of each point.
	Samples []*v1alpha1.TaskReviewRequest
}

// Run puts the sample reviews and explains the answers. It never gives up early: a plugin that is not there at all gets
// one finding that says so.
func Run(ctx context.Context, url string, o Options) []Finding {
	if o.Hook == "" {
		o.Hook = "test"
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 30 * time.Second
	}
	if len(o.Points) == 0 {
		o.Points = []v1alpha1.Point{v1alpha1.Pre, v1alpha1.Post}
	}
	if o.Client == nil {
		transport := &http.Transport{MaxIdleConnsPerHost: 16}
		defer transport.CloseIdleConnections()
		o.Client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	r := &run{ctx: ctx, url: url, o: o, session: rand.Text()[:8]}
	r.all()
	return r.findings
}

// Worst gives the worst level among findings.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		if f.Level == Problem {
			return Problem
		}
		if f.Level == Note {
			worst = Note
		}
	}
	return worst
}

// run is one round of checks.
type run struct {
	ctx      context.Context //nolint:containedctx // it lives as long as Run
	url      string
	o        Options
	session  string // makes the uids of this round new to the plugin
	findings []Finding
}

func (r *run) add(check string, level Level, took time.Duration, format string, args ...any) {
	r.findings = append(r.findings, Finding{Check: check, Level: level, Text: fmt.Sprintf(format, args...), Took: took})
}

func (r *run) ok(check, format string, args ...any) { r.add(check, OK, 0, format, args...) }
func (r *run) note(check, format string, args ...any) {
	r.add(check, Note, 0, format, args...)
}
func (r *run) problem(check, format string, args ...any) {
	r.add(check, Problem, 0, format, args...)
}

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

// send posts a body, signed with the secret where there is one.
func (r *run) send(body, secret []byte, at time.Time) (*reply, error) {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "sluice-hooks-test")
	request.Header.Set(v1alpha1.HeaderHook, r.o.Hook)
	request.Header.Set(v1alpha1.HeaderDelivery, "1")
	if len(secret) > 0 {
		taskhook.Sign(request.Header, secret, body, at)
	}
	began := time.Now()
	response, err := r.o.Client.Do(request)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, fmt.Errorf("no answer within %s", r.o.Timeout)
		}
		return nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, v1alpha1.MaxListBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return &reply{status: response.StatusCode, header: response.Header, body: data, took: time.Since(began)}, nil
}

// encoded is a review as it is sent.
func encoded(request *v1alpha1.TaskReviewRequest) ([]byte, error) {
	return json.Marshal(v1alpha1.TaskReview{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview},
		Request:  request,
	})
}

// ask puts one review, as often as it is pending, and gives the decision.
func (r *run) ask(request *v1alpha1.TaskReviewRequest) (*v1alpha1.TaskReviewResponse, *reply, error) {
	body, err := encoded(request)
	if err != nil {
		return nil, nil, err
	}
	return r.askBody(body, request)
}

func (r *run) askBody(body []byte, request *v1alpha1.TaskReviewRequest) (*v1alpha1.TaskReviewResponse, *reply, error) {
	began := time.Now()
	for polls := 0; ; polls++ {
		got, err := r.send(body, r.o.Secret, time.Now())
		if err != nil {
			return nil, nil, err
		}
		response, err := decode(got, request)
		if err != nil {
			return nil, got, err
		}
		if response.Pending == nil {
			return response, got, nil
		}
		wait := time.Duration(response.Pending.RetryAfterSeconds * float64(time.Second))
		if left := r.o.MaxWait - time.Since(began); wait > left {
			return response, got, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-r.ctx.Done():
			timer.Stop()
			return nil, got, context.Cause(r.ctx)
		case <-timer.C:
		}
	}
}

// decode reads a reply as Sluice would.
func decode(got *reply, request *v1alpha1.TaskReviewRequest) (*v1alpha1.TaskReviewResponse, error) {
	if err := checkStatus(got); err != nil {
		return nil, err
	}
	response, err := v1alpha1.DecodeResponse(got.body, request.Point, request.UID)
	if err != nil {
		return nil, fmt.Errorf("the answer is refused: %w", err)
	}
	return response, nil
}

func checkStatus(got *reply) error {
	switch {
	case got.status >= 300 && got.status < 400:
		return fmt.Errorf("HTTP %d redirects to %s; redirects are not followed, so register the final URL", got.status, got.header.Get("Location"))
	case got.status != http.StatusOK:
		return fmt.Errorf("HTTP %d: %s", got.status, clip(string(got.body)))
	case len(bytes.TrimSpace(got.body)) == 0:
		return errors.New("HTTP 200 with an empty body; a TaskReview with a response is expected")
	}
	return nil
}

// clip shortens a text for a finding.
func clip(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 200 {
		return strings.ToValidUTF8(text[:200], "") + "…"
	}
	if text == "" {
		return "(no text)"
	}
	return text
}
