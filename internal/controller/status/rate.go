package status

import "time"

// The bounds of how often an object is written.
const (
	// Pause is the least time between two writes of a run that goes on; the first and the last come at once.
	Pause = time.Second
	// slow is after how long compressed nodes are written although few changed.
	slow = 30 * time.Second
	// share bounds the part of the time that goes into looking at a run: a fiftieth.
	share = 50
)

// Rate decides when the next write is due. So that writes of all nodes cost each change only so much, however large the run
// is, compressed nodes wait until their number has doubled or a quarter of them has changed.
type Rate struct {
	last    time.Time     // of the last write; zero before the first
	cost    time.Duration // of the last one
	changed int           // nodes since
	nodes   int           // written last
	packed  bool
}

// Changed counts changes of nodes since the last write.
func (r *Rate) Changed(n int) { r.changed += n }

// Any says whether anything has changed since the last write.
func (r *Rate) Any() bool { return r.changed > 0 }

// Written takes note of a write: when it began, how long looking at the run took, and what was written.
func (r *Rate) Written(at time.Time, cost time.Duration, nodes int, packed bool) {
	*r = Rate{last: at, cost: cost, nodes: nodes, packed: packed}
}

// Due gives when the next write may happen, for a run of as many nodes as it has now.
func (r *Rate) Due(nodes int) time.Time {
	if r.last.IsZero() {
		return time.Time{}
	}
	pause := max(Pause, r.cost*share)
	if r.packed && r.changed*4 < r.nodes && nodes < 2*r.nodes {
		pause = max(pause, slow)
	}
	return r.last.Add(pause)
}
