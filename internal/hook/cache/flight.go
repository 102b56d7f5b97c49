package cache

import (
	"sync"
	"time"
)

// flight knows what work is under way in this process, so that the same work is not done twice at once and those who wait
// are woken. It is not kept: after a restart two tasks of one key may both run, which costs time and nothing else.
type flight struct {
	mu   sync.Mutex
	busy map[slot]*work
}

// slot is the identity of work.
type slot struct{ scope, key string }

// work is done by one task while others wait for it.
type work struct {
	uid   string // the review whose task does it
	task  string
	since time.Time
	// waiting are the reviews that wait, in the order in which they came.
	waiting []string
}

// lease is how long others wait for a task that never says that it has ended: its workflow may have been deleted.
const lease = 24 * time.Hour

// enter gives the work to the task of a review, or says by whom it is being done.
func (f *flight) enter(at slot, uid, task string, now time.Time) (by string, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, busy := f.busy[at]
	if !busy || w.uid == uid || now.Sub(w.since) > lease {
		var waiting []string
		if busy {
			waiting = w.waiting
		}
		f.busy[at] = &work{uid: uid, task: task, since: now, waiting: without(waiting, uid)}
		return "", false
	}
	w.waiting = append(without(w.waiting, uid), uid)
	return w.task, true
}

// leave ends the work of a review's task and gives those who wait for it.
func (f *flight) leave(at slot, uid string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, busy := f.busy[at]
	if !busy || w.uid != uid {
		return nil
	}
	delete(f.busy, at)
	return w.waiting
}

// forget ends whatever work a review's task does or waits for, and says which it did and who waits for it.
func (f *flight) forget(uid string) (at slot, held bool, waiting []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for at, w := range f.busy {
		if w.uid == uid {
			delete(f.busy, at)
			return at, true, w.waiting
		}
		w.waiting = without(w.waiting, uid)
	}
	return slot{}, false, nil
}

func without(list []string, uid string) []string {
	for i, other := range list {
		if other == uid {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}
