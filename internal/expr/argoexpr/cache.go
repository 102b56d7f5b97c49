package argoexpr

import (
	"strings"
	"sync"
)

const (
	cacheEntries = 4096
	cacheBytes   = 8 << 20
)

// cache keeps compiled sources in two generations: when the young one is full it becomes the old one, and what was
// in the old one and never asked for again is forgotten. So its size is bounded and what is in use stays.
type cache[T any] struct {
	maxEntries, maxBytes int

	mu         sync.RWMutex
	young, old map[string]T
	bytes      int
}

func newCache[T any](entries, bytes int) *cache[T] {
	return &cache[T]{maxEntries: entries, maxBytes: bytes, young: map[string]T{}}
}

func (c *cache[T]) get(src string) (T, bool) {
	c.mu.RLock()
	v, ok := c.young[src]
	if ok {
		c.mu.RUnlock()
		return v, true
	}
	v, ok = c.old[src]
	c.mu.RUnlock()
	if ok {
		c.put(src, v, len(src))
	}
	return v, ok
}

func (c *cache[T]) put(src string, v T, size int) {
	// A source longer than a good part of the cache would only push everything else out.
	if size > c.maxBytes/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.young[src]; ok {
		return
	}
	if len(c.young) >= c.maxEntries/2 || c.bytes+size > c.maxBytes/2 {
		c.old, c.young, c.bytes = c.young, map[string]T{}, 0
	}
	// The key is cloned: src may be a piece of a whole manifest.
	c.young[strings.Clone(src)] = v
	c.bytes += size
}
