package engine

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// policy is the retry policy of a RetryNode; nil where only Post hooks ask for attempts.
func (x *step) policy(n *Node) *program.Retry {
	switch {
	case n.call != nil && n.call.Retry != nil:
		return n.call.Retry
	case n.template != nil && n.template.Retry != nil:
		return n.template.Retry
	case n.site.From == fromEntry:
		return x.m.program.Retry
	}
	return nil
}

// nextAttempt starts another attempt under a RetryNode.
func (x *step) nextAttempt(n *Node) {
	n.Stage, n.Phase = StageRun, RunningPhase
	if why := x.refused(n, n.Exit); why != "" {
		x.conclude(n, Result{Phase: FailedPhase, Message: why})
		return
	}
	if x.s.Len() >= x.mostNodes() {
		x.conclude(n, Result{Phase: ErrorPhase, Message: fmt.Sprintf("the workflow has %d nodes already: do its retries end?", x.s.Len())})
		return
	}
	suffix := fmt.Sprintf("(%d)", n.Attempt)
	p := plan{
		call: n.call, site: site{From: fromParent, Template: n.site.Template}, path: n.Path + suffix, name: n.Name + suffix,
		template: n.template, item: n.Item, inputs: n.Inputs, exit: n.Exit,
	}
	kind := Leaf
	if n.template.Graph != nil {
		kind = GraphNode
	}
	a := x.add(n, &p, kind)
	a.Inputs, a.Attempt = n.Inputs, n.Attempt
	n.Attempt++
	x.lock(a)
}

// attempts gives the last attempt of a RetryNode before number i.
func (x *step) attemptBefore(n *Node, i int) *Node {
	for _, id := range slices.Backward(n.Children) {
		if c := x.s.Node(id); !c.Hooked && c.Attempt < i {
			return c
		}
	}
	return nil
}

// again says whether a result of an attempt is followed by another, after how long, and if not, why. An error says that the
// policy could not be evaluated.
func (x *step) again(n *Node, a *Node, r *Result) (again bool, wait time.Duration, why string, err error) {
	retry := x.policy(n)
	if retry == nil || !r.Phase.Bad() || a.work.Broken || x.refused(n, n.Exit) != "" || !retryable(retry, r) {
		return false, 0, "", nil
	}
	sc := x.leafScope(a)
	sc.last = r
	if limit := retry.Limit; limit != "" {
		text, err := x.m.lang.Text(limit, x.env(sc))
		if err != nil {
			return false, 0, "", fmt.Errorf("retryStrategy.limit: %w", err)
		}
		most, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			return false, 0, "", fmt.Errorf("retryStrategy.limit: %s is no whole number", brief(text))
		}
		if n.Attempt-1-n.work.Before >= most {
			return false, 0, "No more retries left", nil
		}
	}
	if retry.Expression != "" {
		ok, err := x.m.lang.Condition(program.Condition{Form: "expression", Source: retry.Expression}, x.env(sc))
		if err != nil {
			return false, 0, "", fmt.Errorf("retryStrategy.expression: %w", err)
		}
		if !ok {
			return false, 0, "retryStrategy.expression evaluated to false", nil
		}
	}
	wait, why, err = x.backoff(n, retry.Backoff, sc)
	return err == nil && why == "", wait, why, err
}

// retryable says whether a policy is about such a result at all.
func retryable(retry *program.Retry, r *Result) bool {
	policy := retry.Policy
	if policy == "" {
		policy = "OnFailure"
		if retry.Expression != "" {
			policy = "Always"
		}
	}
	switch policy {
	case "OnFailure":
		return r.Phase == FailedPhase
	case "OnError":
		return r.Phase == ErrorPhase
	case "OnTransientError":
		return r.Phase == ErrorPhase && r.Transient
	}
	return true
}

// backoff is Duration * Factor^k before retry k (from 0), at most Cap, and none that would start MaxDuration after the
// first attempt's start.
func (x *step) backoff(n *Node, b *program.Backoff, sc *scope) (wait time.Duration, why string, err error) {
	if b == nil {
		return 0, "", nil
	}
	get := func(name, src string) (time.Duration, bool, error) {
		if src == "" {
			return 0, false, nil
		}
		text, err := x.m.lang.Text(src, x.env(sc))
		if err != nil {
			return 0, false, fmt.Errorf("retryStrategy.backoff.%s: %w", name, err)
		}
		d, err := parseDuration(text)
		if err != nil {
			return 0, false, fmt.Errorf("retryStrategy.backoff.%s: %w", name, err)
		}
		return d, true, nil
	}
	wait, _, err = get("duration", b.Duration)
	if err != nil {
		return 0, "", err
	}
	if b.Factor != "" && wait > 0 {
		text, err := x.m.lang.Text(b.Factor, x.env(sc))
		if err != nil {
			return 0, "", fmt.Errorf("retryStrategy.backoff.factor: %w", err)
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return 0, "", fmt.Errorf("retryStrategy.backoff.factor: %s is no number", brief(text))
		}
		if f > 0 {
			grown := float64(wait) * math.Pow(f, float64(n.Attempt-1-n.work.Before))
			wait = time.Duration(math.Min(grown, float64(365*24*time.Hour)))
		}
	}
	limit, ok, err := get("cap", b.Cap)
	if err != nil {
		return 0, "", err
	}
	if ok && wait > limit {
		wait = limit
	}
	most, ok, err := get("maxDuration", b.MaxDuration)
	if err != nil {
		return 0, "", err
	}
	if ok && most > 0 && x.now.Add(wait).After(n.Started.Add(most)) {
		return 0, "Backoff would exceed max duration limit", nil
	}
	return wait, "", nil
}

