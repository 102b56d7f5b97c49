package hook

import (
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// add takes a new review.
func (l *lane) add(r *review) {
	l.mu.Lock()
	l.enqueue(r)
	l.mu.Unlock()
	l.wakeUp()
}

// cancel ends a review without telling anything.
func (l *lane) cancel(r *review) {
	l.mu.Lock()
	if r.state == ended {
		l.mu.Unlock()
		return
	}
	e := l.end(r, nil)
	r.cancelled = true
	stop := r.cancel
	l.mu.Unlock()
	if stop != nil {
		stop() // its outcome comes to finish, which forgets it
	} else {
		l.d.forget(r)
	}
	l.d.settled(e.r, nil)
}

// hurry makes a review that waits because the plugin said so ready now.
func (l *lane) hurry(r *review) {
	l.mu.Lock()
	switch {
	case r.state == waiting && r.pending:
		l.timers.clear(r)
		l.enqueue(r)
	case r.state == calling:
		r.again = true // the answer may have been on its way when the plugin changed its mind
	}
	l.mu.Unlock()
	l.wakeUp()
}

// deliver takes an answer that came by callback. It is false where the review has ended already.
func (l *lane) deliver(r *review, response *v1alpha1.TaskReviewResponse) bool {
	l.mu.Lock()
	if r.state == ended {
		l.mu.Unlock()
		return false
	}
	e := l.end(r, r.answered(response))
	stop := r.cancel
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
	l.d.settled(e.r, e.answer)
	l.wakeUp()
	return true
}

// lookup finds the lane's hook as it is registered now.
func (d *Dispatcher) lookup(l *lane) (Hook, bool) {
	return d.cfg.Registry.Lookup(l.namespace, l.name)
}

// tellNotes tells the sink what reviews wait for.
func (d *Dispatcher) tellNotes(reviews []*review) {
	for _, r := range reviews {
		if r.over() {
			continue
		}
		r.lane.mu.Lock()
		text := r.noted
		r.lane.mu.Unlock()
		message := "waiting for hook " + r.cmd.Hook
		if text != "" {
			message += ": " + text
		}
		d.cfg.Sink.Tell(r.run.UID, engine.Event{Time: time.Now(), Noted: &engine.Noted{Node: r.cmd.Node, Message: message}})
	}
}
