package engine

import (
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// site says which call of the program a node is an invocation of, so that a loaded state can be bound to it again.
type site struct {
	From  origin `json:"from"`
	Index int    `json:"index,omitempty"`
	// Template is the key of the template that the call was bound to; empty for an inline one or none.
	Template string `json:"template,omitempty"`
}

// origin is where a node's call stands.
type origin string

const (
	fromEntry     origin = "entry"     // Program.Entry
	fromExit      origin = "exit"      // Program.OnExit
	fromRun       origin = "run"       // Program.Lifecycle[Index]
	fromCall      origin = "call"      // Calls[Index] of the graph that the parent is, or is a round of
	fromParent    origin = "parent"    // the parent's call: items and attempts
	fromLifecycle origin = "lifecycle" // Lifecycle[Index] of the parent's call
	fromRound     origin = "round"     // none: a round of the parent's graph
)

// work is what the engine must remember of a node until it is done.
type work struct {
	// Calls of a graph: how many needs of each are open, and the node that stands for each (0: none yet).
	Needs []int32  `json:"needs,omitempty"`
	Nodes []NodeID `json:"nodes,omitempty"`
	// Branch is the phase that each call hands down to those that are omitted or skipped behind it.
	Branch []Phase `json:"branch,omitempty"`
	// Open counts children (or calls of a graph) that are not done. Active counts those that hold a slot.
	Open   int `json:"open,omitempty"`
	Active int `json:"active,omitempty"`
	// Queue holds children that wait for a slot, in order.
	Queue []NodeID `json:"queue,omitempty"`
	// Lost are the children that failFast took back before they began, for a run that is tried again.
	Lost []NodeID `json:"lost,omitempty"`
	// Failed, Errored and Succeeded count ended children.
	Failed    int `json:"failed,omitempty"`
	Errored   int `json:"errored,omitempty"`
	Succeeded int `json:"succeeded,omitempty"`
	// Culprit is the first child that failed and counts.
	Culprit NodeID `json:"culprit,omitempty"`
	// Unbegun is the first child that could not even be begun: it makes a round an Error.
	Unbegun NodeID `json:"unbegun,omitempty"`
	// Daemons run until the graph ends. Of the run itself, Open counts those that are ready and have not ended.
	Daemons []NodeID `json:"daemons,omitempty"`

	// Slotted is set while the node holds a slot of its parent, Placed while a leaf holds one of the run's.
	Slotted bool `json:"slotted,omitempty"`
	Placed  bool `json:"placed,omitempty"`
	// Locked is set from asking for locks to their release.
	Locked bool `json:"locked,omitempty"`

	// Hook is the place in the order of hooks; Review the index in Node.Hooks of the one that is asked now.
	Hook   int  `json:"hook,omitempty"`
	Review int  `json:"review,omitempty"`
	Asking bool `json:"asking,omitempty"`
	// Again says that another attempt follows this one, after Wait; Why, if none does. Undecided says that the policy could
	// not be evaluated, which is an Error.
	Again     bool          `json:"again,omitempty"`
	Wait      time.Duration `json:"wait,omitempty"`
	Why       string        `json:"why,omitempty"`
	Undecided bool          `json:"undecided,omitempty"`
	// Broken says that the attempt could not even be started: another could not either. Granted that a Post hook's wish
	// for another attempt was granted.
	Broken  bool `json:"broken,omitempty"`
	Granted bool `json:"granted,omitempty"`
	// Reviews counts retries that Post hooks asked for.
	Reviews int `json:"reviews,omitempty"`

	// Result is how the node's own work ended, kept while Post hooks and lifecycle calls go on.
	Result *Result `json:"result,omitempty"`
	// Ended is when that was.
	Ended time.Time `json:"ended,omitzero"`
	// Calls counts lifecycle calls that are not done; Fired has a bit for each that was started.
	Calls int    `json:"calls,omitempty"`
	Fired uint64 `json:"fired,omitempty"`

	// At and Seed are those of the event that started the task: its body is resolved with them, again if need be.
	At   time.Time `json:"at,omitzero"`
	Seed uint64    `json:"seed,omitempty"`
	// Deadline is when the node must have ended; Timer when the timer of its suspension or backoff fires.
	Deadline time.Time `json:"deadline,omitzero"`
	Timer    time.Time `json:"timer,omitzero"`
	// Stopping says why the node is being ended; Forced that nothing more is waited for.
	Stopping string `json:"stopping,omitempty"`
	Forced   bool   `json:"forced,omitempty"`
	Expired  bool   `json:"expired,omitempty"`
	// Notices are the reviews, as indexes in Node.Hooks, that were put without being waited for. Nothing says whether they
	// were heard, so after a crash they are put again.
	Notices []int `json:"notices,omitempty"`

	// Reopened is set while a group that runs again waits for its slot and locks; of the run itself, for its locks.
	// Restart are, of the run itself, the nodes that a person wants to run again.
	Reopened bool     `json:"reopened,omitempty"`
	Restart  []NodeID `json:"restart,omitempty"`
	// Before counts the attempts of earlier tries of the run: the retry policy's limits begin anew.
	Before int `json:"before,omitempty"`
	// Locks are the resolved locks.
	Locks []program.Lock `json:"locks,omitempty"`
}
