package runner

import "github.com/sluice-ml/sluice/internal/engine"

// settled tells the backend which attempts have ended for good: their results are in the journal, or nobody waits for them.
func (a *Active) settled(items []item) {
	s, ok := a.runner.Backend.(Settler)
	if !ok {
		return
	}
	for _, it := range items {
		if f := it.event.Finished; f != nil {
			if n := a.state.Node(f.Node); n != nil {
				s.Settled(a.state.Run, identity(n))
			}
		}
	}
}

// settleEnded tells the backend, when a run is taken up, which attempts have ended: a crash may have come before it was told.
func (a *Active) settleEnded() {
	s, ok := a.runner.Backend.(Settler)
	if !ok {
		return
	}
	for n := range a.state.Nodes() {
		if n.Kind != engine.Leaf {
			continue
		}
		switch n.Stage {
		case engine.StagePost, engine.StageCalls, engine.StageDone: // its task is over
			s.Settled(a.state.Run, identity(n))
		}
	}
}
