// Package program is the one internal form of a workflow. The front ends compile what a user wrote into it and the
// engine runs it; nothing in it belongs to one manifest language, except that its texts and expressions are in the
// language that [Program.Language] names and are evaluated by that language's evaluator in internal/expr.
//
// A Program is data: it can be saved as JSON and loaded again, and it is never changed once a run has started.
package program

// Program is a whole workflow: an entry call and the templates that calls refer to.
type Program struct {
	// Language names the evaluator of every text, condition and expression: "argo" or "kfp".
	Language string `json:"language"`
	// Name is the manifest's own name (an Argo workflow's name or generateName, a pipeline's name).
	Name string `json:"name"`
	// Templates by key. A key is a scope and a name joined by "/": "local/main", "namespaced/my-templates/print",
	// "cluster/shared/print". Calls are bound to them when they are entered, so recursion is legal.
	Templates map[string]*Template `json:"templates"`
	// Entry is the call that the run starts with. Its name is empty: its node carries the run's name.
	Entry Call `json:"entry"`
	// OnExit runs when everything else has ended, whatever the result.
	OnExit *Call `json:"onExit,omitempty"`
	// Lifecycle calls subscribe to the state of the workflow as a whole.
	Lifecycle []Lifecycle `json:"lifecycle,omitempty"`
	// Parameters are the workflow's declared parameters with their defaults; a run's given values override them.
	Parameters []Input `json:"parameters,omitempty"`
	// Artifacts are the workflow's argument artifacts.
	Artifacts []InputArtifact `json:"artifacts,omitempty"`
	// Labels and Annotations of the workflow; hook selectors look at the labels. Values may hold placeholders.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// ServiceAccount and Priority are facts that placeholders can ask for.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	Priority       *int32 `json:"priority,omitempty"`
	// Parallelism limits how many tasks (leaves) of the run are running at once; 0 is no limit.
	Parallelism int64 `json:"parallelism,omitempty"`
	// Deadline is the longest that the run may take, in seconds from its start; 0 is none. Hooks count.
	Deadline int64 `json:"deadline,omitempty"`
	// Retry applies to the entry call's template when that has none (Argo's spec.retryStrategy).
	Retry *Retry `json:"retry,omitempty"`
	// Locks are held for the whole run.
	Locks []Lock `json:"locks,omitempty"`
	// Suspend starts the run suspended.
	Suspend bool `json:"suspend,omitempty"`
	// Shutdown starts the run as one that is to end: "Stop", where exit handlers run, or "Terminate"; "" is neither.
	Shutdown string `json:"shutdown,omitempty"`
	// ConfigMaps that bindings and semaphores may read, by name then key: a snapshot taken at submission.
	ConfigMaps map[string]map[string]string `json:"configMaps,omitempty"`
	// ArtifactRoot is where the manifest wants its artifacts (KFP's defaultPipelineRoot); empty is the run's store.
	ArtifactRoot string `json:"artifactRoot,omitempty"`
	// Pod holds pod-level settings for every task pod, in Kubernetes' own JSON; only the kube backend reads it.
	Pod JSON `json:"pod,omitempty"`
}

// Template is something that a call can run: exactly one of Task, Graph and Suspend is set.
type Template struct {
	// Key is the template's key in [Program.Templates]; Name is what the author called it.
	Key  string `json:"key"`
	Name string `json:"name"`

	Inputs  Inputs  `json:"inputs,omitzero"`
	Outputs Outputs `json:"outputs,omitzero"`

	Task    *Body    `json:"task,omitempty"`
	Graph   *Graph   `json:"graph,omitempty"`
	Suspend *Suspend `json:"suspend,omitempty"`

	// Retry makes every run of the template a sequence of attempts, each a node of its own.
	Retry *Retry `json:"retry,omitempty"`
	// Timeout limits one attempt, from the end of its Pre hooks, as a duration text ("30s") or a number of seconds.
	Timeout string `json:"timeout,omitempty"`
	// Deadline is Argo's activeDeadlineSeconds of the template: seconds, may hold a placeholder.
	Deadline string `json:"deadline,omitempty"`
	// Parallelism limits the children of a graph that run at once; 0 is no limit.
	Parallelism int64 `json:"parallelism,omitempty"`
	// Locks are taken before an attempt's Pre hooks and held until after its Post hooks.
	Locks []Lock `json:"locks,omitempty"`
	// Cache asks the cache plugin, last of all Pre hooks.
	Cache *Cache `json:"cache,omitempty"`
	// Labels and Annotations of the task, for hooks and pods; values may hold placeholders.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Daemon tasks count as done once they are ready, and end with the graph that called them.
	Daemon bool `json:"daemon,omitempty"`
	// Source is the author's own text of the template as JSON: what a hook is shown as "the template in full".
	Source JSON `json:"source,omitempty"`
}

// Suspend is a task that waits: for its duration, or for a person where there is none.
type Suspend struct {
	// Duration as Argo writes it ("20", "2h"); may hold a placeholder.
	Duration string `json:"duration,omitempty"`
}

// Retry says when a failed attempt is followed by another.
type Retry struct {
	// Limit is how many times to retry, as a text that may hold a placeholder; empty is no limit.
	Limit string `json:"limit,omitempty"`
	// Policy is Always, OnFailure (default), OnError or OnTransientError; Always where Expression is set.
	Policy string `json:"policy,omitempty"`
	// Expression must be true for another attempt; it reads lastRetry.*.
	Expression string `json:"expression,omitempty"`
	// Backoff durations are texts ("2m" or seconds) that may hold placeholders.
	Backoff *Backoff `json:"backoff,omitempty"`
}

// Backoff is the wait before the next attempt: Duration * Factor^n, at most Cap; none starts MaxDuration after the first.
type Backoff struct {
	Duration    string `json:"duration,omitempty"`
	Factor      string `json:"factor,omitempty"`
	Cap         string `json:"cap,omitempty"`
	MaxDuration string `json:"maxDuration,omitempty"`
}

// Lock is a mutex, or a semaphore whose size is read when it is taken.
type Lock struct {
	// Semaphore is false for a mutex.
	Semaphore bool `json:"semaphore,omitempty"`
	// Namespace, Name and Key may hold placeholders. A semaphore's size is the ConfigMap Name's Key.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`
	Database  bool   `json:"database,omitempty"`
}

// Cache asks for the reuse of earlier outputs of the same work.
type Cache struct {
	// Scheme is "key" (Argo's memoize: Key decides) or "kfp" (Kubeflow's fingerprint over what the task is given).
	Scheme string `json:"scheme"`
	// Key and MaxAge may hold placeholders; Name is the cache they belong to.
	Name   string `json:"name,omitempty"`
	Key    string `json:"key,omitempty"`
	MaxAge string `json:"maxAge,omitempty"`
}
