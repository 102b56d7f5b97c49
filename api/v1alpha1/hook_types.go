package v1alpha1

import "encoding/json"

// TaskHook registers a hook for the workflows of its namespace; in local mode, for those of this machine.
// A ClusterTaskHook has the same form and no namespace: it is for all workflows, and wraps the namespaced hooks.
type TaskHook struct {
	TypeMeta `json:",inline"`
	Metadata ObjectMeta   `json:"metadata"`
	Spec     TaskHookSpec `json:"spec"`
	// Status is what a cluster's controller last saw of the hook. Files may contain it; it is not read.
	Status json.RawMessage `json:"status,omitempty"`
}

// Cluster says whether the hook is controller-wide.
func (h *TaskHook) Cluster() bool { return h.Kind == KindClusterTaskHook }

// ObjectMeta is the part of a Kubernetes object's metadata that matters here. What else the API server adds is
// accepted and kept as it is.
type ObjectMeta struct {
	// Name is a DNS label (lower case letters, digits and "-", at most 63). It is the <hook> of {{hooks.<hook>.<key>}}.
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	UID               string          `json:"uid,omitempty"`
	ResourceVersion   string          `json:"resourceVersion,omitempty"`
	Generation        int64           `json:"generation,omitempty"`
	CreationTimestamp json.RawMessage `json:"creationTimestamp,omitempty"`
	DeletionTimestamp json.RawMessage `json:"deletionTimestamp,omitempty"`
	ManagedFields     json.RawMessage `json:"managedFields,omitempty"`
	OwnerReferences   json.RawMessage `json:"ownerReferences,omitempty"`
	Finalizers        []string        `json:"finalizers,omitempty"`
}

// TaskHookSpec says when a hook is asked, how long it is waited for and how it is reached.
// Exactly one of HTTP, Container and Builtin is set.
type TaskHookSpec struct {
	// Points are when it is asked: Pre, Post or both; both by default.
	Points []Point `json:"points,omitempty"`
	// Scope is what it is asked for: Task (the default), Graph (a DAG, steps or pipeline component as a whole) and
	// Workflow.
	Scope []Scope `json:"scope,omitempty"`
	// Selector is over the workflow's labels; others are never sent. Absent or empty selects every workflow.
	Selector *LabelSelector `json:"selector,omitempty"`
	// MatchConditions are CEL expressions over "task" and "workflow"; all must be true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
	// Order is ascending at Pre and descending at Post; 0 by default; ties go by name. Cluster hooks come before
	// namespaced ones at Pre whatever their order.
	Order int32 `json:"order,omitempty"`
	// FailurePolicy says what happens once the retries or the deadline are spent: Fail (the default) or Ignore.
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// TimeoutSeconds is for one call, 1 to 300; 10 by default.
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// DeadlineSeconds is for the whole wait at one point: retries, open circuit and pending included; from when the
	// hook was first asked. 86400 (a day) by default.
	DeadlineSeconds int64 `json:"deadlineSeconds,omitempty"`
	// Retry is for calls that failed: no connection, no answer in time, a status other than 200, or nonsense.
	Retry *RetryPolicy `json:"retry,omitempty"`
	// MaxRetries bounds how often a Post's Retry runs a task anew that has no retry policy of its own; 1 by default.
	MaxRetries *int32 `json:"maxRetries,omitempty"`
	// MaxConcurrency bounds the calls to this hook that are under way at once; 8 by default.
	MaxConcurrency int32 `json:"maxConcurrency,omitempty"`
	// Batch, when above 1, sends lists of up to so many reviews ([TaskReviewList]) and expects a list of answers.
	Batch int32 `json:"batch,omitempty"`

	HTTP      *HTTPHook      `json:"http,omitempty"`
	Container *ContainerHook `json:"container,omitempty"`
	Builtin   *BuiltinHook   `json:"builtin,omitempty"`
}

// FailurePolicy says how a hook that failed for good is taken.
type FailurePolicy string

// The failure policies.
const (
	// FailOnFailure ends the task as a failure.
	FailOnFailure FailurePolicy = "Fail"
	// IgnoreFailure goes on as if the hook had answered Run or Done, without placeholders.
	IgnoreFailure FailurePolicy = "Ignore"
)

