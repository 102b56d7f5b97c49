package v1alpha1

import "encoding/json"

// Decision is what a hook decided.
type Decision string

// The decisions at Pre.
const (
	// Run lets the task run.
	Run Decision = "Run"
	// Reuse ends the task as succeeded with the answer's outputs; nothing is started.
	Reuse Decision = "Reuse"
	// Skip ends the task as skipped.
	Skip Decision = "Skip"
)

// Fail ends the task as failed, at either point.
const Fail Decision = "Fail"

// The decisions at Post.
const (
	// Done accepts the result.
	Done Decision = "Done"
	// Retry drops the outputs and runs the task anew, as far as its retry strategy or the hook's maxRetries allow.
	Retry Decision = "Retry"
)

// TaskReviewResponse is the answer. It has a decision, or says that it is pending, or asks for the template.
type TaskReviewResponse struct {
	// UID repeats the request's.
	UID      string   `json:"uid"`
	Decision Decision `json:"decision,omitempty"`
	// Message is for people; with Fail it becomes the task's message.
	Message string `json:"message,omitempty"`

	// Placeholders are typed JSON values that the task reads as {{hooks.<hook>.<key>}} and later ones as
	// {{tasks.<name>.hooks.<hook>.<key>}}; Pre only. Keys are letters, digits, "_" and "-".
	Placeholders map[string]any `json:"placeholders,omitempty"`
	// Inputs replace the task's by name; Pre's Run only.
	Inputs *Inputs `json:"inputs,omitempty"`
	// Outputs are the reused ones (Pre's Reuse), or replace the task's by name (Post's Done and Fail).
	Outputs *Outputs `json:"outputs,omitempty"`
	// Labels, Annotations and PodPatch (a patch of the pod's spec, as podSpecPatch) are for the task's pod; Pre only.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	PodPatch    json.RawMessage   `json:"podPatch,omitempty"`
	// State is any JSON, handed back at Post; Pre only.
	State json.RawMessage `json:"state,omitempty"`

	// Pending says that there is no decision yet.
	Pending *Pending `json:"pending,omitempty"`
	// Template says how the plugin wants templates to be sent.
	Template TemplateUse `json:"template,omitempty"`
}

// Pending asks to be asked again. A plugin may take hours this way without holding a connection.
type Pending struct {
	// RetryAfterSeconds is when: above 0, at most [MaxRetryAfterSeconds].
	RetryAfterSeconds float64 `json:"retryAfterSeconds"`
}

// TemplateUse says how a plugin wants templates to be sent.
type TemplateUse string

// The ways to send templates.
const (
	// TemplateByDigest, beside any answer: "I keep templates; from now on send only the digest of one that I was sent."
	// With batch this is so without saying.
	TemplateByDigest TemplateUse = "ByDigest"
	// TemplateSend, instead of a decision: "I do not have this template; ask again with it in full." It is no failure.
	TemplateSend TemplateUse = "Send"
)
