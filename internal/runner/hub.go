package runner

import (
	"sync"

	"github.com/sluice-ml/sluice/internal/engine"
)

// Hub is the [Sink] that backends, hooks and locks are given: it carries each event to the loop of its run. It exists
// before the [Runner], which needs them. Events for a run that no loop is running are dropped: whoever resumes the run
// asks again for what is outstanding.
type Hub struct {
	mu    sync.RWMutex
	boxes map[string]*mailbox
}

// NewHub gives a hub without runs.
func NewHub() *Hub { return &Hub{boxes: map[string]*mailbox{}} }

// Tell implements [Sink].
func (h *Hub) Tell(runUID string, e engine.Event) {
	h.mu.RLock()
	box := h.boxes[runUID]
	h.mu.RUnlock()
	if box != nil {
		_ = box.put(item{event: e})
	}
}

func (h *Hub) add(uid string, box *mailbox) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.boxes[uid] != nil {
		return false
	}
	h.boxes[uid] = box
	return true
}

func (h *Hub) remove(uid string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.boxes, uid)
}

// item is one thing in a mailbox: an event, or a question that is answered between two events.
type item struct {
	event engine.Event
	ask   func(*engine.State) ([]engine.Event, error)
	reply chan error
}

// mailbox is a queue without bound: whoever tells something must not wait for the loop.
type mailbox struct {
	mu     sync.Mutex
	items  []item
	ready  chan struct{}
	closed bool
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put adds an item; it is false where nobody will look at it any more.
func (b *mailbox) put(i item) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.items = append(b.items, i)
	select {
	case b.ready <- struct{}{}:
	default:
	}
	return true
}

// close gives what nobody has looked at.
func (b *mailbox) close() []item {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	left := b.items
	b.items = nil
	return left
}

// take gives at most limit items that are there, in order, and whether more are left.
func (b *mailbox) take(limit int) (_ []item, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(limit, len(b.items))
	out := b.items[:n:n]
	b.items = b.items[n:]
	if len(b.items) == 0 {
		b.items = nil
	}
	return out, len(b.items) > 0
}
