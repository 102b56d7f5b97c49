package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// DecodeReview reads a review as it is sent: apiVersion, kind, and a request with uid, hook, point, workflow and task.
// The plugin's side of the protocol ignores fields that it does not know (unknown = [IgnoreUnknown]); tests of Sluice
// itself refuse them. The error is of type [Problems].
func DecodeReview(data []byte, unknown UnknownFields) (*TaskReview, error) {
	var review TaskReview
	if err := decodeStrict(data, &review, "", unknown); err != nil {
		return nil, err
	}
	ps := checkMeta(review.TypeMeta, KindTaskReview)
	if review.Request == nil {
		ps.add("request", "is missing")
	} else {
		ps = append(ps, checkRequest(review.Request, "request")...)
	}
	if err := ps.Err(); err != nil {
		return nil, err
	}
	return &review, nil
}

// DecodeReviewList reads a list of reviews as it is sent. The error is of type [Problems].
func DecodeReviewList(data []byte, unknown UnknownFields) (*TaskReviewList, error) {
	var list TaskReviewList
	if err := decodeStrict(data, &list, "", unknown); err != nil {
		return nil, err
	}
	ps := checkMeta(list.TypeMeta, KindTaskReviewList)
	for i, item := range list.Items {
		path := fmt.Sprintf("items[%d].request", i)
		if item.Request == nil {
			ps.add(path, "is missing")
			continue
		}
		ps = append(ps, checkRequest(item.Request, path)...)
	}
	if err := ps.Err(); err != nil {
		return nil, err
	}
	return &list, nil
}

// DecodeResponse reads an answer to the question uid at point, and refuses everything that the protocol does not allow
// there: unknown fields, another uid, a decision of the other point, what is over a limit. The error is of type [Problems]
// and names every fault with its path.
func DecodeResponse(data []byte, point Point, uid string) (*TaskReviewResponse, error) {
	if len(data) > MaxAnswerBytes {
		return nil, Problems{{Message: fmt.Sprintf("is larger than %d bytes (1 MiB)", MaxAnswerBytes)}}
	}
	var review TaskReview
	if err := decodeStrict(data, &review, "", RefuseUnknown); err != nil {
		return nil, err
	}
	ps := checkMeta(review.TypeMeta, KindTaskReview)
	if review.Response == nil {
		ps.add("response", "is missing")
		return nil, ps
	}
	ps = append(ps, CheckResponse(review.Response, point, uid, "response")...)
	if err := ps.Err(); err != nil {
		return nil, err
	}
	return review.Response, nil
}

// ListAnswer is one item of a decoded answer to a list: a response, or why it cannot be used.
type ListAnswer struct {
	Response *TaskReviewResponse
	Err      error
}

// DecodeResponseList reads an answer to a list. points says for each uid that was sent at which point it was. The result
// has an entry for each of them: what is wrong with one answer does not spoil the others. An error means that nothing
// of the list can be used.
func DecodeResponseList(data []byte, points map[string]Point) (map[string]ListAnswer, error) {
	if len(data) > MaxListBytes {
		return nil, Problems{{Message: fmt.Sprintf("is larger than %d bytes (16 MiB)", MaxListBytes)}}
	}
	var list struct {
		TypeMeta
		Templates json.RawMessage   `json:"templates,omitempty"`
		Items     []json.RawMessage `json:"items"`
	}
	if err := decodeStrict(data, &list, "", RefuseUnknown); err != nil {
		return nil, err
	}
	if err := checkMeta(list.TypeMeta, KindTaskReviewList).Err(); err != nil {
		return nil, err
	}
	answers := make(map[string]ListAnswer, len(points))
	for i, raw := range list.Items {
		uid, answer := decodeListItem(raw, fmt.Sprintf("items[%d]", i), points)
		if _, asked := points[uid]; !asked {
			continue // nobody asked for it; what is missing is noticed below
		}
		if _, twice := answers[uid]; twice {
			answer = ListAnswer{Err: Problems{{Path: fmt.Sprintf("items[%d].response.uid", i), Message: "is there twice"}}}
		}
		answers[uid] = answer
	}
	for uid := range points {
		if _, answered := answers[uid]; !answered {
			answers[uid] = ListAnswer{Err: Problems{{Path: "items", Message: fmt.Sprintf("no answer for uid %q", uid)}}}
		}
	}
	return answers, nil
}

