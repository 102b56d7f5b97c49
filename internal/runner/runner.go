package runner

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	randv2 "math/rand/v2"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Machine is what the loop needs of an [engine.Machine]. It belongs to one run.
type Machine interface {
	Step(*engine.State, engine.Event) ([]engine.Command, error)
	Outstanding(*engine.State) []engine.Command
	Load(data []byte) (*engine.State, error)
}

// Observer is told what changed. It is called in the loop of the run, after the change is in the journal, and must
// return quickly; what it wants to keep it must copy.
type Observer interface {
	Changed(View)
}

// View is a look at a run between two events.
type View struct {
	State *engine.State
	// Changed are the nodes that changed since the last view, 0 standing for the run; in the first view all.
	Changed []engine.NodeID
	// Waiting says that nothing is under way and only a person can make the run go on.
	Waiting bool
	// Stopping says that the loop was interrupted and waits for its tasks to stop.
	Stopping bool
}

// Snapshots keeps engine states, to bound what has to be replayed. A [Journal] that also is one is used as such.
type Snapshots interface {
	// SaveState keeps the state after the first n events of a run, in place of an earlier one.
	SaveState(ctx context.Context, runUID string, n int, state []byte) error
	// LoadState gives it back; n is 0 where there is none.
	LoadState(ctx context.Context, runUID string) (n int, state []byte, err error)
	// EventsFrom gives the events from a position on.
	EventsFrom(ctx context.Context, runUID string, from int) ([]engine.Event, error)
}

// Config is what a [Runner] connects. Hub, Backend and Journal are required.
type Config struct {
	Hub     *Hub
	Backend Backend
	Journal Journal
	// Hooks and Locks may be nil: then a run that asks for one ends in an error that says so.
	Hooks Hooks
	Locks Locks
	// Log is for what broke around a run; nil discards.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// SnapshotEvery is after how many events a snapshot is worth its cost; 0 is 5,000, negative never.
	SnapshotEvery int
}

// Runner runs any number of runs, each in a loop of its own.
type Runner struct{ Config }

// New gives a runner.
func New(c Config) *Runner {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = 5000
	}
	return &Runner{c}
}

// Job is a run to go on with. The journal holds at least its Start event.
type Job struct {
	UID       string
	Program   *program.Program
	Machine   Machine
	Observers []Observer
	// StopWhenWaiting ends the loop once only a person can make the run go on.
	StopWhenWaiting bool
}

// The errors that callers tell apart; they come wrapped.
var (
	// ErrActive: a loop of this runner already runs the run.
	ErrActive = errors.New("the run is already being run by this process")
	// ErrEnded: a question came after the run's end.
	ErrEnded = errors.New("the run has ended")
)

// Open brings a run's state back from the journal. The loop starts with [Active.Run]; questions may be put before.
// Close must be called where Run is not.
func (r *Runner) Open(ctx context.Context, job Job) (*Active, error) {
	state, n, err := Replay(ctx, r.Journal, job.Machine, job.UID)
	if err != nil {
		return nil, fmt.Errorf("resume run %s: %w", job.UID, err)
	}
	var key [32]byte
	if _, err := rand.Read(key[:]); err != nil {
		return nil, fmt.Errorf("resume run %s: %w", job.UID, err)
	}
	a := &Active{
		runner: r, job: job, box: newMailbox(), state: state, position: n, snapshot: n,
		open: map[any]bool{}, regain: newRegaining(), stop: make(chan bool, 2), log: r.Log.With("run", state.Run.Name),
		seeds: randv2.NewChaCha8(key),
	}
	if !r.Hub.add(job.UID, a.box) {
		return nil, fmt.Errorf("resume run %s: %w", job.UID, ErrActive)
	}
	return a, nil
}

// Replay gives a run's state as its journal has it, and the number of its events, for those who only want to look.
func Replay(ctx context.Context, journal Journal, m Machine, uid string) (*engine.State, int, error) {
	state, from := engine.NewState(), 0
	var events []engine.Event
	var err error
	if snaps, ok := journal.(Snapshots); ok {
		state, from = loadSnapshot(ctx, snaps, m, uid)
		events, err = snaps.EventsFrom(ctx, uid, from)
	} else {
		events, err = journal.Events(ctx, uid)
	}
	if err != nil {
		return nil, 0, err
	}
	if from+len(events) == 0 {
		return nil, 0, errors.New("its journal is empty")
	}
	for i, e := range events {
		if _, err := m.Step(state, e); err != nil {
			return nil, 0, fmt.Errorf("replay event %d: %w", from+i, err)
		}
	}
	return state, from + len(events), nil
}

// loadSnapshot falls back to the beginning: a snapshot that cannot be read (an older version wrote it, for one) is only
// a loss of time.
func loadSnapshot(ctx context.Context, snaps Snapshots, m Machine, uid string) (*engine.State, int) {
	n, data, err := snaps.LoadState(ctx, uid)
	if err != nil || n == 0 {
		return engine.NewState(), 0
	}
	state, err := m.Load(data)
	if err != nil {
		return engine.NewState(), 0
	}
	return state, n
}
