package controller

import (
	"sort"
	"sync"
	"time"
)

// slots limits how many workflows go on at once, in all and in each namespace. Free places go to waiting workflows by
// priority, then by age.
type slots struct {
	all, each int // 0: no limit

	mu      sync.Mutex
	held    map[string]string // namespaces by keys
	per     map[string]int
	waiting map[string]waiter
}

type waiter struct {
	key, namespace string
	priority       int64
	created        time.Time
}

func newSlots(all, each int) *slots {
	return &slots{all: all, each: each, held: map[string]string{}, per: map[string]int{}, waiting: map[string]waiter{}}
}

// take gives a workflow a place, or puts it in the queue. One that has a place keeps it.
func (s *slots) take(key string, w workflow) bool {
	if s.all == 0 && s.each == 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.held[key]; has {
		return true
	}
	s.waiting[key] = waiter{key, w.GetNamespace(), w.priority(), w.GetCreationTimestamp().Time}
	for _, next := range s.order() {
		if !s.free(next.namespace) {
			continue
		}
		if next.key != key {
			return false // it is called when its turn comes
		}
		s.give(next)
		return true
	}
	return false
}

// occupy gives a place to a workflow that goes on already, however many do.
func (s *slots) occupy(key, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.held[key]; !has {
		s.give(waiter{key: key, namespace: namespace})
	}
}

// release gives a place back and says who may be next: all that could take it, in order.
func (s *slots) release(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
	namespace, had := s.held[key]
	if !had {
		return nil
	}
	delete(s.held, key)
	s.per[namespace]--
	var next []string
	for _, w := range s.order() {
		if s.free(w.namespace) {
			next = append(next, w.key)
			break
		}
	}
	return next
}

func (s *slots) give(w waiter) {
	delete(s.waiting, w.key)
	s.held[w.key] = w.namespace
	s.per[w.namespace]++
}

func (s *slots) free(namespace string) bool {
	return (s.all == 0 || len(s.held) < s.all) && (s.each == 0 || s.per[namespace] < s.each)
}

func (s *slots) order() []waiter {
	out := make([]waiter, 0, len(s.waiting))
	for _, w := range s.waiting {
		out = append(out, w)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := out[i], out[j]
		switch {
		case a.priority != b.priority:
			return a.priority > b.priority
		case !a.created.Equal(b.created):
			return a.created.Before(b.created)
		}
		return a.key < b.key
	})
	return out
}
