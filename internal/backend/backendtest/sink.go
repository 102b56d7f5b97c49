package backendtest

import (
	"sync"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
)

// sink keeps what backends tell, by node.
type sink struct {
	mu      sync.Mutex
	running map[engine.NodeID][]engine.Running
	ended   map[engine.NodeID][]engine.Result
	changed chan struct{}
}

func newSink() *sink {
	return &sink{
		running: map[engine.NodeID][]engine.Running{}, ended: map[engine.NodeID][]engine.Result{}, changed: make(chan struct{}),
	}
}

func (s *sink) Tell(runUID string, e engine.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runUID != run.UID {
		panic("event for run " + runUID)
	}
	if e.Running != nil {
		s.running[e.Running.Node] = append(s.running[e.Running.Node], *e.Running)
	}
	if e.Finished != nil {
		s.ended[e.Finished.Node] = append(s.ended[e.Finished.Node], e.Finished.Result)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits for something to be true of what was told.
func (s *sink) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		done, changed := ok(), s.changed
		s.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// result waits for a node's end number n, from 1.
func (s *sink) result(t *testing.T, node engine.NodeID, n int) engine.Result {
	t.Helper()
	s.until(t, "the end", func() bool { return len(s.ended[node]) >= n })
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := len(s.ended[node]); got > n {
		t.Fatalf("node %d ended %d times, want %d", node, got, n)
	}
	return s.ended[node][n-1]
}

// started waits for the task to run for the nth time, from 1.
func (s *sink) started(t *testing.T, n int) engine.Running {
	const node = 1 // the suite runs one task a world
	t.Helper()
	s.until(t, "the start", func() bool { return len(s.running[node]) >= n })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[node][n-1]
}

func (s *sink) count(node engine.NodeID) (running, ended int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running[node]), len(s.ended[node])
}
