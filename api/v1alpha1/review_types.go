package v1alpha1

import (
	"encoding/json"
	"time"
)

// TaskReview is the message of the protocol: Sluice sends it with Request, the plugin answers it with Response.
// A plugin may send the request back, too; it is not read.
type TaskReview struct {
	TypeMeta `json:",inline"`
	Request  *TaskReviewRequest  `json:"request,omitempty"`
	Response *TaskReviewResponse `json:"response,omitempty"`
}

// Point is a moment at which a hook is asked.
type Point string

// The points.
const (
	// Pre is before the attempt starts, when its inputs are known.
	Pre Point = "Pre"
	// Post is after it has ended, before anything that depends on it starts.
	Post Point = "Post"
)

// Scope is what a hook is asked for.
type Scope string

// The scopes.
const (
	// ScopeTask is one attempt at a task.
	ScopeTask Scope = "Task"
	// ScopeGraph is a DAG, steps or pipeline component as a whole.
	ScopeGraph Scope = "Graph"
	// ScopeWorkflow is the workflow as a whole.
	ScopeWorkflow Scope = "Workflow"
)

// TaskReviewRequest is the question.
type TaskReviewRequest struct {
	// UID is the idempotency key: the same for every retry and every poll of the same point of the same attempt.
	UID string `json:"uid"`
	// Hook is the name that the hook is registered under.
	Hook  string `json:"hook"`
	Point Point  `json:"point"`
	Scope Scope  `json:"scope"`
	// Asked is when the question was first put, and Deadline when the wait for an answer ends.
	Asked    time.Time  `json:"asked"`
	Deadline *time.Time `json:"deadline,omitempty"`

	Workflow Workflow `json:"workflow"`
	Task     Task     `json:"task"`
	// State is what this plugin returned at Pre; Post only.
	State json.RawMessage `json:"state,omitempty"`
	// Result is how the attempt ended; Post only.
	Result *Result `json:"result,omitempty"`
	// Callback says where an answer can be sent that ends a pending review early.
	Callback *Callback `json:"callback,omitempty"`
}

// Workflow is what a plugin is told of the workflow.
type Workflow struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid"`
	// Pipeline is the manifest's own name: a pipeline's, or the name or generateName of an Argo Workflow.
	Pipeline string `json:"pipeline,omitempty"`
	// Language is the manifest's: "argo" or "kfp".
	Language    string            `json:"language,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Parameters are the workflow's, those given and the defaults of those not given.
	Parameters map[string]any `json:"parameters,omitempty"`
	// ArtifactRoot is where outputs are stored: a folder or a URI.
	ArtifactRoot string     `json:"artifactRoot,omitempty"`
	CreatedAt    *time.Time `json:"createdAt,omitempty"`
}

// Task is what is about to run or has run: an attempt at a task, a graph, or (scope Workflow) the workflow's entry.
type Task struct {
	// ID is unique in the workflow; workflow.uid and ID together are unique everywhere.
	ID string `json:"id"`
	// Path is the name in full, as Argo builds node names: "run.task", "run[0].step", "run.loop(0:item)", "run.task(1)".
	Path string `json:"path"`
	// Name is the task's name for people, the last part of Path.
	Name string `json:"name"`
	// Attempt counts from 0. Final says that no other attempt will follow it, however it ends.
	Attempt int  `json:"attempt"`
	Final   bool `json:"final"`
	// Template is the template's name. TemplateSpec is the template in full, as its author wrote it, and TemplateDigest
	// names it: equal templates have equal digests ("sha256:..."; compare it, do not compute it). Where the plugin was
	// sent a template before, it may get the digest only: see [TemplateUse].
	Template       string          `json:"template,omitempty"`
	TemplateSpec   json.RawMessage `json:"templateSpec,omitempty"`
	TemplateDigest string          `json:"templateDigest,omitempty"`
	// Call is the call of the template as its author wrote it: a DAG task, a step, a pipeline task.
	Call        json.RawMessage   `json:"call,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Inputs are the resolved inputs, with what earlier hooks replaced.
	Inputs Inputs `json:"inputs"`
	// OutputArtifacts say where each output artifact will be stored, by name.
	OutputArtifacts map[string]Artifact `json:"outputArtifacts,omitempty"`
	// Cache is what the author asked of a cache (Argo's memoize, KFP's cachingOptions).
	Cache *Cache `json:"cache,omitempty"`
}

// Inputs are values by name. In an answer they replace the task's inputs of those names.
type Inputs struct {
	Parameters map[string]any        `json:"parameters,omitempty"`
	Artifacts  map[string][]Artifact `json:"artifacts,omitempty"`
	// Defaulted names the parameters that no caller gave. In requests only.
	Defaulted []string `json:"defaulted,omitempty"`
}

// Outputs are values by name. Result is standard output, where the template asks for it.
type Outputs struct {
	Parameters map[string]any        `json:"parameters,omitempty"`
	Artifacts  map[string][]Artifact `json:"artifacts,omitempty"`
	Result     *string               `json:"result,omitempty"`
}

// Artifact is an artifact's description, apart from its bytes. Either URI or Store is set.
type Artifact struct {
	Name string `json:"name,omitempty"`
	URI  string `json:"uri,omitempty"`
	// Type is a schema title ("system.Model") or a schema, TypeVersion its version.
	Type        string         `json:"type,omitempty"`
	TypeVersion string         `json:"typeVersion,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty"`
	// Store is where the bytes are, in the form of Argo's artifact locations: {"s3": {...}}, {"folder": {"path": ...}}.
	// Secrets are named in it, never contained.
	Store json.RawMessage `json:"store,omitempty"`
	// SubPath narrows to something inside; Archive ("tar", "zip", "none") is how it is packed.
	SubPath    string `json:"subPath,omitempty"`
	Archive    string `json:"archive,omitempty"`
	CustomPath string `json:"customPath,omitempty"`
	// Digest is "sha256:..." and Size in bytes, where they are known.
	Digest string `json:"digest,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// Cache is what the author asked of a cache.
type Cache struct {
	// Scheme is "key" (Argo's memoize: Key decides) or "kfp" (a fingerprint over what the task is given).
	Scheme string `json:"scheme"`
	Name   string `json:"name,omitempty"`
	Key    string `json:"key,omitempty"`
	// MaxAge is a duration text; an older entry is not used.
	MaxAge string `json:"maxAge,omitempty"`
}

// Result is how an attempt ended.
type Result struct {
	// Phase is Succeeded, Failed or Error; Skipped where a hook said so.
	Phase    string  `json:"phase"`
	ExitCode *int    `json:"exitCode,omitempty"`
	Message  string  `json:"message,omitempty"`
	Outputs  Outputs `json:"outputs"`
	// Reused is true where a Pre hook gave the outputs of earlier work: nothing was started.
	Reused     bool       `json:"reused"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	Host       string     `json:"host,omitempty"`
	// Resources are what it used: "cpu" in seconds, "memory" in bytes times seconds.
	Resources map[string]int64 `json:"resources,omitempty"`
}

// Callback is where an answer can be sent before the next poll: POST a TaskReview with the response to URL, with the
// header "Authorization: Bearer <Token>". The token is for this uid only and works once.
type Callback struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}
