package kfp

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/kfpexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// ProjectOptions are what a projection adds to what the engine knows.
type ProjectOptions struct {
	// Spec is the pipeline, to be shown as the run's pipeline_spec; nil leaves it out.
	Spec *Pipeline
	// ExperimentID, ServiceAccount and StorageState (AVAILABLE or ARCHIVED) are facts of whoever keeps the run.
	ExperimentID, ServiceAccount, StorageState string
	// ArtifactID gives the metadata store's identifier of an artifact, 0 for none; nil is that there is no such store.
	ArtifactID func(program.Artifact) int64
}

// The states of runs and tasks.
const (
	statePending   = "PENDING"
	stateRunning   = "RUNNING"
	stateSucceeded = "SUCCEEDED"
	stateSkipped   = "SKIPPED"
	stateFailed    = "FAILED"
	stateCanceling = "CANCELING"
	stateCanceled  = "CANCELED"
	statePaused    = "PAUSED"
)

// Codes of google.rpc.Code that errors carry: what the pipeline's own code does has no code of its own.
const (
	codeCanceled = 1
	codeUnknown  = 2
)

// Project gives a run in KFP's form. It reads the state only.
func Project(p *program.Program, s *engine.State, o ProjectOptions) *Run {
	r := &Run{
		ExperimentID: o.ExperimentID, StorageState: o.StorageState, ServiceAccount: o.ServiceAccount,
		RunID: s.Run.UID, DisplayName: s.Run.Title,
		RuntimeConfig: RuntimeConfig{Parameters: s.Run.Parameters, PipelineRoot: s.Run.ArtifactRoot},
		CreatedAt:     s.Run.Created, ScheduledAt: s.Run.Scheduled, FinishedAt: s.Finished,
		State: runState(s),
	}
	if r.DisplayName == "" {
		r.DisplayName = s.Run.Name
	}
	if r.StorageState == "" {
		r.StorageState = "AVAILABLE"
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = s.Started
	}
	if o.Spec != nil {
		r.PipelineSpec = o.Spec.raw
		r.Description = o.Spec.Spec.PipelineInfo.Description
	}
	if s.Message != "" && (r.State == stateFailed || r.State == stateCanceled) {
		r.Error = failure(r.State, s.Message)
	}
	r.StateHistory = append(r.StateHistory, RuntimeStatus{UpdateTime: r.CreatedAt, State: statePending})
	if !s.Started.IsZero() {
		r.StateHistory = append(r.StateHistory, RuntimeStatus{UpdateTime: s.Started, State: stateRunning})
	}
	if !s.Finished.IsZero() {
		r.StateHistory = append(r.StateHistory, RuntimeStatus{UpdateTime: s.Finished, State: r.State, Error: r.Error})
	}
	if root := s.Node(s.Root); root != nil {
		r.Outputs = values(root.Outputs.Parameters, root.Outputs.Artifacts)
	}
	pr := projector{program: p, state: s, options: o}
	r.RunDetails.TaskDetails = pr.tasks()
	return r
}

// runState gives the state of a run.
func runState(s *engine.State) string {
	switch {
	case s.Shutdown != "" && !s.Phase.Ended():
		return stateCanceling
	case s.Shutdown != "" && s.Phase.Bad():
		return stateCanceled
	case s.Suspended && !s.Phase.Ended():
		return statePaused
	case s.Phase == "":
		return statePending
	}
	return taskState(s.Phase)
}

// taskState gives the state for a phase. What never ran because of a condition or of what was before it is SKIPPED.
func taskState(p engine.Phase) string {
	switch p {
	case engine.RunningPhase:
		return stateRunning
	case engine.SucceededPhase:
		return stateSucceeded
	case engine.FailedPhase, engine.ErrorPhase:
		return stateFailed
	case engine.SkippedPhase, engine.OmittedPhase:
		return stateSkipped
	}
	return statePending
}

func failure(state, message string) *Status {
	if state == stateCanceled {
		return &Status{Code: codeCanceled, Message: message}
	}
	return &Status{Code: codeUnknown, Message: message}
}

// projector makes the details of tasks.
type projector struct {
	program *program.Program
	state   *engine.State
	options ProjectOptions
}

func (pr *projector) tasks() []TaskDetail {
	details := []TaskDetail{}
	at := map[engine.NodeID]int{}
	for n := range pr.state.Nodes() {
		parent := pr.state.Node(n.Parent)
		if parent != nil && parent.Kind == engine.RetryNode || n.Kind == engine.Round {
			continue // an attempt is no task of its own
		}
		d := pr.task(n)
		if i, ok := at[n.Parent]; ok {
			d.ParentTaskID = details[i].TaskID
			details[i].ChildTasks = append(details[i].ChildTasks, ChildTask{TaskID: d.TaskID})
		}
		at[n.ID] = len(details)
		details = append(details, d)
	}
	return details
}

