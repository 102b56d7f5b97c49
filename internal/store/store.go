// Package store keeps runs: what was submitted, how far it is, and the journal of its events. [Store] is the interface;
// sqlite implements it for one machine. Every implementation passes the suite in storetest.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
)

// The errors that callers tell apart; they come wrapped.
var (
	// ErrNotFound: no run has this name or UID.
	ErrNotFound error = permanent("no such run")
	// ErrConflict: the journal already has an event at that position, or a gap would arise; someone else runs this run.
	ErrConflict error = permanent("the run's journal was changed by someone else")
	// ErrAmbiguous: a shortened UID fits several runs.
	ErrAmbiguous = errors.New("several runs match")
)

// permanent is an error that trying again does not help.
type permanent string

func (p permanent) Error() string { return string(p) }

// Permanent tells the runner not to try again.
func (permanent) Permanent() bool { return true }

// Run is what the store knows of a run apart from its events.
type Run struct {
	UID       string            `json:"uid"`
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Language  string            `json:"language"`
	Created   time.Time         `json:"created"`
	Labels    map[string]string `json:"labels,omitempty"`
	// File is what the user called the manifest.
	File string `json:"file,omitempty"`
	Status
	// Submission is only filled by Get, not by List.
	Submission Submission `json:"-"`
}

// Status is the part of a run that changes while it runs. It follows the journal and may lag behind it after a crash.
type Status struct {
	Phase    engine.Phase `json:"phase"`
	Message  string       `json:"message,omitempty"`
	Started  time.Time    `json:"started,omitzero"`
	Finished time.Time    `json:"finished,omitzero"`
	Summary  Summary      `json:"summary"`
}

// Summary counts a run's tasks.
type Summary struct {
	Tasks  int `json:"tasks"`
	Done   int `json:"done"`
	Failed int `json:"failed,omitempty"`
	Reused int `json:"reused,omitempty"`
	// Suspended says that the run waits for a person. Interrupted that its process ended before it did.
	Suspended   bool `json:"suspended,omitempty"`
	Interrupted bool `json:"interrupted,omitempty"`
}

// Submission is everything that is needed to load a run's program again, as it was given.
type Submission struct {
	// Documents are the manifests and the documents they refer to, the manifest itself first.
	Documents []Document `json:"documents"`
	// Hooks is the snapshot of the task hook documents.
	Hooks []Document `json:"hooks,omitempty"`
	// Args are the caller's options, in a form that only the caller knows.
	Args json.RawMessage `json:"args,omitempty"`
}

// Document is a file's name and bytes as given.
type Document struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Filter narrows a list. The zero value lists everything, newest first.
type Filter struct {
	// Phases, Language, Namespace and NamePrefix keep only runs that have them.
	Phases     []engine.Phase
	Language   string
	Namespace  string
	NamePrefix string
	// Labels must all hold.
	Labels []LabelTerm
	// Since and Until bound the time of creation: at or after Since, before Until.
	Since, Until time.Time
	// Limit is the size of a page; 0 is no limit. After is the cursor that the page before returned.
	Limit int
	After string
}

// LabelTerm is one condition on a label: that it equals Value, does not, or, with Exists, is there at all.
type LabelTerm struct {
	Key    string
	Value  string
	Not    bool
	Exists bool
}

// Store keeps runs. It is safe for concurrent use, also by several processes at once. Every method is one transaction.
type Store interface {
	// Create adds a run together with its first events. The UID must be new.
	Create(ctx context.Context, run Run, events ...engine.Event) error
	// Get gives a run by its UID, with its submission.
	Get(ctx context.Context, uid string) (Run, error)
	// Find gives the UID for a name (the newest run that has it), a UID, a UID's beginning of at least 4 characters, or
	// "@latest".
	Find(ctx context.Context, ref string) (string, error)
	// List gives a page of runs, newest first, and the cursor of the next page, empty at the end.
	List(ctx context.Context, f Filter) ([]Run, string, error)
	// SetStatus replaces a run's status.
	SetStatus(ctx context.Context, uid string, s Status) error
	// Delete removes a run with its events. To delete what is not there is ErrNotFound.
	Delete(ctx context.Context, uid string) error

	// Append adds events at position from, which must be the number of events already there, else ErrConflict.
	Append(ctx context.Context, uid string, from int, events []engine.Event) error
	// Events gives all events of a run in order; none for a run that is not there.
	Events(ctx context.Context, uid string) ([]engine.Event, error)
	// EventsFrom gives the events from a position on.
	EventsFrom(ctx context.Context, uid string, from int) ([]engine.Event, error)
	// SaveState keeps an engine state as it was after the first n events, in place of an earlier one. LoadState gives it
	// back, with n 0 where there is none.
	SaveState(ctx context.Context, uid string, n int, state []byte) error
	LoadState(ctx context.Context, uid string) (n int, state []byte, err error)

	Close() error
}
