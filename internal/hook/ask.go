package hook

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// progress says where a review is.
type progress int

const (
	ready   progress = iota // in the queue
	waiting                 // for its time: after a failed call, or pending
	calling                 // its call is under way
	ended                   // answered, failed for good or cancelled
)

// review is one question to one hook, until it has ended. Its lane's lock guards everything that changes.
type review struct {
	uid    string
	run    engine.Run
	prog   *program.Program
	cmd    engine.AskHook
	policy policy
	lane   *lane
	// deadline ends the wait. One call is made even where it has passed: what was down meanwhile may have been us.
	deadline time.Time

	state   progress
	gone    atomic.Bool // state is ended, readable without the lock
	calls   int         // made so far
	failed  int         // calls failed in a row
	reason  string      // why the last of them did
	pending bool        // it waits because the plugin said so
	again   bool        // woken while its call was under way
	full    bool        // the plugin lacks the template
	// cancelled is set where it ended because nobody waits for it any more.
	cancelled bool
	noted     string // the message that was told last
	wake      time.Time
	place     int // in the lane's timers, -1 for none
	counted   bool
	cancel    func() // ends the call that is under way
	request   *v1alpha1.TaskReviewRequest
}

// over says whether the review has ended.
func (r *review) over() bool { return r.gone.Load() }

func (d *Dispatcher) newReview(run engine.Run, p *program.Program, cmd engine.AskHook) *review {
	r := &review{uid: cmd.UID, run: run, prog: p, cmd: cmd, place: -1, policy: d.policyFor(run, cmd.Hook)}
	r.deadline = cmd.Asked.Add(r.policy.deadline)
	if now := time.Now(); cmd.Asked.IsZero() {
		r.deadline = now.Add(r.policy.deadline)
	} else if r.deadline.Before(now) {
		r.deadline = now.Add(r.policy.timeout)
	}
	if cmd.Notify {
		r.policy.limit = 0
	}
	return r
}

// policyFor gives the settings that a run took with it, or, for runs that have none, those of now.
func (d *Dispatcher) policyFor(run engine.Run, name string) policy {
	for i := range run.Hooks {
		h := &run.Hooks[i]
		if h.Name != name || len(h.Settings) == 0 {
			continue
		}
		var spec v1alpha1.TaskHookSpec
		if json.Unmarshal(h.Settings, &spec) == nil {
			return policyOf(&spec)
		}
	}
	if h, ok := d.cfg.Registry.Lookup(run.Namespace, name); ok {
		return policyOf(&h.Spec)
	}
	return policyOf(&v1alpha1.TaskHookSpec{})
}

// question is the review's request, made when it is first needed.
func (d *Dispatcher) question(r *review) *v1alpha1.TaskReviewRequest {
	if r.request != nil {
		return r.request
	}
	q := newRequest(r.run, r.prog, r.cmd)
	deadline := r.deadline
	q.Deadline = &deadline
	if d.callbacks != nil && !r.cmd.Notify {
		q.Callback = d.callbacks.offer(r.uid)
	}
	if d.cfg.Redact != nil {
		redact(q, d.cfg.Redact(r.run))
	}
	r.request = q
	return q
}

// answered is the event for a decision.
func (r *review) answered(response *v1alpha1.TaskReviewResponse) *engine.Answered {
	return &engine.Answered{Node: r.cmd.Node, Point: r.cmd.Point, Hook: r.cmd.Hook, Answer: engineAnswer(response)}
}

// failure is the event for a review that failed for good.
func (r *review) failure(format string, args ...any) *engine.Answered {
	return &engine.Answered{Node: r.cmd.Node, Point: r.cmd.Point, Hook: r.cmd.Hook, Failure: fmt.Sprintf(format, args...)}
}

// pastDeadline is the event for a review whose deadline has passed.
func (r *review) pastDeadline() *engine.Answered {
	text := "no answer within its deadline of " + r.policy.deadline.String()
	switch {
	case r.reason != "":
		return r.failure("%s; the last call failed: %s, attempt %d", text, r.reason, r.failed)
	case r.pending:
		return r.failure("%s; it is still pending", text)
	}
	return r.failure("%s", text)
}
