package hook

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// backoff is first * factor^n, at most limit.
type backoff struct {
	first  time.Duration
	factor float64
	limit  time.Duration
}

// after gives the wait after the n-th failure in a row (from 1), with a jitter of a fifth either way.
func (b backoff) after(n int, random *rand.Rand) time.Duration {
	wait := float64(b.first) * math.Pow(b.factor, float64(n-1))
	wait = min(wait, float64(b.limit))
	return time.Duration(wait * (0.8 + 0.4*random.Float64()))
}

// backoffOf reads a valid backoff; what it does not say is as in usual.
func backoffOf(b *v1alpha1.RetryBackoff, usual backoff) backoff {
	if d, err := parseDuration(b.Duration); err == nil {
		usual.first = d
	}
	if d, err := parseDuration(b.Cap); err == nil {
		usual.limit = d
	}
	if b.Factor >= 1 {
		usual.factor = b.Factor
	}
	usual.limit = max(usual.limit, usual.first)
	return usual
}

// parseDuration reads a duration above zero: Go's form or whole seconds.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		n, numberErr := strconv.ParseInt(text, 10, 32)
		if numberErr != nil {
			return 0, fmt.Errorf(`must be a duration such as "500ms", "30" (seconds) or "2m", not %q`, text)
		}
		d = time.Duration(n) * time.Second
	}
	if d <= 0 || d > 365*24*time.Hour {
		return 0, fmt.Errorf("must be above zero and at most a year, not %q", text)
	}
	return d, nil
}
