// Package v1alpha1 is the public contract between Sluice and task hook plugins, group sluice.dev, version v1alpha1:
// the documents that register a hook ([TaskHook], [ClusterTaskHook]) and the message that is put to it ([TaskReview]).
//
// It is modelled on Kubernetes' admission reviews. A review's request is sent before a task runs (point Pre) and after
// it has ended (point Post); the plugin answers with a response of the same uid. docs/hooks.md explains the protocol,
// and the schema folder beside this file holds the JSON Schema of every message.
//
// The package needs the standard library only, so that a plugin that imports it stays small.
package v1alpha1

// Names on the wire.
const (
	Group      = "sluice.dev"
	Version    = "v1alpha1"
	APIVersion = Group + "/" + Version

	KindTaskHook        = "TaskHook"
	KindClusterTaskHook = "ClusterTaskHook"
	KindTaskReview      = "TaskReview"
	KindTaskReviewList  = "TaskReviewList"
)

// Limits of an answer, in bytes of JSON.
const (
	// MaxAnswerBytes bounds one answer as a whole; a list of answers may have as much for each of its items, and at
	// most MaxListBytes together.
	MaxAnswerBytes = 1 << 20
	MaxListBytes   = 16 << 20
	// MaxStateBytes bounds an answer's state, MaxPlaceholderBytes its placeholders together.
	MaxStateBytes       = 16 << 10
	MaxPlaceholderBytes = 64 << 10
	// MaxRetryAfterSeconds is the longest time between two polls of a pending review: a day.
	MaxRetryAfterSeconds = 86400
	// MaxBatch is the most reviews in one list.
	MaxBatch = 1000
)

// Headers of a review's HTTP request.
const (
	// HeaderHook is the name that the hook is registered under.
	HeaderHook = "Sluice-Hook"
	// HeaderDelivery counts the times that a review has been sent, from 1. For a list it is the highest of its items'.
	HeaderDelivery = "Sluice-Delivery"
	// HeaderTimestamp is when the request was signed, in seconds since 1970.
	HeaderTimestamp = "Sluice-Timestamp"
	// HeaderSignature is "v1=" and the hexadecimal HMAC-SHA256 of the timestamp's text, a full stop and the body.
	HeaderSignature = "Sluice-Signature"
)

// TypeMeta says what a document is.
type TypeMeta struct {
	// APIVersion is always [APIVersion].
	APIVersion string `json:"apiVersion"`
	// Kind is one of the kinds above.
	Kind string `json:"kind"`
}