// LabelSelector is Kubernetes' label selector: all of MatchLabels and MatchExpressions must hold.
type LabelSelector struct {
	MatchLabels      map[string]string          `json:"matchLabels,omitempty"`
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelectorRequirement is one condition on a label.
type LabelSelectorRequirement struct {
	Key string `json:"key"`
	// Operator is In, NotIn, Exists or DoesNotExist. NotIn holds for an absent label, as in Kubernetes.
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// MatchCondition is a CEL expression with a name for messages.
type MatchCondition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

// RetryPolicy says how often and how fast a failed call is made again.
type RetryPolicy struct {
	// Limit is the number of calls after the first; 5 by default, 0 for none.
	Limit *int32 `json:"limit,omitempty"`
	// Backoff is the wait before each of them.
	Backoff *RetryBackoff `json:"backoff,omitempty"`
}

// RetryBackoff is Duration * Factor^n, at most Cap, with a jitter of a fifth either way.
type RetryBackoff struct {
	// Duration and Cap are texts as Go writes durations ("500ms", "2m") or whole seconds ("30"); "1s" and "1m" by default.
	Duration string `json:"duration,omitempty"`
	Cap      string `json:"cap,omitempty"`
	// Factor is at least 1; 2 by default.
	Factor float64 `json:"factor,omitempty"`
}

// HTTPHook is a plugin that is reached by HTTP POST. Either URL or Service is set.
type HTTPHook struct {
	// URL is absolute, https or http, without credentials in it. Redirects are not followed.
	URL string `json:"url,omitempty"`
	// Service names a Kubernetes Service; on a cluster only.
	Service *ServiceReference `json:"service,omitempty"`
	// CABundle verifies the server's certificate, instead of the system's authorities.
	CABundle CABundle `json:"caBundle,omitempty"`
	// Auth says how the plugin can know that a request is ours.
	Auth *HTTPAuth `json:"auth,omitempty"`
}

// ServiceReference is a Service and where on it the plugin answers.
type ServiceReference struct {
	Name string `json:"name"`
	// Namespace defaults to the hook's; a ClusterTaskHook must say it.
	Namespace string `json:"namespace,omitempty"`
	// Port is 443 by default, Path "/".
	Port int32  `json:"port,omitempty"`
	Path string `json:"path,omitempty"`
}

// HTTPAuth is how requests are authenticated; at most one of its fields is set.
type HTTPAuth struct {
	// HMAC signs timestamp and body with a shared secret ([HeaderSignature]).
	HMAC *HMACAuth `json:"hmac,omitempty"`
	// ServiceAccountToken sends a bearer token for an audience; on a cluster only.
	ServiceAccountToken *ServiceAccountToken `json:"serviceAccountToken,omitempty"`
}

// HMACAuth names the shared secret.
type HMACAuth struct {
	SecretFrom SecretSource `json:"secretFrom"`
}

// SecretSource says where a secret is read, at every use; exactly one field is set.
type SecretSource struct {
	// File is a path; one that is not absolute is beside the document that names it. A last line break is dropped.
	File string `json:"file,omitempty"`
	// Env is a variable of Sluice's own environment.
	Env string `json:"env,omitempty"`
	// SecretKeyRef is a key of a Kubernetes Secret in the hook's namespace; on a cluster only.
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`
}

// SecretKeyRef is a key of a Kubernetes Secret.
type SecretKeyRef struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	// Namespace is for a ClusterTaskHook only.
	Namespace string `json:"namespace,omitempty"`
}

// ServiceAccountToken asks for a token of the controller's service account.
type ServiceAccountToken struct {
	// Audience is who the token is for: the plugin.
	Audience string `json:"audience"`
}

// ContainerHook runs inside the task's own pod, before or after the task. It finds the task's inputs and outputs under
// /sluice/inputs and /sluice/outputs, the request in /sluice/hook/request.json, and answers in /sluice/hook/response.json.
type ContainerHook struct {
	Image           string   `json:"image"`
	ImagePullPolicy string   `json:"imagePullPolicy,omitempty"`
	Command         []string `json:"command,omitempty"`
	Args            []string `json:"args,omitempty"`
	Env             []EnvVar `json:"env,omitempty"`
	// Resources and SecurityContext are in Kubernetes' own form.
	Resources       json.RawMessage `json:"resources,omitempty"`
	SecurityContext json.RawMessage `json:"securityContext,omitempty"`
}

// EnvVar is a variable with a literal value.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

// BuiltinHook is a plugin that is linked into Sluice.
type BuiltinHook struct {
	// Name is "cache" or "lineage".
	Name string `json:"name"`
	// Settings are the plugin's own; docs/hooks.md lists them.
	Settings json.RawMessage `json:"settings,omitempty"`
}
