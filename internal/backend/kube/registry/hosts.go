package registry

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// maxAway bounds how long a registry that could not be reached is left alone.
const maxAway = 10 * time.Minute

// hosts remembers registries that cannot be reached from here: on many clusters the nodes use mirrors, and no task
// should wait for what will not answer.
type hosts struct {
	mu   sync.Mutex
	away map[string]away
}

type away struct {
	times int
	until time.Time
	err   error
}

// check gives an error while a registry is left alone.
func (h *hosts) check(host string, now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.away[host]; now.Before(a.until) {
		return fmt.Errorf("%s could not be reached and is not asked again before %s: %w", host, a.until.UTC().Format(time.TimeOnly), a.err)
	}
	return nil
}

// note takes in how asking a registry has ended: the more often it could not be reached, the longer it is left alone.
func (h *hosts) note(host string, now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !unreachable(err) {
		delete(h.away, host)
		return
	}
	if h.away == nil || len(h.away) >= maxEntries {
		h.away = map[string]away{}
	}
	a := h.away[host]
	a.times, a.err = a.times+1, err
	a.until = now.Add(min(failureLife<<min(a.times-1, 10), maxAway))
	h.away[host] = a
}

// unreachable says whether an error is of the way to a registry, not of what it said, nor of who has given up.
func unreachable(err error) bool {
	if errors.Is(err, context.Canceled) {
		return false
	}
	if _, said := errors.AsType[*transport.Error](err); said {
		return false
	}
	_, way := errors.AsType[*url.Error](err)
	return way
}
