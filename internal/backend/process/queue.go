package process

import (
	"context"
	"sync"
)

// queue lets a number of attempts run at once, in the order in which they came.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

func newQueue(size int) *queue { return &queue{free: size} }

// enter waits for a place.
func (q *queue) enter(ctx context.Context) error {
	q.mu.Lock()
	if q.free > 0 && len(q.waiting) == 0 {
		q.free--
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q.waiting = append(q.waiting, turn)
	q.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == turn {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return context.Cause(ctx)
		}
	}
	// The turn came at the same moment: hand it on.
	q.pass()
	return context.Cause(ctx)
}

// take takes a place without waiting, for what runs already; the number of free places may become negative.
func (q *queue) take() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free--
}

// leave gives a place back.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass()
}

// pass gives a place to the next; the lock is held.
func (q *queue) pass() {
	q.free++
	if q.free > 0 && len(q.waiting) > 0 {
		q.free--
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
	}
}
