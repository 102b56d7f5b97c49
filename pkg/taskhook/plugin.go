// Package taskhook is the kit for writing a task hook plugin in Go: implement [Plugin], and [Serve] or [Handler] does the
// protocol: signatures, limits, lists, templates by digest, panics. The sub-package conformance has the test that tells
// whether a server, in whatever language, keeps the contract.
//
//	type recorder struct{}
//
//	func (recorder) Pre(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
//		return taskhook.Run(map[string]any{"note": "hello " + r.Task.Name}), nil
//	}
//
//	func (recorder) Post(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
//		return taskhook.Done(), nil
//	}
//
//	func main() { log.Fatal(taskhook.Serve(context.Background(), ":8080", recorder{}, taskhook.Options{})) }
package taskhook

import (
	"context"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// The messages, under shorter names.
type (
	// Request is the question that is put to a plugin.
	Request = v1alpha1.TaskReviewRequest
	// Response is a plugin's answer.
	Response = v1alpha1.TaskReviewResponse
	// Inputs are values by name.
	Inputs = v1alpha1.Inputs
	// Outputs are values by name.
	Outputs = v1alpha1.Outputs
	// Artifact is an artifact's description.
	Artifact = v1alpha1.Artifact
)

// Plugin answers reviews. It is called from many goroutines at once, and more than once for the same UID: after a lost
// answer, a crash on either side, or when it said that it is pending. The same UID must get the same answer, and what
// the plugin does in the world for it must happen once.
//
// An error says that the plugin could not do its work. Sluice asks again, as the hook's retry policy says; it is not
// a decision. A nil response is Run at Pre and Done at Post.
type Plugin interface {
	// Pre is asked before an attempt starts: Run, Reuse, Skip or Fail.
	Pre(ctx context.Context, request *Request) (*Response, error)
	// Post is asked after it has ended: Done, Fail or Retry.
	Post(ctx context.Context, request *Request) (*Response, error)
}

// Run lets the task run, with placeholders (nil for none).
func Run(placeholders map[string]any) *Response {
	return &Response{Decision: v1alpha1.Run, Placeholders: placeholders}
}

// Reuse ends the task as succeeded with these outputs; nothing is started.
func Reuse(outputs Outputs) *Response {
	return &Response{Decision: v1alpha1.Reuse, Outputs: &outputs}
}

// Skip ends the task as skipped.
func Skip(message string) *Response { return &Response{Decision: v1alpha1.Skip, Message: message} }

// Fail ends the task as failed, at either point.
func Fail(message string) *Response { return &Response{Decision: v1alpha1.Fail, Message: message} }

// Done accepts the result.
func Done() *Response { return &Response{Decision: v1alpha1.Done} }

// Retry runs the task anew.
func Retry(message string) *Response { return &Response{Decision: v1alpha1.Retry, Message: message} }

// Pending asks to be asked again after d, which is cut to between a millisecond and a day.
func Pending(d time.Duration, message string) *Response {
	d = min(max(d, time.Millisecond), v1alpha1.MaxRetryAfterSeconds*time.Second)
	return &Response{Message: message, Pending: &v1alpha1.Pending{RetryAfterSeconds: d.Seconds()}}
}

// Answer puts a request to the method of its point and completes the response: its UID, and the decision of a nil one.
func Answer(ctx context.Context, p Plugin, request *Request) (*Response, error) {
	ask, usual := p.Pre, v1alpha1.Run
	if request.Point == v1alpha1.Post {
		ask, usual = p.Post, v1alpha1.Done
	}
	response, err := ask(ctx, request)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return &Response{UID: request.UID, Decision: usual}, nil
	}
	complete := *response
	complete.UID = request.UID
	return &complete, nil
}
