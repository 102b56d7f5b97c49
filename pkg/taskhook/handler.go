package taskhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// Options are for Handler and Serve; the zero value is good for trying out.
type Options struct {
	// Secrets are the shared secrets that a request may be signed with; several while one is being replaced. Without any,
	// requests are not checked.
	Secrets [][]byte
	// Skew is how far a signature's time may be off; 0 is MaxSkew.
	Skew time.Duration
	// MaxBytes bounds a request's body; 0 is 64 MiB.
	MaxBytes int64
	// Concurrency is how many reviews of a list are worked on at once; 0 is 8.
	Concurrency int
	// Logger takes requests that were refused and errors of the plugin; nil is slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Handler serves a plugin. It verifies signatures, takes single reviews and lists, keeps templates so that Sluice needs
// to send each one once, and turns errors and panics of the plugin into status 500, upon which Sluice asks again.
func Handler(p Plugin, o Options) http.Handler {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 20
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 8
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &handler{plugin: p, options: o, templates: newTemplates()}
}

type handler struct {
	plugin    Plugin
	options   Options
	templates *templates
}

// refusal is an answer other than 200.
type refusal struct {
	status int
	err    error
}

func (r *refusal) Error() string { return r.err.Error() }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := h.serve(w, r)
	if err != nil {
		status := http.StatusInternalServerError
		if refused, ok := errors.AsType[*refusal](err); ok {
			status = refused.status
		}
		h.options.Logger.WarnContext(r.Context(), "review not answered", "status", status, "error", err, "hook", r.Header.Get(v1alpha1.HeaderHook))
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil { //nolint:gosec // JSON, and declared as such
		h.options.Logger.WarnContext(r.Context(), "answer not sent", "error", err)
	}
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, &refusal{http.StatusMethodNotAllowed, errors.New("reviews come by POST")}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxBytes))
	if err != nil {
		if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &refusal{http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", tooLarge.Limit)}
		}
		return nil, &refusal{http.StatusBadRequest, fmt.Errorf("read the request: %w", err)}
	}
	if len(h.options.Secrets) > 0 {
		if err := Verify(r.Header, h.options.Secrets, body, h.options.Now(), h.options.Skew); err != nil {
			return nil, &refusal{http.StatusUnauthorized, err}
		}
	}
	var meta v1alpha1.TypeMeta
	if err := json.Unmarshal(body, &meta); err != nil {
		return nil, &refusal{http.StatusBadRequest, fmt.Errorf("the request is not JSON: %w", err)}
	}
	if meta.Kind == v1alpha1.KindTaskReviewList {
		return h.list(r.Context(), body)
	}
	review, err := v1alpha1.DecodeReview(body, v1alpha1.IgnoreUnknown)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err}
	}
	response, err := h.answer(r.Context(), review.Request)
	if err != nil {
		return nil, err
	}
	return encode(v1alpha1.TaskReview{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview},
		Response: response,
	})
}

// list answers a list of reviews, several at once.
func (h *handler) list(ctx context.Context, body []byte) ([]byte, error) {
	list, err := v1alpha1.DecodeReviewList(body, v1alpha1.IgnoreUnknown)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err}
	}
	for digest, template := range list.Templates {
		h.templates.keep(digest, template)
	}
	out := v1alpha1.TaskReviewList{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReviewList},
		Items:    make([]v1alpha1.TaskReviewItem, len(list.Items)),
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, h.options.Concurrency)
	for i, item := range list.Items {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			response, err := h.answer(ctx, item.Request)
			if err != nil {
				h.options.Logger.WarnContext(ctx, "review not answered", "error", err, "uid", item.Request.UID)
				out.Items[i].Failure = &v1alpha1.TaskReviewFailure{UID: item.Request.UID, Message: err.Error()}
				return
			}
			out.Items[i].Response = response
		})
	}
	wg.Wait()
	return encode(out)
}

// answer asks the plugin, with the template in full.
func (h *handler) answer(ctx context.Context, request *Request) (response *Response, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			h.options.Logger.ErrorContext(ctx, "the plugin panicked", "panic", fault, "stack", string(debug.Stack()))
			response, err = nil, fmt.Errorf("the plugin panicked: %v", fault)
		}
	}()
	if !h.templates.complete(request) {
		return &Response{UID: request.UID, Template: v1alpha1.TemplateSend}, nil
	}
	response, err = Answer(ctx, h.plugin, request)
	if err != nil {
		return nil, err
	}
	if response.Template == "" {
		response.Template = v1alpha1.TemplateByDigest
	}
	if err := v1alpha1.CheckResponse(response, request.Point, request.UID, "response").Err(); err != nil {
		return nil, fmt.Errorf("the plugin's answer is not allowed: %w", err)
	}
	return response, nil
}

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return out.Bytes(), nil
}
