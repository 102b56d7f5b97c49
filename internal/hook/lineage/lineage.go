// Package lineage is the hook plugin that records what runs and what it makes: at Pre an execution that is running, at Post how
// it ended, with its input and output artifacts, before anything that depends on it starts. It is written against the
// interface that every plugin has, only linked in.
package lineage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// Recorder keeps executions. Both methods are idempotent: the same request may be recorded twice.
type Recorder interface {
	// Start records a running execution and gives its id.
	Start(ctx context.Context, e Execution) (int64, error)
	// Finish records how it ended, and its artifacts. An execution that was never started is made.
	Finish(ctx context.Context, e Execution) (int64, error)
}

// State is how far an execution is, in ML Metadata's words.
type State string

// The states.
const (
	Running  State = "RUNNING"
	Complete State = "COMPLETE"
	Failed   State = "FAILED"
	Cached   State = "CACHED"
	Canceled State = "CANCELED"
)

// Execution is what is recorded of an attempt.
type Execution struct {
	// Key is the attempt's identity: workflow UID, scope and path. ID is what Start gave, 0 where it is not known.
	Key   string
	ID    int64
	Scope v1alpha1.Scope
	State State

	Workflow v1alpha1.Workflow
	Task     v1alpha1.Task
	// Result is set once it has ended.
	Result *v1alpha1.Result
}

// Plugin records through a Recorder.
type Plugin struct{ recorder Recorder }

// New makes the plugin.
func New(r Recorder) *Plugin { return &Plugin{recorder: r} }

// FromSettings makes it for a hook; there are no settings.
func (p *Plugin) FromSettings(settings json.RawMessage) (taskhook.Plugin, error) {
	if text := strings.TrimSpace(string(settings)); text != "" && text != "{}" && text != "null" {
		return nil, errors.New("the lineage plugin has no settings")
	}
	return p, nil
}

// state is what Pre hands to Post.
type state struct {
	ExecutionID int64 `json:"executionId"`
}

// Pre records the execution as running. The task and those after it can read its id: {{hooks.<hook>.execution_id}}.
func (p *Plugin) Pre(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	id, err := p.recorder.Start(ctx, execution(r, Running))
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(state{ExecutionID: id})
	if err != nil {
		return nil, err
	}
	response := taskhook.Run(map[string]any{"execution_id": id})
	response.State = data
	return response, nil
}

// Post records how it ended.
func (p *Plugin) Post(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	e := execution(r, stateOf(r.Result))
	e.Result = r.Result
	if len(r.State) > 0 {
		var before state
		if err := json.Unmarshal(r.State, &before); err != nil {
			return nil, fmt.Errorf("the state of Pre cannot be read: %w", err)
		}
		e.ID = before.ExecutionID
	}
	if _, err := p.recorder.Finish(ctx, e); err != nil {
		return nil, err
	}
	return taskhook.Done(), nil
}

func execution(r *taskhook.Request, s State) Execution {
	return Execution{
		Key:      strings.Join([]string{r.Workflow.UID, string(r.Scope), r.Task.Path}, "/"),
		Scope:    r.Scope,
		State:    s,
		Workflow: r.Workflow,
		Task:     r.Task,
	}
}

func stateOf(r *v1alpha1.Result) State {
	switch {
	case r == nil:
		return Failed
	case r.Phase == "Succeeded" && r.Reused:
		return Cached
	case r.Phase == "Succeeded":
		return Complete
	case r.Phase == "Skipped", r.Phase == "Omitted":
		return Canceled
	}
	return Failed
}
