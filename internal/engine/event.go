package engine

import (
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// Event is something that happened, told to [State.Step]. Time and Seed are the only sources of time and randomness
// that the engine knows. Exactly one of the pointers is set. Events are what a run's store keeps: replaying them from
// the first gives the same state and the same commands.
type Event struct {
	Time time.Time `json:"time"`
	Seed uint64    `json:"seed,omitempty"`

	Start     *Start     `json:"start,omitempty"`
	Running   *Running   `json:"running,omitempty"`
	Finished  *Finished  `json:"finished,omitempty"`
	Answered  *Answered  `json:"answered,omitempty"`
	Noted     *Noted     `json:"noted,omitempty"`
	Fired     *Fired     `json:"fired,omitempty"`
	Acquired  *Acquired  `json:"acquired,omitempty"`
	Resume    *Resume    `json:"resume,omitempty"`
	Suspend   *Suspend   `json:"suspend,omitempty"`
	Shutdown  *Shutdown  `json:"shutdown,omitempty"`
	RetryRun  *RetryRun  `json:"retryRun,omitempty"`
	Abandoned *Abandoned `json:"abandoned,omitempty"`
}

// Run is what is known of a run when it starts.
type Run struct {
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Namespace string    `json:"namespace,omitempty"`
	Title     string    `json:"title,omitempty"`
	Created   time.Time `json:"created"`
	// Scheduled is set for runs of a schedule.
	Scheduled *time.Time `json:"scheduled,omitempty"`
	// Parameters are the workflow's parameters as given, without defaults.
	Parameters map[string]any                `json:"parameters,omitempty"`
	Artifacts  map[string][]program.Artifact `json:"artifacts,omitempty"`
	// ArtifactRoot is where outputs are stored: a folder's path or a URI.
	ArtifactRoot string `json:"artifactRoot,omitempty"`
	// Repository is Argo's artifact repository, which goes before ArtifactRoot for Argo's workflows: a store block with a
	// keyFormat that may hold placeholders.
	Repository program.JSON `json:"repository,omitempty"`
	// Labels and Annotations of the run, the program's with their placeholders resolved included.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Hooks are the task hooks that selected this run, a snapshot taken at its start, in their Pre order.
	Hooks []Hook `json:"hooks,omitempty"`
	// MaxDepth bounds recursion; 0 is 100, as Argo.
	MaxDepth int `json:"maxDepth,omitempty"`
	// MaxNodes bounds what templates that call themselves several times grow to; 0 is a million.
	MaxNodes int `json:"maxNodes,omitempty"`
}

// Hook is what the engine needs to know of a registered task hook; how it is reached is the dispatcher's business.
type Hook struct {
	Name string `json:"name"`
	// Pre and Post, and Task, Graph and Workflow, say when it is asked.
	Pre      bool `json:"pre,omitempty"`
	Post     bool `json:"post,omitempty"`
	Task     bool `json:"task,omitempty"`
	Graph    bool `json:"graph,omitempty"`
	Workflow bool `json:"workflow,omitempty"`
	// Match are CEL conditions over "task" and "workflow"; all must hold.
	Match []string `json:"match,omitempty"`
	// Ignore is failurePolicy Ignore: a hook that failed for good counts as Run or Done.
	Ignore bool `json:"ignore,omitempty"`
	// MaxRetries bounds Post's Retry where the task has no retry policy; 1 by default.
	MaxRetries int `json:"maxRetries,omitempty"`
	// Cache marks the cache plugin: asked last, and only for calls with a [program.Cache].
	Cache bool `json:"cache,omitempty"`
	// Settings are the dispatcher's own, as they were when the hook was selected: timeouts, retries, list size.
	Settings program.JSON `json:"settings,omitempty"`
}

// Start begins the run. It is the first event, once.
type Start struct {
	Run Run `json:"run"`
}

// Running says that an attempt's command has started.
type Running struct {
	Node NodeID `json:"node"`
	Host string `json:"host,omitempty"`
	IP   string `json:"ip,omitempty"`
	// Ready is for daemons: they count as done from now on.
	Ready bool `json:"ready,omitempty"`
}

// Finished says how an attempt ended. A failed command is a result; what broke around it is an Error.
type Finished struct {
	Node   NodeID `json:"node"`
	Result Result `json:"result"`
}

// Result is how an attempt ended.
type Result struct {
	// Phase is Succeeded, Failed or Error (and Skipped, where a container Pre hook said so).
	Phase    Phase   `json:"phase"`
	ExitCode *int    `json:"exitCode,omitempty"`
	Message  string  `json:"message,omitempty"`
	Outputs  Outputs `json:"outputs,omitzero"`
	// Reused is set where outputs of earlier work stand in for a run.
	Reused bool `json:"reused,omitempty"`
	// Transient marks infrastructure errors that the OnTransientError policy retries.
	Transient bool      `json:"transient,omitempty"`
	Started   time.Time `json:"started,omitzero"`
	Host      string    `json:"host,omitempty"`
	// Resources are what it used: seconds of CPU, bytes of memory times seconds, as Kubernetes counts them.
	Resources map[string]int64 `json:"resources,omitempty"`
	// Containers says how each container of a task with several ended, in the order of the template.
	Containers []ContainerResult `json:"containers,omitempty"`
}

// ContainerResult is how one container of a task with several ended.
type ContainerResult struct {
	Name     string    `json:"name"`
	Phase    Phase     `json:"phase"`
	ExitCode *int      `json:"exitCode,omitempty"`
	Message  string    `json:"message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
}

// Inputs are the resolved inputs of a node. Defaulted names those that no caller gave.
type Inputs struct {
	Parameters map[string]any                `json:"parameters,omitempty"`
	Artifacts  map[string][]program.Artifact `json:"artifacts,omitempty"`
	Defaulted  map[string]bool               `json:"defaulted,omitempty"`
}

// Outputs are what a node gave. Result is standard output, where the template asks for it.
type Outputs struct {
	Parameters map[string]any                `json:"parameters,omitempty"`
	Artifacts  map[string][]program.Artifact `json:"artifacts,omitempty"`
	Result     *string                       `json:"result,omitempty"`
}

// Point is a moment at which a hook is asked.
type Point string

// The points.
const (
	Pre  Point = "Pre"
	Post Point = "Post"
)

// Answered is a hook's answer, or that it failed for good (Failure set).
type Answered struct {
	Node   NodeID `json:"node"`
	Point  Point  `json:"point"`
	Hook   string `json:"hook"`
	Answer Answer `json:"answer"`
	// Failure says why there is no answer after all retries or at the deadline.
	Failure string `json:"failure,omitempty"`
}

// Decision is what a hook decided.
type Decision string

// Decisions: Run, Reuse, Skip and Fail at Pre; Done, Fail and Retry at Post.
const (
	DecideRun   Decision = "Run"
	DecideReuse Decision = "Reuse"
	DecideSkip  Decision = "Skip"
	DecideFail  Decision = "Fail"
	DecideDone  Decision = "Done"
	DecideRetry Decision = "Retry"
)

// Answer is what a hook said.
type Answer struct {
	Decision Decision `json:"decision"`
	Message  string   `json:"message,omitempty"`
	// Placeholders that the task and later ones can read; Pre only.
	Placeholders map[string]any `json:"placeholders,omitempty"`
	// Inputs replace the task's by name; Pre only.
	Inputs *Inputs `json:"inputs,omitempty"`
	// Outputs are the reused ones (Pre's Reuse), or replace the task's by name (Post).
	Outputs *Outputs `json:"outputs,omitempty"`
	// State is handed back at Post.
	State       program.JSON      `json:"state,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	PodPatch    program.JSON      `json:"podPatch,omitempty"`
}

// Noted sets a node's message (0: the run's, while it waits for its locks) while it waits ("waiting for hook lineage: connection refused, attempt 4").
type Noted struct {
	Node     NodeID `json:"node"`
	Message  string `json:"message"`
	Progress string `json:"progress,omitempty"`
}

// Fired says that a timer's time has come.
type Fired struct {
	Timer Timer `json:"timer"`
}

// Acquired says that a node (0: the whole run) holds its locks.
type Acquired struct {
	Node NodeID `json:"node"`
	// Failure says why they can never be held: no such ConfigMap, for one.
	Failure string `json:"failure,omitempty"`
}

// Resume ends suspend tasks: those of Nodes, or all, and a suspended run. Outputs are the supplied ones.
type Resume struct {
	Nodes   []NodeID       `json:"nodes,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
	Message string         `json:"message,omitempty"`
	// Phase, when set, is how the suspended nodes end (argo node set --phase); Succeeded otherwise.
	Phase Phase `json:"phase,omitempty"`
}

// Suspend stops new tasks from starting until Resume.
type Suspend struct{}

// Shutdown ends the run: Stop lets exit handlers and Post hooks run, Terminate does not wait for them.
type Shutdown struct {
	Terminate bool   `json:"terminate,omitempty"`
	Message   string `json:"message,omitempty"`
	// Nodes limits a Stop to single tasks (argo stop --node-field-selector); empty is the whole run.
	Nodes []NodeID `json:"nodes,omitempty"`
}

// RetryRun starts a failed run again: what succeeded stays, with the answers of its hooks; the rest runs anew.
type RetryRun struct {
	// Restart also runs succeeded nodes again: those whose path is listed, with all that depends on them.
	Restart    []NodeID       `json:"restart,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
}

// Abandoned says that something around the run broke for good (its program cannot be read any more, for one).
type Abandoned struct {
	Message string `json:"message"`
}
