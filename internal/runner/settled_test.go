package runner_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/runner"
)

// settling is a backend that keeps what attempts left until they are settled.
type settling struct {
	runner.Backend
	journal *journal
	run     *runner.Active

	mu      sync.Mutex
	settled map[string]int
	early   []string
}

func (s *settling) Settled(run engine.Run, path string) {
	s.journal.mu.Lock()
	written := false
	for _, e := range s.journal.events {
		if e.Finished != nil && s.run.State().Node(e.Finished.Node).Path == path {
			written = true
		}
	}
	s.journal.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settled[path]++
	if !written {
		s.early = append(s.early, path)
	}
}

// Whenever the runner dies, every attempt that has ended is settled, and none before its end is in the journal.
func TestAttemptsAreSettled(t *testing.T) {
	p := graph([][]int{nil, {0}, {0}, {1, 2}})
	for die := 1; ; die++ {
		for _, after := range []bool{false, true} {
			j, w := &journal{}, dummy.NewWorld(func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{} })
			j.fault = func(call int) (error, error) {
				switch {
				case call != die:
					return nil, nil
				case after:
					return nil, crash{}
				}
				return crash{}, nil
			}
			settled, died := map[string]int{}, false
			for range 2 {
				s := &settling{journal: j, settled: settled}
				r := newRig(t, p, j, w, func(c *runner.Config) { s.Backend = c.Backend; c.Backend = s })
				s.run = r.open()
				_, err := s.run.Run(t.Context())
				r.close()
				if len(s.early) > 0 {
					t.Fatalf("dies at append %d: settled before the journal had it: %v", die, s.early)
				}
				if err == nil {
					break
				}
				died = true
				if !errors.Is(err, crash{}) {
					t.Fatal(err)
				}
			}
			for _, path := range []string{"run.t0", "run.t1", "run.t2", "run.t3"} {
				if settled[path] == 0 {
					t.Errorf("dies at append %d (after it: %v): %s was never settled", die, after, path)
				}
			}
			if !died {
				if die < 2 {
					t.Fatal("it never died")
				}
				return
			}
		}
	}
}
