// Package kfpcheck checks what sluice made of a compiled pipeline against what the pipeline's own logic demands.
package kfpcheck

import (
	"encoding/json"
	"fmt"
)

// Run is the part of a v2beta1 Run that the checks look at.
type Run struct {
	RunID string `json:"run_id"`
	State string `json:"state"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
	Details struct {
		Tasks []Task `json:"task_details"`
	} `json:"run_details"`
	// Outputs are the pipeline's own outputs.
	Outputs Values `json:"outputs"`

	attempts []string // the component of each attempt, where a Workflow shows them
}

// Values are parameters by name.
type Values struct {
	Parameters map[string]any `json:"parameters"`
}

// Task is a task's detail.
type Task struct {
	ID          string `json:"task_id"`
	DisplayName string `json:"display_name"`
	// Name is the task's key in its DAG, Type what it is: ROOT, LOOP, LOOP_ITERATION and others.
	Name     string `json:"name"`
	Type     string `json:"type"`
	Given    Values `json:"input_values"`
	State    string `json:"state"`
	ParentID string `json:"parent_task_id"`
	Error    *struct {
		Message string `json:"message"`
	} `json:"error"`
	Children []struct {
		TaskID  string `json:"task_id"`
		PodName string `json:"pod_name"`
	} `json:"child_tasks"`
	StartTime string `json:"start_time"`
	EndTime   string `json:"end_time"`
}

// key is the name of the task in its DAG.
func (t Task) key() string {
	if t.Name != "" {
		return t.Name
	}
	return t.DisplayName
}

// ReadRun reads a Run in JSON.
func ReadRun(text []byte) (*Run, error) {
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("the output is no Run in JSON: %w", err)
	}
	if r.RunID == "" || r.State == "" {
		return nil, fmt.Errorf("the output has no run_id or no state: %.200s", text)
	}
	return &r, nil
}

// ExitCode is what sluice run must exit with for a final state.
func ExitCode(state string) int {
	if state == "SUCCEEDED" {
		return 0
	}
	return 1
}