// attemptDone goes on to the next attempt, or ends the RetryNode with the last one's result.
func (x *step) attemptDone(n, a *Node) {
	if n.Stage != StageRun {
		return
	}
	if a.Phase.Ended() && a.work != nil && a.work.Again {
		if wait := a.work.Wait; wait > 0 {
			n.Stage = StageBackoff
			n.work.Timer = x.now.Add(wait)
			n.Message = fmt.Sprintf("Backoff for %s", wait)
			x.s.touch(n)
			x.emit(SetTimer{Timer: Timer{n.ID, BackoffTimer}, At: n.work.Timer})
			return
		}
		x.nextAttempt(n)
		return
	}
	r := Result{Phase: a.Phase, Message: a.Message, ExitCode: a.ExitCode, Outputs: a.Outputs, Reused: a.Reused, Host: a.Host}
	if a.work != nil && a.work.Why != "" && a.Phase.Bad() {
		r.Message = a.work.Why
		if a.work.Undecided {
			r.Phase = ErrorPhase
		}
	}
	n.Daemoned = a.Daemoned
	n.work.Broken = a.work != nil && (a.work.Broken || a.work.Undecided)
	x.conclude(n, r)
}

// asAttempt turns a node whose Post hook asked for another attempt into a RetryNode with that node as its first
// attempt. The attempt keeps the identity under which the backend knows it.
func (x *step) asAttempt(n *Node) {
	if n.Kind == RetryNode { // a hook of the workflow asked: the attempts that there are go on
		n.work.Again, n.work.Granted, n.work.Result, n.work.Hook = false, false, nil, 0
		n.Outputs, n.ExitCode, n.Message = Outputs{}, nil, ""
		x.nextAttempt(n)
		return
	}
	// Hooks of the workflow were asked about the node as a whole and stay with it.
	var own, whole []HookCall
	for _, hc := range n.Hooks {
		if hc.Scope == workflowScope {
			whole = append(whole, hc)
		} else {
			own = append(own, hc)
		}
	}
	first := &Node{
		ID: NodeID(len(x.s.nodes)), Parent: n.ID, Kind: n.Kind, Path: n.Path + "(0)", Name: n.Name + "(0)",
		Item: n.Item, Exit: n.Exit, Phase: n.work.Result.Phase, Stage: StageDone, Message: n.Message,
		Started: n.Started, Finished: x.now, Inputs: n.Inputs, ExitCode: n.ExitCode, Host: n.Host, IP: n.IP,
		Hooks: own, Children: n.Children, CacheHit: n.CacheHit, Resources: n.Resources, Identity: n.Path,
		call: n.call, template: n.template, site: site{From: fromParent, Template: n.site.Template},
	}
	x.s.nodes = append(x.s.nodes, first)
	for _, id := range first.Children {
		x.s.Node(id).Parent = first.ID
	}
	if n.work.Locked {
		x.emit(ReleaseLocks{Node: n.ID, Path: n.Path})
	}
	n.work = &work{Slotted: n.work.Slotted, Reviews: n.work.Reviews, Calls: n.work.Calls, Fired: n.work.Fired}
	n.Kind, n.Attempt, n.Children = RetryNode, 1, []NodeID{first.ID}
	n.Hooks, n.Outputs, n.ExitCode, n.Message = whole, Outputs{}, nil, ""
	x.s.touch(first)
	x.s.touch(n)
	x.nextAttempt(n)
}

// parseDuration reads Argo's durations: "30", "30s", "2h", "1d".
func parseDuration(text string) (time.Duration, error) {
	t := strings.TrimSpace(text)
	if v, err := strconv.ParseFloat(t, 64); err == nil {
		if !(v >= 0 && v <= 1e9) { // neither is "nan"
			return 0, fmt.Errorf("duration %s is out of range", brief(text))
		}
		return time.Duration(v * float64(time.Second)), nil
	}
	if days, ok := strings.CutSuffix(t, "d"); ok {
		if v, err := strconv.ParseFloat(days, 64); err == nil && v >= 0 && v < 100_000 {
			return time.Duration(v * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil {
		return 0, fmt.Errorf("%s is no duration: write seconds (\"30\") or a number with a unit (\"30s\", \"5m\", \"2h\", \"1d\")", brief(text))
	}
	if d < 0 {
		return 0, fmt.Errorf("duration %s is negative", brief(text))
	}
	return d, nil
}
