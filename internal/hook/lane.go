package hook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// lane carries the reviews of one hook. One goroutine decides what is to be done; calls run beside it.
type lane struct {
	d *Dispatcher
	// namespace is that of the run that the lane was made for; name is the hook's.
	namespace, name string
	kick            chan struct{} // something changed

	mu       sync.Mutex
	queue    fairQueue
	timers   timers
	inFlight int
	circle   circuit
	random   *rand.Rand
	// gather is until when a list is given time to fill; zero where none is begun.
	gather time.Time
	// told is true when those who wait behind an open circuit have been told so.
	told   bool
	reason string // why the last call failed
	// known are the digests of templates that the plugin has been sent, byDigest whether it asked for digests only.
	known    map[string]bool
	byDigest bool
}

// gatherTime is how long a list is given to fill, and maxCoalesce the most by which a poll comes early to join one.
const (
	gatherTime  = 5 * time.Millisecond
	maxCoalesce = 5 * time.Second
	// builtinConcurrency is the default for plugins in the same process: their calls are short.
	builtinConcurrency = 64
)

// run is the lane's goroutine.
func (l *lane) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := l.turn(time.Now())
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		timer.Reset(wait)
		select {
		case <-l.d.ctx.Done():
			return
		case <-l.kick:
		case <-timer.C:
		}
	}
}

func (l *lane) wakeUp() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// ending is a review that has come to its end, and what is told about it.
type ending struct {
	r      *review
	answer *engine.Answered // nil: nothing
}

// turn does what is due and gives the time of the next turn; zero for none.
func (l *lane) turn(now time.Time) time.Time {
	var (
		endings []ending
		notes   []*review
	)
	hook, registered := l.d.lookup(l)
	l.mu.Lock()
	endings = l.expire(now)
	if !registered {
		for r := l.queue.pop(); r != nil; r = l.queue.pop() {
			endings = append(endings, l.end(r, r.failure("it is not registered any more")))
		}
	}
	next := l.launch(hook, now)
	if l.circle.open() && !l.told && l.queue.size > 0 {
		l.told = true
		text := fmt.Sprintf("%s; it is not called until it recovers", l.reason)
		l.queue.each(func(r *review) {
			if r.note(text) {
				notes = append(notes, r)
			}
		})
	}
	if len(l.timers) > 0 && (next.IsZero() || l.timers[0].wake.Before(next)) {
		next = l.timers[0].wake
	}
	l.mu.Unlock()

	for _, e := range endings {
		l.d.settled(e.r, e.answer)
	}
	l.d.tellNotes(notes)
	return next
}

// expire moves reviews whose time has come: to the queue, or to their end where the deadline has passed.
func (l *lane) expire(now time.Time) []ending {
	var endings []ending
	for len(l.timers) > 0 && !l.timers[0].wake.After(now) {
		r := l.timers[0]
		l.timers.clear(r)
		if !r.deadline.After(now) {
			endings = append(endings, l.end(r, r.pastDeadline()))
			continue
		}
		l.enqueue(r)
	}
	return endings
}

// enqueue makes a review ready; its timer is its deadline.
func (l *lane) enqueue(r *review) {
	r.state = ready
	l.queue.push(r)
	l.timers.set(r, r.deadline)
}

// launch starts as many calls as may be under way. It gives the time at which to look again.
func (l *lane) launch(hook Hook, now time.Time) time.Time {
	limit, batch := policyOf(&hook.Spec).concurrency, max(1, int(hook.Spec.Batch))
	if hook.Spec.Builtin != nil && hook.Spec.MaxConcurrency == 0 {
		limit = builtinConcurrency
	}
	for l.queue.size > 0 && l.inFlight < limit {
		allowed, again := l.circle.allows(now)
		if !allowed {
			return again
		}
		if batch > 1 && l.queue.size < batch {
			if l.gather.IsZero() {
				l.gather = now.Add(gatherTime)
			}
			if now.Before(l.gather) {
				return l.gather
			}
		}
		l.gather = time.Time{}
		items := l.take(batch, now)
		if len(items) == 0 {
			break
		}
		l.begin(hook, items)
	}
	return time.Time{}
}

// take takes up to n reviews from the queue; a list that has room takes polls along that would be due soon.
func (l *lane) take(n int, now time.Time) []*review {
	var items []*review
	for len(items) < n {
		r := l.queue.pop()
		if r == nil {
			break
		}
		l.timers.clear(r)
		r.state = calling
		items = append(items, r)
	}
	for len(items) > 0 && len(items) < n && len(l.timers) > 0 {
		r := l.timers[0]
		if r.state != waiting || !r.pending || r.wake.After(now.Add(maxCoalesce/5)) || !r.deadline.After(now) {
			break
		}
		l.timers.clear(r)
		r.state = calling
		items = append(items, r)
	}
	return items
}

