package program

// Graph is a set of calls with an order among them. Either each call says what it Depends on (a DAG, a pipeline
// component), or Stages lists them in rounds: a round starts when the one before it has succeeded (Argo's steps).
type Graph struct {
	Calls []Call `json:"calls"`
	// Stages holds indices into Calls; nil for a DAG.
	Stages [][]int `json:"stages,omitempty"`
	// FailFast takes back the calls that wait for a slot under Parallelism once a call has failed (Argo's failFast of a
	// template; a DAG's own failFast changes nothing that can be seen, since upstream, too, starts what is ready).
	FailFast bool `json:"failFast,omitempty"`
	// LastFailure says that the graph is as the last of its targets that failed (Argo's failFast: false of a DAG), not as
	// the first.
	LastFailure bool `json:"lastFailure,omitempty"`
	// Targets name the calls whose results decide the graph's; empty is all that nothing depends on. A call that
	// no target needs is not run.
	Targets string `json:"targets,omitempty"`
}

// Call runs a template with arguments. It becomes a node when it is entered, or one node for each item of its Loop.
type Call struct {
	// Name is unique in its graph.
	Name string `json:"name"`
	// Title is a name for people (KFP's task display name); empty is Name.
	Title string `json:"title,omitempty"`
	// Template says what to run, bound when the call is entered.
	Template TemplateRef `json:"template"`
	// Arguments give the template's inputs.
	Arguments Arguments `json:"arguments,omitzero"`
	// Needs are the indices of the calls in the same graph that must have ended before Depends is decided.
	Needs []int `json:"needs,omitempty"`
	// Depends decides, when all Needs have ended, whether the call runs or is omitted; nil is that each of Needs
	// succeeded, was skipped or is a daemon.
	Depends *Depends `json:"depends,omitempty"`
	// When must be true, else the call is skipped. With a Loop it is evaluated for each item.
	When *Condition `json:"when,omitempty"`
	// Loop runs the template once for each item.
	Loop *Loop `json:"loop,omitempty"`
	// ContinueOn lets the graph go on as if the call had succeeded.
	ContinueOn ContinueOn `json:"continueOn,omitzero"`
	// Lifecycle calls subscribe to this call's state (Argo's hooks and onExit); the call is done when they are.
	Lifecycle []Lifecycle `json:"lifecycle,omitempty"`
	// Retry overrides the template's (KFP puts it on the task).
	Retry *Retry `json:"retry,omitempty"`
	// Cache overrides the template's (KFP puts the switch on the task).
	Cache *Cache `json:"cache,omitempty"`
	// Decisive makes the call's result count for its graph although others depend on it: the tasks inside a KFP exit
	// handler fail the run, whatever the exit task does.
	Decisive bool `json:"decisive,omitempty"`
	// Source is the author's own text of the call as JSON, for hooks and projections.
	Source JSON `json:"source,omitempty"`
}

// TemplateRef names a template by scope and name; both may hold placeholders. Inline is a template of the call's own.
type TemplateRef struct {
	Scope  string    `json:"scope,omitempty"`
	Name   string    `json:"name,omitempty"`
	Inline *Template `json:"inline,omitempty"`
}

// ContinueOn says which bad results do not stop a graph.
type ContinueOn struct {
	Failed bool `json:"failed,omitempty"`
	Error  bool `json:"error,omitempty"`
}

// Lifecycle is a call that starts when its Expression first becomes true for the state of what it belongs to, or, with
// Exit, when that has ended.
type Lifecycle struct {
	Name       string `json:"name"`
	Expression string `json:"expression,omitempty"`
	Exit       bool   `json:"exit,omitempty"`
	Call       Call   `json:"call"`
}

// Condition is a source text in one of its language's forms.
type Condition struct {
	// Form is "when" (Argo's old comparison language, after substitution), "expression" (expr-lang without braces) or
	// "cel" (KFP's trigger policy: inputs.* in it are the call's own resolved inputs, not those of the graph around it).
	Form   string `json:"form"`
	Source string `json:"source"`
}

// Depends is a boolean tree over the results of a graph's calls.
type Depends struct {
	Op   DependsOp  `json:"op"`
	Args []*Depends `json:"args,omitempty"`
	// Call is an index into the graph's Calls; Result is what it is asked for. Only with Op Is.
	Call   int    `json:"call,omitempty"`
	Result Result `json:"result,omitempty"`
}

// DependsOp is an operator of a Depends tree.
type DependsOp string

// The operators of a Depends tree.
const (
	And DependsOp = "and"
	Or  DependsOp = "or"
	Not DependsOp = "not"
	Is  DependsOp = "is"
)

// Result is a word for how a call ended, as Argo's enhanced depends logic has them.
type Result string

// The result words. Ended is ours: any end at all (KFP's ALL_UPSTREAM_TASKS_COMPLETED).
const (
	Succeeded    Result = "Succeeded"
	Failed       Result = "Failed"
	Errored      Result = "Errored"
	Skipped      Result = "Skipped"
	Omitted      Result = "Omitted"
	Daemoned     Result = "Daemoned"
	AnySucceeded Result = "AnySucceeded"
	AllFailed    Result = "AllFailed"
	Ended        Result = "Ended"
)

// Loop says over what a call is repeated: exactly one of Items, Param and Sequence is set.
type Loop struct {
	// Items are literal items, JSON values whose strings may hold placeholders.
	Items []any `json:"items,omitempty"`
	// Param yields a JSON list, or a text that is one; with Artifacts a list of artifacts.
	Param     *Binding  `json:"param,omitempty"`
	Artifacts bool      `json:"artifacts,omitempty"`
	Sequence  *Sequence `json:"sequence,omitempty"`
	// Parallelism limits how many items run at once; 0 is no limit.
	Parallelism int64 `json:"parallelism,omitempty"`
	// EmptySucceeds makes a loop over nothing succeed (KFP); else it is skipped (Argo).
	EmptySucceeds bool `json:"emptySucceeds,omitempty"`
}

// Sequence counts: Count items from Start, or Start to End inclusive, either way up or down. All may hold placeholders.
type Sequence struct {
	Count  string `json:"count,omitempty"`
	Start  string `json:"start,omitempty"`
	End    string `json:"end,omitempty"`
	Format string `json:"format,omitempty"`
}
