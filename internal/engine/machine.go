package engine

import (
	"fmt"
	"iter"
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// Matcher decides whether all conditions of a hook hold for the facts ("task", "workflow") about a node.
type Matcher func(conditions []string, facts map[string]any) (bool, error)

// Machine steps the states of runs of one program. It keeps caches, so each goroutine needs its own.
type Machine struct {
	// Pods makes StartTask commands carry pod-level JSON with its placeholders resolved; without it they carry none.
	Pods bool

	program *program.Program
	lang    expr.Language
	match   Matcher
	graphs  map[shapeKey]*shape
	paths   map[string][]string
}

// New gives a machine for a program. match may be nil where no hook has conditions.
func New(p *program.Program, lang expr.Language, match Matcher) (*Machine, error) {
	if p == nil || lang == nil {
		return nil, fmt.Errorf("engine: a program and its language are needed")
	}
	if match == nil {
		match = func(conditions []string, _ map[string]any) (bool, error) {
			return false, fmt.Errorf("nothing evaluates hook conditions here")
		}
	}
	return &Machine{
		program: p, lang: lang, match: match,
		graphs: map[shapeKey]*shape{}, paths: map[string][]string{},
	}, nil
}

// State is all that is known of a run. Only [Machine.Step] changes it.
type State struct {
	Run               Run
	Phase             Phase
	Message           string
	Started, Finished time.Time
	// Parameters are the workflow's effective parameters, Artifacts its argument artifacts.
	Parameters map[string]any
	Artifacts  map[string][]program.Artifact
	// Outputs are the global ones (globalName).
	Outputs Outputs
	// Root is the entry call's node and ExitRoot the exit handler's; 0 until there is one.
	Root, ExitRoot NodeID
	// Suspended is set while new tasks are held back.
	Suspended bool
	// Shutdown is "", "Stop" or "Terminate".
	Shutdown string
	// Generation counts how often the run was started again after it had failed.
	Generation int

	nodes   []*Node // by ID; nodes[0] stands for the run and is no node
	changed []NodeID
	own     *work // of the run itself: slots, locks, lifecycle calls
	failed  []NodeID
}

// NewState gives the state before the Start event.
func NewState() *State { return &State{nodes: []*Node{nil}, own: &work{}} }

// Node gives a node, nil if there is none.
func (s *State) Node(id NodeID) *Node {
	if id <= 0 || int(id) >= len(s.nodes) {
		return nil
	}
	return s.nodes[id]
}

// Len is the number of nodes.
func (s *State) Len() int { return len(s.nodes) - 1 }

// Nodes gives all nodes in the order of their creation; those that a retry of the run replaced are left out.
func (s *State) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for _, n := range s.nodes[1:] {
			if !n.Dropped && !yield(n) {
				return
			}
		}
	}
}

// TakeChanged gives the nodes that changed since the last call, in the order of their first change. 0 is the run.
func (s *State) TakeChanged() []NodeID {
	ids := s.changed
	s.changed = nil
	for _, id := range ids {
		if n := s.Node(id); n != nil {
			n.changed = false
		}
	}
	return ids
}

// Child gives the node that stands for a call of a graph; nil before the call was decided.
func (s *State) Child(graph *Node, call int) *Node {
	if graph == nil || graph.work == nil || call < 0 || call >= len(graph.work.Nodes) {
		return nil
	}
	return s.Node(graph.work.Nodes[call])
}

func (s *State) touch(n *Node) {
	if !n.changed {
		n.changed = true
		s.changed = append(s.changed, n.ID)
	}
}

func (s *State) touchRun() {
	if len(s.changed) == 0 || s.changed[len(s.changed)-1] != 0 {
		s.changed = append(s.changed, 0)
	}
}

// Step applies an event to the state and gives the commands that follow from it. An error says that the event makes no
// sense for the state, which is then unchanged; late and repeated answers are no error and change nothing.
func (m *Machine) Step(s *State, e Event) ([]Command, error) {
	x := &step{m: m, s: s, now: e.Time.UTC(), seed: e.Seed}
	if err := x.apply(e); err != nil {
		return nil, err
	}
	x.drain()
	return x.commands, nil
}

// step is the handling of one event.
type step struct {
	m        *Machine
	s        *State
	now      time.Time
	seed     uint64
	draws    uint64
	commands []Command
	// What is left to do for the event: nodes that are done and whose parents are still to be told, and limits under
	// which a place is free, each in order.
	ended     []*Node
	freed     []freed
	placeFree bool
	retries   *retrier // made when first needed
}

func (x *step) emit(c Command) { x.commands = append(x.commands, c) }

// drain tells parents of ended children, and starts what waited for a place, until nothing more follows. A loop instead of recursion, since a chain of ten
// thousand skipped calls would be as many frames.
func (x *step) drain() {
	for {
		switch {
		case len(x.ended) > 0:
			n := x.ended[0]
			x.ended = x.ended[1:]
			x.childDone(n)
		case len(x.freed) > 0:
			f := x.freed[0]
			x.freed = x.freed[1:]
			x.fillSlots(f)
		case x.placeFree:
			x.placeFree = false
			x.fillPlaces()
		default:
			return
		}
	}
}

func (x *step) apply(e Event) error {
	if e.Start != nil {
		if x.s.Phase != "" {
			return fmt.Errorf("engine: the run has started already")
		}
		x.start(e.Start.Run)
		return nil
	}
	if x.s.Phase == "" {
		return fmt.Errorf("engine: the run has not started")
	}
	switch {
	case e.Running != nil:
		x.running(*e.Running)
	case e.Finished != nil:
		if !e.Finished.Result.Phase.Ended() {
			return fmt.Errorf("engine: %q is no phase to end in", e.Finished.Result.Phase)
		}
		x.taskFinished(*e.Finished)
	case e.Answered != nil:
		x.answered(*e.Answered)
	case e.Noted != nil:
		x.noted(*e.Noted)
	case e.Fired != nil:
		x.fired(e.Fired.Timer)
	case e.Acquired != nil:
		x.acquired(*e.Acquired)
	case e.Resume != nil:
		return x.resume(*e.Resume)
	case e.Suspend != nil:
		x.s.Suspended = true
		x.s.touchRun()
	case e.Shutdown != nil:
		x.shutdown(*e.Shutdown)
	case e.RetryRun != nil:
		return x.retryRun(*e.RetryRun)
	case e.Abandoned != nil:
		x.abandon(e.Abandoned.Message)
	default:
		return fmt.Errorf("engine: an event without content")
	}
	return nil
}

// live gives a node that an event is about, nil if it is gone or done.
func (x *step) live(id NodeID) *Node {
	n := x.s.Node(id)
	if n == nil || n.Stage == StageDone || n.work == nil {
		return nil
	}
	return n
}

// draw gives a seed of its own to each evaluation.
func (x *step) draw() uint64 {
	x.draws++
	return mix(x.seed, x.draws)
}

// mix is the finaliser of splitmix64: near inputs give far outputs.
func mix(a, b uint64) uint64 {
	z := a + b*0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