// begin starts a call for reviews that were taken.
func (l *lane) begin(hook Hook, items []*review) {
	l.inFlight++
	l.circle.called()
	ctx, cancel := context.WithCancelCause(l.d.ctx)
	timeout := items[0].policy.timeout
	deliveries := make([]delivery, len(items))
	for i, r := range items {
		r.calls++
		timeout = max(timeout, r.policy.timeout)
		deliveries[i] = delivery{
			request: l.d.question(r),
			number:  r.calls,
			digest:  !r.full && (l.byDigest || len(items) > 1 || hook.Spec.Batch > 1) && l.known[r.request.Task.TemplateDigest],
		}
	}
	if len(items) == 1 {
		items[0].cancel = func() { cancel(errCancelled) }
		timeout = min(timeout, max(time.Until(items[0].deadline), time.Millisecond))
	}
	l.d.work.Go(func() {
		defer cancel(nil)
		ctx, done := context.WithTimeoutCause(ctx, timeout, errTimeout{timeout})
		defer done()
		outcomes := l.d.call(ctx, hook, deliveries)
		l.finish(items, outcomes, errors.Is(context.Cause(ctx), errCancelled))
	})
}

var errCancelled = errors.New("nobody waits for it any more")

// errTimeout is the cause of a call's context that ran out of time.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string { return "no answer within " + e.after.String() }

// finish takes the outcomes of a call, one for each review.
func (l *lane) finish(items []*review, outcomes []outcome, cancelled bool) {
	if l.d.ctx.Err() != nil {
		return // closed: what the call came to is told by whoever asks again
	}
	var (
		endings []ending
		notes   []*review
		dropped []*review
		now     = time.Now()
		good    = 0
	)
	l.mu.Lock()
	l.inFlight--
	for i, r := range items {
		r.cancel = nil
		o := outcomes[i]
		if o.err == nil {
			good++
			l.learn(r, o.response)
		} else if !cancelled {
			l.reason = reasonOf(o.err)
		}
		if r.state != calling {
			if r.cancelled {
				dropped = append(dropped, r)
			}
			continue // cancelled, or answered by callback
		}
		e, note := l.takeOutcome(r, o, now)
		if e != nil {
			endings = append(endings, *e)
		}
		if note {
			notes = append(notes, r)
		}
	}
	switch {
	case cancelled:
		l.circle.abandoned()
	case good > 0:
		l.circle.succeeded()
		l.told = false
	case l.circle.failed(now, l.random):
		l.told = false
		l.d.cfg.Logger.Warn("hook is not called for a while", "hook", l.name, "reason", l.reason, "until", l.circle.until)
	}
	l.mu.Unlock()

	for _, e := range endings {
		l.d.settled(e.r, e.answer)
	}
	for _, r := range dropped {
		l.d.forget(r)
	}
	l.d.tellNotes(notes)
	l.wakeUp()
}

// takeOutcome takes one review's outcome: its end, or when it is asked next. note says that its message has changed.
func (l *lane) takeOutcome(r *review, o outcome, now time.Time) (end *ending, note bool) {
	if o.err == nil && o.response.Template == v1alpha1.TemplateSend {
		if !r.full {
			r.full = true
			l.enqueue(r)
			return nil, false
		}
		o = outcome{err: errors.New("asked for the template again although it was sent in full")}
	}
	if o.err != nil {
		return l.takeFailure(r, o.err, now)
	}
	r.failed, r.reason = 0, ""
	p := o.response.Pending
	if p == nil {
		e := l.end(r, r.answered(o.response))
		return &e, false
	}
	if r.cmd.Notify {
		e := l.end(r, nil)
		return &e, false
	}
	r.pending = true
	if r.again {
		r.again = false
		l.enqueue(r)
		return nil, false
	}
	r.state = waiting
	l.arm(r, now.Add(time.Duration(p.RetryAfterSeconds*float64(time.Second))))
	return nil, r.note(clip(o.response.Message, 300))
}

// takeFailure takes a failed call.
func (l *lane) takeFailure(r *review, err error, now time.Time) (*ending, bool) {
	r.failed++
	r.reason = reasonOf(err)
	r.pending = false
	if r.failed > r.policy.limit {
		e := l.end(r, r.failure("%s, attempt %d of %d", r.reason, r.failed, r.policy.limit+1))
		return &e, false
	}
	if !r.deadline.After(now) {
		e := l.end(r, r.pastDeadline())
		return &e, false
	}
	wait := r.policy.backoff.after(r.failed, l.random)
	if busy, ok := errors.AsType[*busyError](err); ok {
		wait = max(wait, busy.after)
	}
	r.state = waiting
	l.arm(r, now.Add(wait))
	return nil, r.note(fmt.Sprintf("%s, attempt %d", r.reason, r.failed))
}

// arm sets when a waiting review is looked at again: never after its deadline.
func (l *lane) arm(r *review, at time.Time) {
	if at.After(r.deadline) {
		at = r.deadline
	}
	l.timers.set(r, at)
}

// learn remembers what an answer says about templates.
func (l *lane) learn(r *review, response *v1alpha1.TaskReviewResponse) {
	digest := r.request.Task.TemplateDigest
	switch {
	case response.Template == v1alpha1.TemplateSend:
		delete(l.known, digest)
		return
	case response.Template == v1alpha1.TemplateByDigest:
		l.byDigest = true
	}
	if digest != "" {
		if len(l.known) >= maxPrograms {
			clear(l.known)
		}
		l.known[digest] = true
	}
}

// end marks a review as ended. The caller holds the lock and calls d.settled afterwards, without it.
func (l *lane) end(r *review, answer *engine.Answered) ending {
	r.state = ended
	r.gone.Store(true)
	l.timers.clear(r)
	return ending{r, answer}
}

// note sets the message that the task shows; it says whether that is news.
func (r *review) note(text string) bool {
	if r.noted == text || r.cmd.Notify {
		return false
	}
	r.noted = text
	return true
}
