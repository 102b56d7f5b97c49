package v1alpha1

import "encoding/json"

// TaskReviewList is several reviews in one message, for hooks with batch above 1. The plugin answers with a list that
// has an answer for each uid, in any order; an answer that is missing counts as a failed call for that uid alone.
type TaskReviewList struct {
	TypeMeta `json:",inline"`
	// Templates holds the templates that the items refer to by digest and that the plugin was not sent before.
	Templates map[string]json.RawMessage `json:"templates,omitempty"`
	Items     []TaskReviewItem           `json:"items"`
}

// TaskReviewItem is one review of a list: a request, or in the answer a response or a failure.
type TaskReviewItem struct {
	Request  *TaskReviewRequest  `json:"request,omitempty"`
	Response *TaskReviewResponse `json:"response,omitempty"`
	// Failure says that the plugin could not answer this one; what an HTTP status of 500 says for a single review.
	Failure *TaskReviewFailure `json:"failure,omitempty"`
}

// TaskReviewFailure says which review of a list could not be answered, and why.
type TaskReviewFailure struct {
	UID     string `json:"uid"`
	Message string `json:"message"`
}
