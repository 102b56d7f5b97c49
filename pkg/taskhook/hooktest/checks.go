package hooktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// all runs every check that fits the options.
func (r *run) all() {
	first := r.sample(r.o.Points[0], "first")
	response, got, err := r.ask(first)
	if got == nil && err != nil {
		r.problem("reach", "%s cannot be reached: %v", r.url, err)
		return
	}
	check := string(first.Point)
	if err != nil {
		r.problem(check, "%v", err)
		return // what is wrong here would be wrong everywhere
	}
	r.add(check, OK, got.took, "%s", Explain(first, response))
	r.slow(check, got.took)
	r.undecided(check, response)
	r.again("retry", first, response)

	state := response.State
	if slices.Contains(r.o.Points, v1alpha1.Post) {
		r.post("Post", state, func(*v1alpha1.TaskReviewRequest) {})
		r.post("Post, failed", state, failed)
		if first.Point == v1alpha1.Pre {
			r.post("Post, reused", state, func(q *v1alpha1.TaskReviewRequest) { q.Result.Reused, q.Result.ExitCode = true, nil })
		}
	}
	r.unknownField()
	r.emptyTask()
	r.largeTemplate()
	r.parallel()
	r.nonsense()
	r.method()
	if len(r.o.Secret) > 0 {
		r.signatures()
	}
	if r.o.Batch {
		r.lists()
	}
}

// sample gives a fresh review.
func (r *run) sample(point v1alpha1.Point, what string) *v1alpha1.TaskReviewRequest {
	uid := "test-" + r.session + "-" + string(point) + "-" + what
	for _, s := range r.o.Samples {
		if s.Point == point {
			own := *s
			own.UID = uid
			return &own
		}
	}
	return Sample(r.o.Hook, point, uid)
}

func failed(q *v1alpha1.TaskReviewRequest) {
	one := 1
	q.Result.Phase, q.Result.ExitCode, q.Result.Message = "Failed", &one, "exit code 1"
	q.Result.Outputs = v1alpha1.Outputs{}
}

// slow notes a call that took long.
func (r *run) slow(check string, took time.Duration) {
	if took > 2*time.Second {
		r.note(check, "the answer took %s; every task waits so long. Answer pending, and decide in the background", took.Round(10*time.Millisecond))
	}
}

// undecided notes an answer that stayed pending.
func (r *run) undecided(check string, response *v1alpha1.TaskReviewResponse) {
	if response.Pending != nil {
		r.note(check, "still pending after %s; what follows is checked with an undecided plugin", r.o.MaxWait)
	}
}

// again puts the same review a second time: at least once is what Sluice promises, so answers must not differ.
func (r *run) again(check string, request *v1alpha1.TaskReviewRequest, before *v1alpha1.TaskReviewResponse) {
	if before.Pending != nil {
		return
	}
	response, _, err := r.ask(request)
	switch {
	case err != nil:
		r.problem(check, "the same review again, as after a lost answer: %v", err)
	case !same(before, response):
		r.problem(check, "the same uid got another answer the second time: first %s, then %s. A review may come more than once, and must get the same answer",
			brief(before), brief(response))
	default:
		r.ok(check, "the same uid gets the same answer again")
	}
}

// same compares what Sluice would record of two answers.
func same(a, b *v1alpha1.TaskReviewResponse) bool {
	x, y := *a, *b
	x.Template, y.Template, x.Message, y.Message = "", "", "", ""
	return reflect.DeepEqual(canonical(x), canonical(y))
}

func canonical(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	var out any
	if err := json.Unmarshal(data, &out); err != nil {
		return string(data)
	}
	return out
}

func brief(r *v1alpha1.TaskReviewResponse) string {
	data, err := json.Marshal(r)
	if err != nil {
		return string(r.Decision)
	}
	return clip(string(data))
}

// post puts a Post with a result that change has changed.
func (r *run) post(check string, state json.RawMessage, change func(*v1alpha1.TaskReviewRequest)) {
	request := r.sample(v1alpha1.Post, strings.ReplaceAll(check, ", ", "-"))
	request.State = state
	change(request)
	response, got, err := r.ask(request)
	if err != nil {
		r.problem(check, "%v", err)
		return
	}
	r.add(check, OK, got.took, "%s", Explain(request, response))
	if check == "Post" {
		r.again("retry of Post", request, response)
	}
}

