package hook

import (
	"container/heap"
	"time"
)

// fairQueue holds reviews that are ready to be put. It is first in, first out within a workflow, and goes round the
// workflows, so that a fan-out of thousands does not hold up another workflow's one task.
type fairQueue struct {
	byRun map[string][]*review
	ring  []string // runs that have reviews, the next one first
	size  int
}

func (q *fairQueue) push(r *review) {
	if q.byRun == nil {
		q.byRun = map[string][]*review{}
	}
	list, there := q.byRun[r.run.UID]
	if !there {
		q.ring = append(q.ring, r.run.UID)
	}
	q.byRun[r.run.UID] = append(list, r)
	q.size++
}

// pop takes the next review; nil where there is none. Reviews that were settled meanwhile are dropped on the way.
func (q *fairQueue) pop() *review {
	for len(q.ring) > 0 {
		uid := q.ring[0]
		q.ring = q.ring[1:]
		list := q.byRun[uid]
		r := list[0]
		list[0] = nil
		if list = list[1:]; len(list) == 0 {
			delete(q.byRun, uid)
		} else {
			q.byRun[uid] = list
			q.ring = append(q.ring, uid)
		}
		q.size--
		if r.state == ready {
			return r
		}
	}
	return nil
}

// each calls f for every review that is ready.
func (q *fairQueue) each(f func(*review)) {
	for _, list := range q.byRun {
		for _, r := range list {
			if r.state == ready {
				f(r)
			}
		}
	}
}

// timers is a heap of reviews by the time at which something is to be done about them: their next call, or the end of
// their deadline.
type timers []*review

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake.Before(t[j].wake) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

// Push and Pop are for container/heap.
func (t *timers) Push(x any) {
	if r, ok := x.(*review); ok {
		r.place = len(*t)
		*t = append(*t, r)
	}
}

// Pop takes the last one.
func (t *timers) Pop() any {
	old := *t
	r := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	r.place = -1
	return r
}

// set arms a review's timer, or moves it.
func (t *timers) set(r *review, wake time.Time) {
	r.wake = wake
	if r.place >= 0 {
		heap.Fix(t, r.place)
		return
	}
	heap.Push(t, r)
}

// clear takes a review's timer away.
func (t *timers) clear(r *review) {
	if r.place >= 0 {
		heap.Remove(t, r.place)
	}
}
