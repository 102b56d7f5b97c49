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

// TaskReviewItem is one review of a list.
type TaskReviewItem struct {
	Request  *TaskReviewRequest  `json:"request,omitempty"`
	Response *TaskReviewResponse `json:"response,omitempty"`
}
