package v1alpha1

// KindRunJournal is the kind of the objects that hold a run's state on a cluster.
const KindRunJournal = "RunJournal"

// RunJournal holds a part of what the controller must not lose of a run: its events, which are appended to, what was
// submitted, and a snapshot of the engine's state. It lies in the namespace of the Workflow that it belongs to, is owned by
// it, and so is deleted with it. Only the controller writes it; it is not meant to be edited.
type RunJournal struct {
	TypeMeta `json:",inline"`
	Metadata ObjectMeta     `json:"metadata"`
	Spec     RunJournalSpec `json:"spec"`
	// Data holds packed values by name. In a part Events a name is the position of the first event of a batch.
	Data map[string][]byte `json:"data,omitempty"`
}

// RunJournalSpec says what a RunJournal holds.
type RunJournalSpec struct {
	// Run is the run's UID.
	Run string `json:"run"`
	// Workflow is the name of the Workflow, for people.
	Workflow string `json:"workflow,omitempty"`
	// Part is what it holds: Events, State or Bytes.
	Part RunJournalPart `json:"part"`
	// From is the position of the first event of a part Events; the number of events before a part State.
	From int64 `json:"from"`
	// Closed says that nothing is appended to it any more: what comes next is in the object after it.
	Closed bool `json:"closed,omitempty"`
}

// RunJournalPart is what a RunJournal holds.
type RunJournalPart string

// The parts.
const (
	// JournalEvents are events from a position on; the first of a run also holds what was submitted.
	JournalEvents RunJournalPart = "Events"
	// JournalState is the latest snapshot of a run's state.
	JournalState RunJournalPart = "State"
	// JournalBytes is a piece of a value that is too large for one object.
	JournalBytes RunJournalPart = "Bytes"
)
