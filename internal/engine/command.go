package engine

import (
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// Command is something that the world is asked to do. Carrying out a command twice does no harm: every command names
// what it is about by an identity that does not change.
type Command interface{ command() }

// StartTask asks a backend to run an attempt. The identity is (run UID, Path): a path names one attempt.
type StartTask struct {
	Node NodeID
	// Path is the attempt's path, Pod its pod name, Attempt its number from 0.
	Path, Pod string
	Attempt   int
	Template  *program.Template
	// Body has all its placeholders resolved.
	Body program.Body
	// Inputs are the effective ones. ArtifactPaths says where each input artifact must appear, by name, in order.
	Inputs        Inputs
	ArtifactPaths map[string][]string
	// Outputs are the template's declared ones with their placeholders resolved; OutputArtifacts says, by name,
	// where each is to be stored.
	Outputs         program.Outputs
	OutputArtifacts map[string]program.Artifact
	// Timeout is the longest the command may take, from its start; 0 is none. The engine's own timer enforces it.
	Timeout time.Duration
	// RunPod are the pod settings of the whole run, resolved; only with [Machine.Pods].
	RunPod program.JSON
	// Labels, Annotations and PodPatch are the template's with the hooks' answers applied.
	Labels, Annotations map[string]string
	PodPatches          []program.JSON
	Daemon              bool
	// Retry is true where a failed attempt may be followed by another.
	Final bool
}

// StopTask asks a backend to end an attempt; Finished follows. Message says why.
type StopTask struct {
	Node    NodeID
	Path    string
	Message string
	// Force skips the grace period.
	Force bool
}

// AskHook asks the dispatcher to put a review to a hook; Answered follows. It may take hours.
type AskHook struct {
	Node  NodeID
	Point Point
	Hook  string
	// Scope is Task, Graph or Workflow.
	Scope string
	// UID is the idempotency key: derived from run, path, point and hook.
	UID string
	// Asked is when the engine first asked; deadlines count from it.
	Asked time.Time

	Path, Name string
	Attempt    int
	Template   *program.Template
	Call       *program.Call
	Inputs     Inputs
	// Parameters are the workflow's effective ones; they are not to be changed.
	Parameters map[string]any
	// OutputArtifacts says where outputs will be stored.
	OutputArtifacts map[string]program.Artifact
	// State is what this hook returned at Pre. Result is set at Post. Final marks the last attempt.
	State  program.JSON
	Result *Result
	Final  bool
	// Finished is when the attempt ended; Post only. Zero is Asked.
	Finished time.Time
	// Cache is set for the cache plugin: its key and age are resolved.
	Cache *program.Cache
	// Notify is set for notices that nothing waits for (a terminated run's Post); their answers are not told.
	Notify bool
}

// CancelHook asks the dispatcher to forget a review: nobody waits for it any more.
type CancelHook struct {
	Node  NodeID
	Point Point
	Hook  string
	UID   string
}

// SetTimer asks for a Fired event at a time; a timer of the same identity is replaced.
type SetTimer struct {
	Timer Timer
	At    time.Time
}

// CancelTimer takes a timer back.
type CancelTimer struct{ Timer Timer }

// Timer identifies a timer.
type Timer struct {
	Node NodeID    `json:"node"`
	Kind TimerKind `json:"kind"`
}

// TimerKind says what a timer is for.
type TimerKind string

// The kinds of timers.
const (
	DeadlineTimer TimerKind = "deadline" // a node's timeout or activeDeadlineSeconds, or the run's (node 0)
	BackoffTimer  TimerKind = "backoff"  // before the next attempt
	SuspendTimer  TimerKind = "suspend"  // a suspend task's duration
)

// AcquireLocks asks for all locks at once, in the given order; Acquired follows. Node 0 is the run.
type AcquireLocks struct {
	Node  NodeID
	Path  string
	Locks []program.Lock
}

// ReleaseLocks gives a node's locks back, or its place in the queue.
type ReleaseLocks struct {
	Node NodeID
	Path string
}

func (StartTask) command()    {}
func (StopTask) command()     {}
func (AskHook) command()      {}
func (CancelHook) command()   {}
func (SetTimer) command()     {}
func (CancelTimer) command()  {}
func (AcquireLocks) command() {}
func (ReleaseLocks) command() {}