// task gives the detail of a node, which may stand for several attempts.
func (pr *projector) task(n *engine.Node) TaskDetail {
	d := TaskDetail{
		RunID: pr.state.Run.UID, TaskID: TaskID(pr.state.Run.UID, n.Path), DisplayName: displayName(n), State: taskState(n.Phase),
		StartTime: n.Started, EndTime: n.Finished, CreateTime: n.Started, ExecutionID: strconv.Itoa(int(n.ID)),
		Type: pr.kind(n), Cached: n.Reused,
	}
	if c := n.Call(); c != nil {
		d.Name = c.Name
	}
	last := n
	if n.Kind == engine.RetryNode {
		last = pr.attempts(n, &d)
	}
	if last.Kind == engine.Leaf && last.Template() != nil && !last.Reused {
		d.PodName = program.PodName(pr.state.Run.Name, last.Template().Name, identity(last))
		d.ChildTasks = append(d.ChildTasks, ChildTask{PodName: d.PodName})
		if d.ExecutorDetail == nil {
			d.ExecutorDetail = &ExecutorDetail{MainJob: TaskID(pr.state.Run.UID, last.Path)}
		}
	}
	d.Cached = d.Cached || last.Reused
	inputs := n.Inputs
	if len(inputs.Parameters)+len(inputs.Artifacts) == 0 {
		inputs = last.Inputs
	}
	d.Given = values(visible(inputs.Parameters), inputs.Artifacts)
	d.Gave = values(n.Outputs.Parameters, n.Outputs.Artifacts)
	d.Inputs, d.Outputs = pr.lists(inputs.Artifacts), pr.lists(n.Outputs.Artifacts)
	if d.State == stateFailed {
		d.Error = failure(d.State, n.Message)
	}
	d.StateHistory = history(n, d)
	return d
}

// attempts fills in the attempts of a task that may be tried again, and gives the last.
func (pr *projector) attempts(n *engine.Node, d *TaskDetail) *engine.Node {
	last := n
	d.ExecutorDetail = &ExecutorDetail{}
	for _, id := range n.Children {
		c := pr.state.Node(id)
		if c == nil || c.Dropped || c.Hooked {
			continue
		}
		last = c
		job := TaskID(pr.state.Run.UID, c.Path)
		d.ExecutorDetail.MainJob = job
		if c.Phase.Bad() {
			d.ExecutorDetail.FailedMainJobs = append(d.ExecutorDetail.FailedMainJobs, job)
		}
	}
	return last
}

func history(n *engine.Node, d TaskDetail) []RuntimeStatus {
	var out []RuntimeStatus
	if !n.Started.IsZero() && d.State != stateSkipped {
		out = append(out, RuntimeStatus{UpdateTime: n.Started, State: stateRunning})
	}
	if n.Phase.Ended() {
		out = append(out, RuntimeStatus{UpdateTime: n.Finished, State: d.State, Error: d.Error})
	}
	return out
}

// displayName is the task's name for people; an iteration's shows its item.
func displayName(n *engine.Node) string {
	c := n.Call()
	if c == nil {
		return n.Name
	}
	title := c.Title
	if title == "" {
		title = c.Name
	}
	if rest, ok := strings.CutPrefix(n.Name, c.Name); ok && c.Name != "" && rest != "" {
		return title + rest
	}
	if title == "" {
		return n.Name
	}
	return title
}

// kind says what a task is.
func (pr *projector) kind(n *engine.Node) string {
	parent := pr.state.Node(n.Parent)
	t := n.Template()
	switch {
	case n.ID == pr.state.Root:
		return "ROOT"
	case n.Kind == engine.LoopNode:
		return "LOOP"
	case parent != nil && parent.Kind == engine.LoopNode:
		return "LOOP_ITERATION"
	case t != nil && t.Task != nil && t.Task.Kind == program.Importer:
		return "IMPORTER"
	case t != nil && t.Task != nil:
		return "RUNTIME"
	case n.Call() != nil && strings.HasPrefix(n.Call().Name, "exit-handler-"):
		return "EXIT_HANDLER"
	case n.Call() != nil && strings.HasPrefix(n.Call().Name, "condition-branches-"):
		return "CONDITION_BRANCH"
	case n.Call() != nil && n.Call().When != nil:
		return "CONDITION"
	}
	return "DAG"
}

// visible leaves out the inputs that the front end added for itself.
func visible(m map[string]any) map[string]any {
	hiddenToo := false
	for name := range m {
		hiddenToo = hiddenToo || strings.HasPrefix(name, kfpexpr.HiddenInput)
	}
	if !hiddenToo {
		return m
	}
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(name string, _ any) bool { return strings.HasPrefix(name, kfpexpr.HiddenInput) })
	return out
}

func (pr *projector) lists(artifacts map[string][]program.Artifact) map[string]ArtifactList {
	if pr.options.ArtifactID == nil || len(artifacts) == 0 {
		return nil
	}
	out := make(map[string]ArtifactList, len(artifacts))
	for name, list := range artifacts {
		ids := []string{}
		for _, a := range list {
			if id := pr.options.ArtifactID(a); id != 0 {
				ids = append(ids, strconv.FormatInt(id, 10))
			}
		}
		out[name] = ArtifactList{ArtifactIDs: ids}
	}
	return out
}

func identity(n *engine.Node) string {
	if n.Identity != "" {
		return n.Identity
	}
	return n.Path
}

// TaskID is the identifier of a node in KFP's form: a UUID derived from the run and the node's path.
func TaskID(uid, path string) string {
	sum := sha256.Sum256([]byte(uid + "\x00" + path))
	sum[6] = sum[6]&0x0f | 0x80
	sum[8] = sum[8]&0x3f | 0x80
	h := hex.EncodeToString(sum[:16])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}
