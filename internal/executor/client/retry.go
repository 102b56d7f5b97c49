package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// The waits between two tries, and what one that the other side asks for may be at most.
const (
	firstWait = 200 * time.Millisecond
	longWait  = 10 * time.Second
	askedWait = time.Minute
)

// staleTries is how often a token or a signature that is not taken is replaced by a new one: each may have run out just now.
const staleTries = 5

// errElsewhere says that a component has put an artifact's bytes where it wanted them, by itself.
var errElsewhere = errors.New("the component has stored it itself")

// passing is an error that another try may not meet.
type passing struct {
	error
	after time.Duration // what the other side asked for; 0 is nothing
}

func (e *passing) Unwrap() error { return e.error }

func transient(err error, after time.Duration) error { return &passing{err, after} }

// stale says that a token or a signature was not taken.
type stale struct{ error }

func (e *stale) Unwrap() error { return e.error }

// retry tries until it works, until an error stays, or until patience ends.
func (c *Client) retry(ctx context.Context, try func() error) error {
	var waited time.Duration
	refused := 0
	for next := firstWait; ; next = min(2*next, longWait) {
		err := try()
		if err == nil {
			return nil
		}
		var old *stale
		var soft *passing
		pause := next
		switch {
		case errors.As(err, &old):
			if refused++; refused >= staleTries {
				return err
			}
		case errors.As(err, &soft):
			pause = max(pause, min(soft.after, askedWait))
		default:
			return err
		}
		if waited >= c.cfg.Patience {
			return fmt.Errorf("%w (tried for %v)", err, waited.Round(time.Second))
		}
		// Many tasks may have met the same failure: they are not to come back all at once.
		pause = pause/2 + rand.N(pause/2+1)
		waited += pause
		if e := c.cfg.Wait(ctx, pause); e != nil {
			return fmt.Errorf("%w; the last try: %w", e, err)
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retryAfter reads the seconds of Retry-After; its other form, a date, counts as nothing.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, 3600)) * time.Second
}
