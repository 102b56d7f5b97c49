package hook

import (
	"math/rand/v2"
	"time"
)

// Breaker says when a hook that keeps failing is left alone for a while. The zero value has the defaults.
type Breaker struct {
	// Failures in a row that open the circuit; 5 by default.
	Failures int
	// First is how long it stays open the first time, 2s by default; it doubles each time, up to Longest, 1m by default.
	First, Longest time.Duration
}

func (b Breaker) withDefaults() Breaker {
	if b.Failures <= 0 {
		b.Failures = 5
	}
	if b.First <= 0 {
		b.First = 2 * time.Second
	}
	if b.Longest <= 0 {
		b.Longest = time.Minute
	}
	return b
}

// circuit is the state of one hook's breaker. While it is open no call is made, so waiting costs reviews time but none
// of their retries. When its time is over one call is let through (half open): its success closes the circuit, its
// failure opens it for longer.
type circuit struct {
	settings Breaker
	failures int       // in a row
	opened   int       // times in a row
	until    time.Time // open until; zero is closed
	probing  bool      // the one call of a half-open circuit is under way
}

// allows says whether a call may be made now, and if not, when to look again (zero: when the probe has ended).
func (c *circuit) allows(now time.Time) (bool, time.Time) {
	switch {
	case c.until.IsZero():
		return true, time.Time{}
	case now.Before(c.until):
		return false, c.until
	case c.probing:
		return false, time.Time{}
	}
	return true, time.Time{}
}

// open says whether calls are being held back.
func (c *circuit) open() bool { return !c.until.IsZero() }

// called notes that a call begins.
func (c *circuit) called() {
	if c.open() {
		c.probing = true
	}
}

// succeeded notes a good call.
func (c *circuit) succeeded() { *c = circuit{settings: c.settings} }

// failed notes a bad call, and says whether it opened the circuit.
func (c *circuit) failed(now time.Time, random *rand.Rand) bool {
	c.failures++
	wasOpen := c.open()
	if wasOpen && !c.probing {
		return false // a call that had begun before the circuit opened
	}
	c.probing = false
	if !wasOpen && c.failures < c.settings.Failures {
		return false
	}
	wait := backoff{first: c.settings.First, factor: 2, limit: c.settings.Longest}
	c.opened++
	c.until = now.Add(wait.after(c.opened, random))
	return true
}

// abandoned notes that a call ended without telling anything about the hook (it was cancelled).
func (c *circuit) abandoned() { c.probing = false }
