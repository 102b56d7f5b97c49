package runner

import (
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/engine"
)

// timers fires at the times that the engine asked for.
type timers struct {
	now  func() time.Time
	fire func(engine.Timer)

	mu      sync.Mutex
	pending map[engine.Timer]*time.Timer
}

func newTimers(now func() time.Time, fire func(engine.Timer)) *timers {
	return &timers{now: now, fire: fire, pending: map[engine.Timer]*time.Timer{}}
}

// set replaces a timer of the same identity.
func (t *timers) set(id engine.Timer, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.pending[id]; old != nil {
		old.Stop()
	}
	var timer *time.Timer
	timer = time.AfterFunc(max(at.Sub(t.now()), 0), func() {
		t.mu.Lock()
		mine := t.pending[id] == timer
		if mine {
			delete(t.pending, id)
		}
		t.mu.Unlock()
		if mine { // else it was replaced or cancelled while it fired
			t.fire(id)
		}
	})
	t.pending[id] = timer
}

func (t *timers) cancel(id engine.Timer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.pending[id]; old != nil {
		old.Stop()
		delete(t.pending, id)
	}
}

func (t *timers) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range t.pending {
		timer.Stop()
	}
	clear(t.pending)
}
