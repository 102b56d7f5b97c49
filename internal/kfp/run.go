package kfp

import (
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// The types of this file are v2beta1's Run as its API writes it: names with underscores, 64-bit integers as texts, times in
// RFC 3339. Fields that upstream does not have are marked as ours.

// Run is one run of a pipeline.
type Run struct {
	ExperimentID string `json:"experiment_id,omitempty"`
	RunID        string `json:"run_id"`
	DisplayName  string `json:"display_name"`
	StorageState string `json:"storage_state,omitempty"`
	Description  string `json:"description,omitempty"`
	// PipelineSpec is the pipeline as it was given.
	PipelineSpec   any             `json:"pipeline_spec,omitempty"`
	RuntimeConfig  RuntimeConfig   `json:"runtime_config"`
	ServiceAccount string          `json:"service_account,omitempty"`
	CreatedAt      time.Time       `json:"created_at,omitzero"`
	ScheduledAt    *time.Time      `json:"scheduled_at,omitempty"`
	FinishedAt     time.Time       `json:"finished_at,omitzero"`
	State          string          `json:"state"`
	Error          *Status         `json:"error,omitempty"`
	RunDetails     RunDetails      `json:"run_details"`
	StateHistory   []RuntimeStatus `json:"state_history,omitempty"`
	// Outputs are the pipeline's own outputs (ours).
	Outputs *Values `json:"outputs,omitempty"`
}

// RuntimeConfig is what a run was given.
type RuntimeConfig struct {
	Parameters   map[string]any `json:"parameters,omitempty"`
	PipelineRoot string         `json:"pipeline_root,omitempty"`
}

// Status is google.rpc.Status.
type Status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

// RuntimeStatus is a state and when it began.
type RuntimeStatus struct {
	UpdateTime time.Time `json:"update_time,omitzero"`
	State      string    `json:"state"`
	Error      *Status   `json:"error,omitempty"`
}

// RunDetails lists the tasks of a run.
type RunDetails struct {
	TaskDetails []TaskDetail `json:"task_details"`
}

// TaskDetail is a task of a run: one for each task of a pipeline, for each iteration of a loop, and one for the root.
type TaskDetail struct {
	RunID          string                  `json:"run_id"`
	TaskID         string                  `json:"task_id"`
	DisplayName    string                  `json:"display_name"`
	CreateTime     time.Time               `json:"create_time,omitzero"`
	StartTime      time.Time               `json:"start_time,omitzero"`
	EndTime        time.Time               `json:"end_time,omitzero"`
	ExecutorDetail *ExecutorDetail         `json:"executor_detail,omitempty"`
	State          string                  `json:"state"`
	ExecutionID    string                  `json:"execution_id,omitempty"`
	Error          *Status                 `json:"error,omitempty"`
	Inputs         map[string]ArtifactList `json:"inputs,omitempty"`
	Outputs        map[string]ArtifactList `json:"outputs,omitempty"`
	ParentTaskID   string                  `json:"parent_task_id,omitempty"`
	StateHistory   []RuntimeStatus         `json:"state_history,omitempty"`
	PodName        string                  `json:"pod_name,omitempty"`
	ChildTasks     []ChildTask             `json:"child_tasks,omitempty"`

	// Name is the task's key in its dag, Type what it is: ROOT, RUNTIME, DAG, LOOP, LOOP_ITERATION, CONDITION, EXIT_HANDLER
	// or IMPORTER, as upstream's newer task API calls them (ours here).
	Name string `json:"name,omitempty"`
	Type string `json:"type,omitempty"`
	// Cached says that earlier outputs were reused (ours; upstream has it in its metadata store only).
	Cached bool `json:"cached,omitempty"`
	// Given and Gave are the values that the task was given and gave (ours).
	Given *Values `json:"input_values,omitempty"`
	Gave  *Values `json:"output_values,omitempty"`
}

// ExecutorDetail names the attempts at a task.
type ExecutorDetail struct {
	MainJob        string   `json:"main_job,omitempty"`
	FailedMainJobs []string `json:"failed_main_jobs,omitempty"`
}

// ArtifactList are artifacts by the identifiers of the metadata store, as texts.
type ArtifactList struct {
	ArtifactIDs []string `json:"artifact_ids"`
}

// ChildTask is a task inside another, or the pod of a task that has one.
type ChildTask struct {
	TaskID  string `json:"task_id,omitempty"`
	PodName string `json:"pod_name,omitempty"`
}

// Values are parameters and artifacts by name.
type Values struct {
	Parameters map[string]any             `json:"parameters,omitempty"`
	Artifacts  map[string][]ArtifactValue `json:"artifacts,omitempty"`
}

// ArtifactValue is an artifact's description.
type ArtifactValue struct {
	Name     string         `json:"name,omitempty"`
	URI      string         `json:"uri,omitempty"`
	Type     string         `json:"type,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

func values(parameters map[string]any, artifacts map[string][]program.Artifact) *Values {
	if len(parameters)+len(artifacts) == 0 {
		return nil
	}
	out := &Values{Parameters: parameters}
	for name, list := range artifacts {
		if out.Artifacts == nil {
			out.Artifacts = make(map[string][]ArtifactValue, len(artifacts))
		}
		described := make([]ArtifactValue, len(list))
		for i, a := range list {
			described[i] = ArtifactValue{Name: a.Name, URI: a.URI, Type: a.Type, Metadata: a.Metadata}
		}
		out.Artifacts[name] = described
	}
	return out
}
