package hooktest

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// lists puts several reviews in one message, as a hook with batch gets them.
func (r *run) lists() {
	const check, n = "list", 3
	digest := "sha256:list-" + r.session
	list := v1alpha1.TaskReviewList{
		TypeMeta:  v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReviewList},
		Templates: map[string]json.RawMessage{digest: json.RawMessage(sampleTemplate)},
	}
	points := map[string]v1alpha1.Point{}
	for i := range n {
		request := r.sample(r.o.Points[0], fmt.Sprintf("list-%d", i))
		request.Task.TemplateSpec, request.Task.TemplateDigest = nil, digest
		points[request.UID] = request.Point
		list.Items = append(list.Items, v1alpha1.TaskReviewItem{Request: request})
	}
	answers, err := r.askList(list, points)
	if err != nil {
		r.problem(check, "%d reviews in a list: %v", n, err)
		return
	}
	for uid, a := range answers {
		switch {
		case a.Err != nil:
			r.problem(check, "%d reviews in a list: %s: %v", n, uid, a.Err)
			return
		case a.Response.Template == v1alpha1.TemplateSend:
			r.problem(check, "asks for a template that stood in the list's templates")
			return
		}
	}
	r.ok(check, "%d reviews in a list are answered", n)
	r.unknownTemplate(list)
}

// unknownTemplate refers to a template that was never sent, as happens to a plugin that was restarted.
func (r *run) unknownTemplate(list v1alpha1.TaskReviewList) {
	const check = "unknown template"
	request := r.sample(r.o.Points[0], "list-unknown")
	request.Task.TemplateSpec, request.Task.TemplateDigest = nil, "sha256:never-sent-"+r.session
	list.Templates = nil
	list.Items = []v1alpha1.TaskReviewItem{{Request: request}}
	answers, err := r.askList(list, map[string]v1alpha1.Point{request.UID: request.Point})
	if err == nil {
		err = answers[request.UID].Err
	}
	switch {
	case err != nil:
		r.problem(check, "a template that was not sent before (you may have been restarted): %v", err)
	case answers[request.UID].Response.Template == v1alpha1.TemplateSend:
		r.ok(check, "a template that is not known is asked for (template: Send)")
	default:
		r.note(check, "decides without the template, which it was never sent; answer template: Send where you need it")
	}
}

func (r *run) askList(list v1alpha1.TaskReviewList, points map[string]v1alpha1.Point) (map[string]v1alpha1.ListAnswer, error) {
	body, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	got, err := r.send(body, r.o.Secret, time.Now())
	if err != nil {
		return nil, err
	}
	if err := checkStatus(got); err != nil {
		return nil, err
	}
	return v1alpha1.DecodeResponseList(got.body, points)
}
