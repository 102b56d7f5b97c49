// Package metadata keeps what ran and what it made: artifacts, the executions that read and wrote them, and the
// contexts (pipelines and their runs) that they belong to. Model and names are ML Metadata's, types are Kubeflow
// Pipelines' (system.*), so that the ML Metadata service can be served from the same tables.
package metadata

import "time"

// The types that Kubeflow Pipelines has.
const (
	PipelineContext    = "system.Pipeline"
	PipelineRunContext = "system.PipelineRun"

	ContainerExecution = "system.ContainerExecution"
	DAGExecution       = "system.DAGExecution"
	ImporterExecution  = "system.ImporterExecution"

	// GenericArtifact is the type of an artifact whose type nobody said.
	GenericArtifact = "system.Artifact"
)

// Properties are typed values by name: bool, int64, float64, string, or lists and maps of them.
type Properties map[string]any

// ExecutionState says how far an execution is.
type ExecutionState string

// The states of an execution.
const (
	Running  ExecutionState = "RUNNING"
	Complete ExecutionState = "COMPLETE"
	Failed   ExecutionState = "FAILED"
	Cached   ExecutionState = "CACHED"
	Canceled ExecutionState = "CANCELED"
)

// ArtifactState says whether an artifact's bytes are there.
type ArtifactState string

// The states of an artifact.
const (
	Pending ArtifactState = "PENDING"
	Live    ArtifactState = "LIVE"
	Deleted ArtifactState = "DELETED"
)

// Artifact is something that an execution made or read.
type Artifact struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Name is unique among artifacts of a type; empty is none.
	Name   string        `json:"name,omitempty"`
	URI    string        `json:"uri,omitempty"`
	Digest string        `json:"digest,omitempty"`
	State  ArtifactState `json:"state,omitempty"`
	// Properties are those of the type, Custom all others.
	Properties Properties `json:"properties,omitempty"`
	Custom     Properties `json:"customProperties,omitempty"`
	Created    time.Time  `json:"created"`
	Updated    time.Time  `json:"updated"`
}

// Execution is one run of a task, of a graph of them, or an import.
type Execution struct {
	ID   int64  `json:"id"`
	Type string `json:"type"`
	// Name is unique among executions of a type; empty is none.
	Name       string         `json:"name,omitempty"`
	State      ExecutionState `json:"state"`
	Properties Properties     `json:"properties,omitempty"`
	Custom     Properties     `json:"customProperties,omitempty"`
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
}

// Context is a group: a pipeline, or one run of it.
type Context struct {
	ID         int64      `json:"id"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Properties Properties `json:"properties,omitempty"`
	Custom     Properties `json:"customProperties,omitempty"`
	Created    time.Time  `json:"created"`
	Updated    time.Time  `json:"updated"`
}

// EventType says how an execution dealt with an artifact.
type EventType string

// The types of events.
const (
	Input  EventType = "INPUT"
	Output EventType = "OUTPUT"
)

// Event is that an execution read or wrote an artifact.
type Event struct {
	ArtifactID  int64     `json:"artifactId"`
	ExecutionID int64     `json:"executionId"`
	Type        EventType `json:"type"`
	// Path is the artifact's place among the execution's inputs or outputs: its name, and its index in a list.
	Path []any     `json:"path,omitempty"`
	Time time.Time `json:"time"`
}

// ArtifactEvent is an artifact to be written with its event.
type ArtifactEvent struct {
	Artifact Artifact
	Type     EventType
	Path     []any
	// Adopt takes the newest artifact with the same URI where there is one, instead of making another; its properties
	// stay. Without Adopt an artifact that this execution wrote at the same Path before is updated.
	Adopt bool
}

// Record is what [Store.PutExecution] writes in one transaction.
type Record struct {
	// Execution is found by type and name where its ID is 0. Its custom properties are merged over those it has.
	Execution Execution
	Artifacts []ArtifactEvent
	// Contexts are made where they are missing, by type and name. The execution and its artifacts belong to all of them; each is
	// a child of the one before it.
	Contexts []Context
}

// Recorded says what a record became.
type Recorded struct {
	ExecutionID int64
	// ArtifactIDs are in the order of Record.Artifacts, ContextIDs in that of Record.Contexts.
	ArtifactIDs []int64
	ContextIDs  []int64
}