// decodeListItem reads one answer of a list and says for which uid it is.
func decodeListItem(raw json.RawMessage, path string, points map[string]Point) (string, ListAnswer) {
	// The uid is looked for first, so that a faulty answer is counted against the review that it is for.
	var head struct {
		Response struct {
			UID string `json:"uid"`
		} `json:"response"`
		Failure *TaskReviewFailure `json:"failure"`
	}
	if json.Unmarshal(raw, &head) != nil {
		return "", ListAnswer{}
	}
	if head.Failure != nil {
		return head.Failure.UID, ListAnswer{Err: fmt.Errorf("the plugin failed: %s", head.Failure.Message)}
	}
	uid := head.Response.UID
	if len(raw) > MaxAnswerBytes {
		return uid, ListAnswer{Err: Problems{{Path: path, Message: fmt.Sprintf("is larger than %d bytes (1 MiB)", MaxAnswerBytes)}}}
	}
	var item TaskReviewItem
	if err := decodeStrict(raw, &item, path, RefuseUnknown); err != nil {
		return uid, ListAnswer{Err: err}
	}
	if err := CheckResponse(item.Response, points[uid], uid, path+".response").Err(); err != nil {
		return uid, ListAnswer{Err: err}
	}
	return uid, ListAnswer{Response: item.Response}
}

// DecodeTaskHook reads a TaskHook or ClusterTaskHook from JSON. It checks the form (fields and their types), not the
// sense. The error is of type [Problems].
func DecodeTaskHook(data []byte) (*TaskHook, error) {
	var hook TaskHook
	if err := decodeStrict(data, &hook, "", RefuseUnknown); err != nil {
		return nil, err
	}
	var ps Problems
	if hook.APIVersion != APIVersion {
		ps.add("apiVersion", fmt.Sprintf("must be %q, not %q", APIVersion, hook.APIVersion))
	}
	if hook.Kind != KindTaskHook && hook.Kind != KindClusterTaskHook {
		ps.add("kind", fmt.Sprintf("must be %s or %s, not %q", KindTaskHook, KindClusterTaskHook, hook.Kind))
	}
	if err := ps.Err(); err != nil {
		return nil, err
	}
	return &hook, nil
}

func checkMeta(meta TypeMeta, kind string) Problems {
	var ps Problems
	if meta.APIVersion != APIVersion {
		ps.add("apiVersion", fmt.Sprintf("must be %q, not %q", APIVersion, meta.APIVersion))
	}
	if meta.Kind != kind {
		ps.add("kind", fmt.Sprintf("must be %q, not %q", kind, meta.Kind))
	}
	return ps
}

func checkRequest(r *TaskReviewRequest, path string) Problems {
	var ps Problems
	for _, required := range []struct{ name, value string }{
		{"uid", r.UID}, {"hook", r.Hook}, {"workflow.uid", r.Workflow.UID}, {"workflow.name", r.Workflow.Name},
		{"task.id", r.Task.ID}, {"task.path", r.Task.Path},
	} {
		if required.value == "" {
			ps.add(path+"."+required.name, "is missing")
		}
	}
	switch r.Scope {
	case ScopeTask, ScopeGraph, ScopeWorkflow:
	default:
		ps.add(path+".scope", fmt.Sprintf("must be Task, Graph or Workflow, not %q", r.Scope))
	}
	switch {
	case r.Point != Pre && r.Point != Post:
		ps.add(path+".point", fmt.Sprintf("must be Pre or Post, not %q", r.Point))
	case r.Point == Pre && r.Result != nil:
		ps.add(path+".result", "is for Post only")
	case r.Point == Post && r.Result == nil:
		ps.add(path+".result", "is missing")
	}
	return ps
}