// unknownField puts a review as a newer Sluice might send it.
func (r *run) unknownField() {
	const check = "unknown fields"
	request := r.sample(r.o.Points[0], "future")
	body, err := encoded(request)
	if err == nil {
		body = bytes.Replace(body, []byte(`"request":{`), []byte(`"request":{"xFuture":{"a":[1,2]},`), 1)
		_, _, err = r.askBody(body, request)
	}
	if err != nil {
		r.problem(check, "a request with a field that is not known today: %v. Ignore such fields, a newer Sluice may send more", err)
		return
	}
	r.ok(check, "unknown fields of a request are ignored")
}

// emptyTask puts a review with as little in it as there can be.
func (r *run) emptyTask() {
	const check = "small review"
	request := r.sample(r.o.Points[0], "small")
	request.Workflow.Labels, request.Workflow.Annotations, request.Workflow.Parameters = nil, nil, nil
	request.Task.Inputs, request.Task.OutputArtifacts, request.Task.Call = v1alpha1.Inputs{}, nil, nil
	request.Task.Template, request.Task.TemplateSpec, request.Task.TemplateDigest = "", nil, ""
	if request.Result != nil {
		request.Result.Outputs = v1alpha1.Outputs{}
	}
	if _, _, err := r.ask(request); err != nil {
		r.problem(check, "a task without inputs, outputs, labels and template: %v", err)
		return
	}
	r.ok(check, "a task without inputs, outputs, labels and template is understood")
}

// largeTemplate puts a review of half a megabyte.
func (r *run) largeTemplate() {
	const check = "large review"
	request := r.sample(r.o.Points[0], "large")
	request.Task.TemplateSpec = json.RawMessage(`{"name":"train","script":{"source":"` + strings.Repeat("x = 1; ", 1<<16) + `"}}`)
	request.Task.TemplateDigest = "sha256:" + r.session
	if _, _, err := r.ask(request); err != nil {
		r.problem(check, "a template of 448 KiB: %v", err)
		return
	}
	r.ok(check, "a template of 448 KiB is taken")
}

// parallel puts several reviews at once; each must get the answer to its own uid.
func (r *run) parallel() {
	const check, n = "parallel", 8
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		request := r.sample(r.o.Points[0], fmt.Sprintf("parallel-%d", i))
		request.Task.Name = fmt.Sprintf("train-%d", i)
		wg.Go(func() { _, _, errs[i] = r.ask(request) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			r.problem(check, "%d reviews at once, number %d: %v", n, i, err)
			return
		}
	}
	r.ok(check, "%d reviews at once are answered, each with its own uid", n)
}

// nonsense sends what is no review. The plugin must survive, and not decide.
func (r *run) nonsense() {
	const check = "nonsense"
	for _, body := range []string{`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview"`, `[]`, `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","request":{}}`} {
		got, err := r.send([]byte(body), r.o.Secret, time.Now())
		if err != nil {
			r.problem(check, "the body %s: %v", body, err)
			return
		}
		if got.status == http.StatusOK {
			r.note(check, "the body %s gets HTTP 200; 400 would be better", body)
			return
		}
	}
	if _, _, err := r.ask(r.sample(r.o.Points[0], "after")); err != nil {
		r.problem(check, "a good review after a bad one: %v", err)
		return
	}
	r.ok(check, "what is no review is refused, and the next review answered")
}

// method tries what is no POST.
func (r *run) method() {
	const check = "method"
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		r.problem(check, "%v", err)
		return
	}
	response, err := r.o.Client.Do(request)
	if err != nil {
		r.note(check, "GET: %v", err)
		return
	}
	_ = response.Body.Close()
	if response.StatusCode == http.StatusOK {
		r.note(check, "GET gets HTTP 200: reviews come by POST only")
		return
	}
	r.ok(check, "GET is refused (HTTP %d)", response.StatusCode)
}

// signatures tries requests that are not ours.
func (r *run) signatures() {
	const check = "signature"
	body, err := encoded(r.sample(r.o.Points[0], "signature"))
	if err != nil {
		r.problem(check, "%v", err)
		return
	}
	for _, try := range []struct {
		what   string
		secret []byte
		at     time.Time
	}{
		{"without a signature", nil, time.Now()},
		{"signed with another secret", append([]byte("not "), r.o.Secret...), time.Now()},
		{"signed an hour ago", r.o.Secret, time.Now().Add(-time.Hour)},
	} {
		got, err := r.send(body, try.secret, try.at)
		switch {
		case err != nil:
			r.problem(check, "a request %s: %v", try.what, err)
			return
		case got.status == http.StatusOK:
			r.problem(check, "a request %s is answered: anybody could ask. Verify %s and %s", try.what, v1alpha1.HeaderTimestamp, v1alpha1.HeaderSignature)
			return
		}
	}
	r.ok(check, "requests without a signature, with a wrong one or an old one are refused")
}
