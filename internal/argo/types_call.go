package argo

// ParallelSteps are the steps of one round: they run side by side.
type ParallelSteps []WorkflowStep

// Invocation is what a step and a DAG task have in common.
type Invocation struct {
	Name         string         `json:"name,omitempty"`
	Template     string         `json:"template,omitempty"`
	Inline       *Template      `json:"inline,omitempty"`
	TemplateRef  *TemplateRef   `json:"templateRef,omitempty"`
	Arguments    Arguments      `json:"arguments,omitzero"`
	WithItems    []Item         `json:"withItems,omitempty"`
	WithParam    string         `json:"withParam,omitempty"`
	WithSequence *Sequence      `json:"withSequence,omitempty"`
	When         string         `json:"when,omitempty"`
	ContinueOn   *ContinueOn    `json:"continueOn,omitempty"`
	OnExit       string         `json:"onExit,omitempty"`
	Hooks        LifecycleHooks `json:"hooks,omitempty"`
}

// WorkflowStep is a call of a template in a steps template.
type WorkflowStep struct {
	Invocation `json:",inline"`
}

// DAGTask is a call of a template in a DAG.
type DAGTask struct {
	Invocation   `json:",inline"`
	Dependencies []string `json:"dependencies,omitempty"`
	Depends      string   `json:"depends,omitempty"`
}

// DAGTemplate is calls with dependencies.
type DAGTemplate struct {
	Target   string    `json:"target,omitempty"`
	Tasks    []DAGTask `json:"tasks"`
	FailFast *bool     `json:"failFast,omitempty"`
}

// TemplateRef names a template of a WorkflowTemplate or ClusterWorkflowTemplate.
type TemplateRef struct {
	Name         string `json:"name,omitempty"`
	Template     string `json:"template,omitempty"`
	ClusterScope bool   `json:"clusterScope,omitempty"`
}

// LifecycleHooks by name; the one called exit runs when what it belongs to has ended.
type LifecycleHooks map[string]LifecycleHook

// LifecycleHook is a call that starts when its expression becomes true.
type LifecycleHook struct {
	Template    string       `json:"template,omitempty"`
	TemplateRef *TemplateRef `json:"templateRef,omitempty"`
	Arguments   Arguments    `json:"arguments,omitzero"`
	Expression  string       `json:"expression,omitempty"`
}

// ContinueOn says which bad results do not stop what comes after.
type ContinueOn struct {
	Error  bool `json:"error,omitempty"`
	Failed bool `json:"failed,omitempty"`
}

// Sequence counts.
type Sequence struct {
	Count  *IntOrString `json:"count,omitempty"`
	Start  *IntOrString `json:"start,omitempty"`
	End    *IntOrString `json:"end,omitempty"`
	Format string       `json:"format,omitempty"`
}

// exitHook is the name of the lifecycle hook that needs no expression.
const exitHook = "exit"
