package argo

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// ProjectOptions say what a projection shows besides the run's state.
type ProjectOptions struct {
	// Workflow is the object as it was submitted ([Bundle.Workflow]); without it the spec shows only the entrypoint.
	Workflow *Workflow
}

// Project gives a run as the Workflow object that Argo's controller would have written: metadata, spec, and a status with
// all nodes. The state must be one of the program's.
func Project(p *program.Program, s *engine.State, opts ProjectOptions) *Workflow {
	j := newProjector(p, s, opts)
	w := j.workflow()
	w.Status = j.status()
	return w
}

// projector turns one state's nodes into Argo's. What it learns of the program and of identities is kept between nodes.
type projector struct {
	p    *program.Program
	s    *engine.State
	opts ProjectOptions
	lang expr.Language

	// templates are the authors' templates by the compiled ones; wanted the calls of a graph whose results its text
	// refers to.
	templates map[*program.Template]*Template
	wanted    map[*program.Template]map[string]bool
	// members finds the nodes of a graph's calls by name.
	members map[engine.NodeID]map[string]engine.NodeID
	ids     map[string]string
	taken   map[string]string
}

func newProjector(p *program.Program, s *engine.State, opts ProjectOptions) *projector {
	return &projector{
		p: p, s: s, opts: opts, lang: argoexpr.New(),
		templates: map[*program.Template]*Template{}, wanted: map[*program.Template]map[string]bool{},
		members: map[engine.NodeID]map[string]engine.NodeID{}, ids: map[string]string{}, taken: map[string]string{},
	}
}

// workflow gives the object without its status.
func (j *projector) workflow() *Workflow {
	w := &Workflow{}
	if j.opts.Workflow != nil {
		*w = *j.opts.Workflow
		w.Status = nil
	} else if name := j.p.Entry.Template.Name; name != "" {
		w.Spec.Entrypoint = name
	}
	run := &j.s.Run
	w.Spec.Arguments.Parameters = withValues(w.Spec.Arguments.Parameters, texts(run.Parameters)) // a retry may have given some
	w.TypeMeta = metav1.TypeMeta{APIVersion: APIVersion, Kind: "Workflow"}
	w.Name, w.Namespace, w.UID = run.Name, run.Namespace, typedUID(run.UID)
	w.CreationTimestamp = metav1.NewTime(run.Created)
	w.Labels, w.Annotations = map[string]string{}, map[string]string{}
	maps.Copy(w.Labels, run.Labels)
	maps.Copy(w.Annotations, run.Annotations)
	if j.s.Phase != "" {
		w.Labels[labelPhase] = string(j.s.Phase)
	}
	if j.s.Phase.Ended() {
		w.Labels[labelCompleted] = "true"
	}
	if len(w.Annotations) == 0 {
		w.Annotations = nil
	}
	return w
}

// texts gives parameters as Argo has them.
func texts(values map[string]any) map[string]string {
	out := make(map[string]string, len(values))
	for name, v := range values {
		out[name] = string(*anyText(v))
	}
	return out
}

// Labels that Argo's tools select workflows by.
const (
	labelPhase           = "workflows.argoproj.io/phase"
	labelCompleted       = "workflows.argoproj.io/completed"
	labelTemplate        = "workflows.argoproj.io/workflow-template"
	labelClusterTemplate = "workflows.argoproj.io/cluster-workflow-template"
	labelCron            = "workflows.argoproj.io/cron-workflow"
)

func (j *projector) status() *WorkflowStatus {
	s := j.s
	out := &WorkflowStatus{
		Phase: string(s.Phase), Message: j.message(s.Message), StartedAt: timeOf(s.Started), FinishedAt: timeOf(s.Finished),
		Nodes: map[string]NodeStatus{},
	}
	if j.opts.Workflow != nil && j.opts.Workflow.Status != nil {
		out.StoredWorkflowTemplateSpec = j.opts.Workflow.Status.StoredWorkflowTemplateSpec
	}
	nodes := j.nodes()
	out.Progress = addProgress(nodes)
	resources := map[string]int64{}
	for _, n := range nodes {
		out.Nodes[n.ID] = *n
		if executable(n.Type) {
			for k, v := range n.ResourcesDuration {
				resources[k] += v
			}
		}
	}
	if len(resources) > 0 {
		out.ResourcesDuration = resources
	}
	out.Outputs = j.globalOutputs()
	if root, ok := out.Nodes[j.s.Run.Name]; ok && root.MemoizationStatus != nil && root.MemoizationStatus.Hit && s.Phase == engine.SucceededPhase {
		out.Message = ""
	}
	if s.Phase.Ended() {
		out.Conditions = []Condition{{Type: "PodRunning", Status: "False"}, {Type: "Completed", Status: "True"}}
	}
	return out
}

// nodes gives all nodes of the status in order of creation, with their children. Children are set in a second pass, as
// a hook of the workflow can be older than the node that it stands under.
func (j *projector) nodes() []*NodeStatus {
	var out []*NodeStatus
	var parents [][]string
	byID := map[string]*NodeStatus{}
	add := func(n *NodeStatus, of []string) {
		out, parents = append(out, n), append(parents, of)
		byID[n.ID] = n
	}
	for n := range j.s.Nodes() {
		if j.hidden(n) {
			continue
		}
		status := j.node(n)
		add(status, j.parents(n))
		for _, c := range j.containers(n, status) {
			add(c.status, c.parents)
		}
	}
	for i, n := range out {
		for _, id := range parents[i] {
			if parent := byID[id]; parent != nil {
				parent.Children = append(parent.Children, n.ID)
			}
		}
	}
	return out
}

// message puts a failed child's ID where the engine names its path, as Argo does.
func (j *projector) message(m string) string {
	rest, ok := strings.CutPrefix(m, "child '")
	if !ok {
		return m
	}
	path, ok := strings.CutSuffix(rest, "' failed")
	if !ok {
		return m
	}
	return "child '" + j.id(path) + "' failed"
}

func timeOf(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}
