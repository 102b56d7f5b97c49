// Package engine is a pure state machine: (program, state, event) → (state, commands). There is no clock, no
// randomness, no input or output and no goroutine in it. Time and a random seed come in with events.
//
// The cost of an event grows with what it changes, never with the size of the workflow: a graph counts the unfinished
// needs of each of its calls, groups count their unfinished children, and nothing walks over all nodes.
package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// NodeID identifies a node in a run's state. The run itself is 0; nodes count from 1 in the order of their creation.
type NodeID int32

// Phase is how far a node or a run is.
type Phase string

// The phases. A node that waits for locks, a free slot or a Pre hook is Pending; one that waits for Post is Running.
const (
	Pending        Phase = "Pending"
	RunningPhase   Phase = "Running"
	SucceededPhase Phase = "Succeeded"
	FailedPhase    Phase = "Failed"
	ErrorPhase     Phase = "Error"
	SkippedPhase   Phase = "Skipped"
	OmittedPhase   Phase = "Omitted"
)

// Ended says whether nothing more will happen to something in this phase.
func (p Phase) Ended() bool {
	switch p {
	case SucceededPhase, FailedPhase, ErrorPhase, SkippedPhase, OmittedPhase:
		return true
	}
	return false
}

// Bad says whether it ended as a failure.
func (p Phase) Bad() bool { return p == FailedPhase || p == ErrorPhase }

// NodeKind says what a node is.
type NodeKind string

// The kinds of nodes.
const (
	// Leaf is one attempt at a task.
	Leaf NodeKind = "Leaf"
	// GraphNode is a graph of calls; Round is one stage of a graph with stages.
	GraphNode NodeKind = "Graph"
	Round     NodeKind = "Round"
	// LoopNode has a child for each item. RetryNode has a child for each attempt.
	LoopNode  NodeKind = "Loop"
	RetryNode NodeKind = "Retry"
	// Absent is a call that was skipped or omitted, or failed before it became anything else.
	AbsentNode NodeKind = "Absent"
)

// Stage is where in its life a node is; a node goes through them in this order and skips what it has no need of.
type Stage string

// The stages.
const (
	StageLocks   Stage = "locks"   // waits for its locks
	StageSlot    Stage = "slot"    // waits for a free place under a parallelism limit
	StagePre     Stage = "pre"     // waits for a Pre hook's answer
	StageRun     Stage = "run"     // its task, graph, items or attempts run
	StagePost    Stage = "post"    // waits for a Post hook's answer
	StageCalls   Stage = "calls"   // waits for its lifecycle calls
	StageBackoff Stage = "backoff" // a RetryNode between attempts
	StageDone    Stage = "done"
)

// Node is an invocation of a call, or a group of them.
type Node struct {
	ID     NodeID   `json:"id"`
	Parent NodeID   `json:"parent,omitempty"`
	Kind   NodeKind `json:"kind"`
	// Path is the node's name in full, as Argo builds node names: "run", "run.task", "run[0].step", "…(0:item)" for
	// items, "…(0)" for attempts, "….hooks.h", "….onExit".
	Path string `json:"path"`
	// Name is the last part, for people ("step", "step(0:item)", "[0]", "step.onExit").
	Name string `json:"name"`

	// Attempt is a leaf's or graph's number under a RetryNode. Index is the item's place in a loop, or the round's.
	Attempt int `json:"attempt,omitempty"`
	Index   int `json:"index,omitempty"`
	// Item is the loop item that the node and what is inside it sees.
	Item *any `json:"item,omitempty"`
	// Hooked marks lifecycle calls and exit handlers; Exit the exit handlers among them.
	Hooked bool `json:"hooked,omitempty"`
	Exit   bool `json:"exit,omitempty"`

	Phase    Phase     `json:"phase"`
	Stage    Stage     `json:"stage,omitempty"`
	Message  string    `json:"message,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`

	Inputs   Inputs  `json:"inputs,omitzero"`
	Outputs  Outputs `json:"outputs,omitzero"`
	ExitCode *int    `json:"exitCode,omitempty"`
	Reused   bool    `json:"reused,omitempty"`
	// CacheHit is set where a cache was asked: nil is that none was.
	CacheHit *bool `json:"cacheHit,omitempty"`
	// Daemoned is set while a ready daemon runs on.
	Daemoned  bool             `json:"daemoned,omitempty"`
	Host      string           `json:"host,omitempty"`
	IP        string           `json:"ip,omitempty"`
	Progress  string           `json:"progress,omitempty"`
	Resources map[string]int64 `json:"resources,omitempty"`
	// Containers are the results of the containers of a leaf that has several.
	Containers []ContainerResult `json:"containers,omitempty"`
	// Hooks are the calls of task hooks so far, in order.
	Hooks []HookCall `json:"hooks,omitempty"`
	// Children are the direct children in order of creation.
	Children []NodeID `json:"children,omitempty"`

	// Dropped marks nodes that a retry of the run replaced.
	Dropped bool `json:"dropped,omitempty"`
	// Identity is the path under which backends and hooks know the attempt, where that is not Path: it became the first
	// of several because a Post hook asked for another, or the run was tried again and the path had been used before.
	Identity string `json:"identity,omitempty"`

	// call and template are bound again after a load, by site.
	call     *program.Call
	template *program.Template
	site     site
	work     *work
	changed  bool
}

// HookCall is one point of one hook for one node.
type HookCall struct {
	Hook  string `json:"hook"`
	Point Point  `json:"point"`
	// Scope is Task, Graph or Workflow.
	Scope string    `json:"scope"`
	Asked time.Time `json:"asked"`
	// Answered is zero while it waits.
	Answered time.Time `json:"answered,omitzero"`
	Answer   Answer    `json:"answer,omitzero"`
	// Failure says why there is no answer; Ignored that the hook's policy let the node go on without it.
	Failure string `json:"failure,omitempty"`
	Ignored bool   `json:"ignored,omitempty"`
}

// ignored says which hooks the node went on without, and why; empty where there are none.
func (n *Node) ignored() string {
	var parts []string
	for i := range n.Hooks {
		if hc := &n.Hooks[i]; hc.Ignored {
			parts = append(parts, fmt.Sprintf("hook %s was ignored: %s", hc.Hook, hc.Failure))
		}
	}
	return strings.Join(parts, "; ")
}

// Call is the program's call that the node is an invocation of.
func (n *Node) Call() *program.Call { return n.call }

// Template is the template that the node runs; nil before it is known.
func (n *Node) Template() *program.Template { return n.template }
