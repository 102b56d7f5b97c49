package controller

import (
	"maps"
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
	for _, next := range s.next() {
		if next.key == key {
			s.give(next)
			return true
		}
	}
	return false // it is called when its turn comes
}

// occupy gives a place to a workflow that goes on already, however many do.
func (s *slots) occupy(key, namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.held[key]; !has {
		s.give(waiter{key: key, namespace: namespace})
	}
}

// release gives a place back, or stops waiting for one, and says who may be next: all that there are places for, in order.
func (s *slots) release(key string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, key)
	if namespace, had := s.held[key]; had {
		delete(s.held, key)
		if s.per[namespace]--; s.per[namespace] == 0 {
			delete(s.per, namespace)
		}
	}
	var keys []string
	for _, w := range s.next() {
		keys = append(keys, w.key)
	}
	return keys
}

// next gives those of the waiting that there are places for, in order. One that was called and has not come yet keeps its
// place among them.
func (s *slots) next() []waiter {
	if len(s.waiting) == 0 || s.all > 0 && len(s.held) >= s.all {
		return nil
	}
	var out []waiter
	per := maps.Clone(s.per)
	for _, w := range s.order() {
		if s.all > 0 && len(s.held)+len(out) >= s.all {
			break
		}
		if s.each > 0 && per[w.namespace] >= s.each {
			continue
		}
		per[w.namespace]++
		out = append(out, w)
	}
	return out
}

func (s *slots) give(w waiter) {
	delete(s.waiting, w.key)
	s.held[w.key] = w.namespace
	s.per[w.namespace]++
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
