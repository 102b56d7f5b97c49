package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"github.com/sluice-ml/sluice/internal/program"
)

// The scopes of a hook.
const (
	taskScope     = "Task"
	graphScopeOf  = "Graph"
	workflowScope = "Workflow"
)

// askNext asks the next Pre hook of a node, or lets the node proceed. The order has two rounds: hooks of the workflow,
// for the root alone, then those of the node's own kind; Post goes through it backwards.
func (x *step) askNext(n *Node) {
	hooks := x.s.Run.Hooks
	w := n.work
	for ; w.Hook < 2*len(hooks); w.Hook++ {
		h, scope := x.hookAt(n, w.Hook)
		if h == nil || !h.Pre {
			continue
		}
		ok, err := x.applies(h, n)
		if err != nil {
			x.preFailed(n, h, x.undecided(n, h, Pre, scope, err))
			return
		}
		if !ok {
			continue
		}
		x.ask(n, h, Pre, scope)
		return
	}
	n.Message = n.ignored()
	x.proceed(n)
}

// hookAt gives the hook at a place in the order, nil where it is none of this node's.
func (x *step) hookAt(n *Node, i int) (*Hook, string) {
	hooks := x.s.Run.Hooks
	if i < len(hooks) {
		if h := &hooks[i]; h.Workflow && n.site.From == fromEntry && n.Parent == 0 {
			return h, workflowScope
		}
		return nil, ""
	}
	h := &hooks[i-len(hooks)]
	switch {
	case h.Cache && n.Kind == Leaf && x.cacheOf(n) == nil:
		return nil, ""
	case h.Cache && n.Kind == GraphNode && h.Task:
		// Argo memoizes steps and DAGs as it does tasks; no other language asks for that.
		if c := x.cacheOf(n); c != nil && c.Scheme == "key" {
			return h, graphScopeOf
		}
		return nil, ""
	case n.Kind == Leaf && h.Task:
		return h, taskScope
	case n.Kind == GraphNode && h.Graph:
		return h, graphScopeOf
	}
	return nil, ""
}

func (x *step) cacheOf(n *Node) *program.Cache {
	if n.call != nil && n.call.Cache != nil {
		return n.call.Cache
	}
	if n.template != nil {
		return n.template.Cache
	}
	return nil
}

// applies evaluates a hook's match conditions.
func (x *step) applies(h *Hook, n *Node) (bool, error) {
	if len(h.Match) == 0 {
		return true, nil
	}
	ok, err := x.m.match(h.Match, x.facts(n))
	if err != nil {
		return false, fmt.Errorf("matchConditions: %w", err)
	}
	return ok, nil
}

// undecided records that a hook's match conditions could not be decided for a node, in place of a review.
func (x *step) undecided(n *Node, h *Hook, point Point, scope string, err error) *HookCall {
	n.Hooks = append(n.Hooks, HookCall{Hook: h.Name, Point: point, Scope: scope, Asked: x.now, Answered: x.now, Failure: err.Error()})
	x.s.touch(n)
	return &n.Hooks[len(n.Hooks)-1]
}

// facts are what match conditions can read.
func (x *step) facts(n *Node) map[string]any {
	s := x.s
	task := map[string]any{
		"name": n.Name, "path": n.Path, "attempt": int64(n.Attempt), "template": "", "kind": "",
		"labels": map[string]any{}, "annotations": map[string]any{},
		"inputs": map[string]any{"parameters": orEmpty(n.Inputs.Parameters)},
	}
	if n.call != nil && n.call.Name != "" {
		task["name"] = n.call.Name
	}
	if t := n.template; t != nil {
		task["template"] = t.Name
		task["labels"], task["annotations"] = anyMap(t.Labels), anyMap(t.Annotations)
		switch {
		case t.Task != nil:
			task["kind"] = string(t.Task.Kind)
		case t.Graph != nil:
			task["kind"] = "graph"
		case t.Suspend != nil:
			task["kind"] = "suspend"
		}
	}
	return map[string]any{
		"task": task,
		"workflow": map[string]any{
			"name": s.Run.Name, "namespace": s.Run.Namespace, "uid": s.Run.UID,
			"labels": anyMap(s.Run.Labels), "annotations": anyMap(s.Run.Annotations), "parameters": orEmpty(s.Parameters),
		},
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// ask records a review and puts it.
func (x *step) ask(n *Node, h *Hook, point Point, scope string) {
	if point == Pre {
		n.Stage = StagePre
	} else {
		n.Stage = StagePost
	}
	n.Message = "waiting for hook " + h.Name
	n.Hooks = append(n.Hooks, HookCall{Hook: h.Name, Point: point, Scope: scope, Asked: x.now})
	n.work.Asking, n.work.Review = true, len(n.Hooks)-1
	x.s.touch(n)
	x.emit(x.review(n, n.work.Review))
}

// notify puts a review, by its index in Node.Hooks, that nothing waits for.
func (x *step) notify(n *Node, i int) {
	n.work.Notices = append(n.work.Notices, i)
	x.emit(x.review(n, i))
}

// review is the command for a review of a node, by its index in Node.Hooks.
func (x *step) review(n *Node, i int) AskHook {
	hc := &n.Hooks[i]
	cmd := AskHook{
		Node: n.ID, Point: hc.Point, Hook: hc.Hook, Scope: hc.Scope, Asked: hc.Asked,
		UID:  x.reviewUID(n, i),
		Path: n.Path, Name: n.Name, Attempt: n.Attempt, Template: n.template, Call: n.call, Inputs: n.Inputs,
		Parameters: x.s.Parameters,
	}
	if places, _, err := x.places(n); err == nil && n.Kind == Leaf {
		cmd.OutputArtifacts = places
	}
	if h := x.hook(hc.Hook); h != nil && h.Cache {
		cmd.Cache = x.resolvedCache(n)
	}
	if hc.Point == Post {
		r := *n.work.Result
		r.Started = n.Started
		cmd.Result = &r
		cmd.Final, cmd.Finished = !n.work.Again, n.work.Ended
		for i := range n.Hooks {
			if p := &n.Hooks[i]; p.Hook == hc.Hook && p.Point == Pre && p.Scope == hc.Scope {
				cmd.State = p.Answer.State
			}
		}
		cmd.Notify = slices.Contains(n.work.Notices, i)
	}
	return cmd
}

// reviewUID is the same for every retry of one point of one attempt, and for no other.
func (x *step) reviewUID(n *Node, i int) string {
	hc := &n.Hooks[i]
	before := 0
	for k := range n.Hooks[:i] {
		if p := &n.Hooks[k]; p.Hook == hc.Hook && p.Point == hc.Point && p.Scope == hc.Scope {
			before++
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s\x00%s\x00%d", x.s.Run.UID, n.identity(), hc.Point, hc.Hook, hc.Scope, before))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

func (x *step) hook(name string) *Hook {
	for i := range x.s.Run.Hooks {
		if x.s.Run.Hooks[i].Name == name {
			return &x.s.Run.Hooks[i]
		}
	}
	return nil
}

// resolvedCache is the node's cache request with its texts resolved; one that cannot be resolved has no key.
func (x *step) resolvedCache(n *Node) *program.Cache {
	c := x.cacheOf(n)
	if c == nil {
		return nil
	}
	out := *c
	sc := x.leafScope(n)
	for _, t := range []*string{&out.Name, &out.Key, &out.MaxAge} {
		v, err := x.m.lang.Text(*t, x.env(sc))
		if err != nil {
			out.Key = ""
			return &out
		}
		*t = v
	}
	return &out
}

// answered takes a hook's answer. One for a review that is not waited for is late or repeated, and dropped.
func (x *step) answered(e Answered) {
	n := x.live(e.Node)
	if n == nil || !n.work.Asking {
		return
	}
	hc := &n.Hooks[n.work.Review]
	if hc.Hook != e.Hook || hc.Point != e.Point {
		return
	}
	n.work.Asking = false
	hc.Answered, hc.Answer, hc.Failure = x.now, e.Answer, e.Failure
	n.Message = ""
	x.s.touch(n)
	h := x.hook(e.Hook)
	if h == nil {
		h = &Hook{Name: e.Hook}
	}
	if e.Point == Pre {
		x.preAnswered(n, h, hc)
	} else {
		x.postAnswered(n, h, hc)
	}
}

func (x *step) preAnswered(n *Node, h *Hook, hc *HookCall) {
	if hc.Failure != "" {
		x.preFailed(n, h, hc)
		return
	}
	a := &hc.Answer
	if h.Cache {
		hit := a.Decision == DecideReuse
		n.CacheHit = &hit
	}
	if a.Inputs != nil {
		inputs, err := x.replacedInputs(n, h, a.Inputs)
		if err != nil {
			x.conclude(n, Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: %s", h.Name, err)})
			return
		}
		n.Inputs = inputs
	}
	switch a.Decision {
	case DecideReuse:
		out := Outputs{}
		if a.Outputs != nil {
			out = *a.Outputs
		}
		r := Result{Phase: SucceededPhase, Outputs: out, Reused: true, Message: a.Message}
		if err := x.allowed(n, h, out.Artifacts); err != nil {
			r = Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: output %s", h.Name, err)}
		} else if missing := x.missingOutput(n, &out); missing != "" {
			r = Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: reuse without %s, which template %s declares", h.Name, missing, n.template.Name)}
		} else if n.Kind == Leaf {
			x.replacedOutputs(n, h, &r)
		}
		x.conclude(n, r)
	case DecideSkip:
		x.conclude(n, Result{Phase: SkippedPhase, Message: or(a.Message, "skipped by hook "+h.Name)})
	case DecideFail:
		r := Result{Phase: FailedPhase, Message: or(a.Message, "failed by hook "+h.Name)}
		if h.Cache { // what the author asked of it makes no sense: no attempt can, and it is no failure of the task
			r.Phase, n.work.Broken = ErrorPhase, true
		}
		x.conclude(n, r)
	default:
		n.work.Hook++
		x.askNext(n)
	}
}

func (x *step) preFailed(n *Node, h *Hook, hc *HookCall) {
	if h.Ignore {
		hc.Ignored = true
		n.work.Hook++
		x.askNext(n)
		return
	}
	x.conclude(n, Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: %s", h.Name, hc.Failure)})
}

// postNext asks the next Post hook of a node whose own work has ended, or closes the node.
func (x *step) postNext(n *Node) {
	w := n.work
	for ; w.Hook > 0; w.Hook-- {
		h, scope := x.hookAt(n, w.Hook-1)
		if h == nil || !h.Post {
			continue
		}
		ok, err := x.getsPost(n, h, scope)
		if err != nil {
			x.postFailed(n, h, x.undecided(n, h, Post, scope, err))
			continue
		}
		if !ok {
			continue
		}
		if x.s.Shutdown == "Terminate" || w.Forced { // told once; nothing waits
			n.Hooks = append(n.Hooks, HookCall{Hook: h.Name, Point: Post, Scope: scope, Asked: x.now})
			x.s.touch(n)
			x.notify(n, len(n.Hooks)-1)
			continue
		}
		x.ask(n, h, Post, scope)
		return
	}
	x.closed(n)
}

// getsPost says whether a hook is asked at Post: its Pre has answered, or it has none and its conditions hold.
func (x *step) getsPost(n *Node, h *Hook, scope string) (bool, error) {
	if !h.Pre {
		return x.applies(h, n)
	}
	for i := range n.Hooks {
		hc := &n.Hooks[i]
		if hc.Hook == h.Name && hc.Point == Pre && hc.Scope == scope && !hc.Answered.IsZero() && hc.Failure == "" {
			return true, nil
		}
	}
	return false, nil
}

// postFailed takes it that a Post hook has no answer.
func (x *step) postFailed(n *Node, h *Hook, hc *HookCall) {
	if h.Ignore {
		hc.Ignored = true
		return
	}
	r := n.work.Result
	x.changeResult(n, Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: %s", h.Name, hc.Failure), ExitCode: r.ExitCode, Outputs: r.Outputs})
}

func (x *step) postAnswered(n *Node, h *Hook, hc *HookCall) {
	w := n.work
	r := w.Result
	n.Message = r.Message
	a := &hc.Answer
	switch {
	case hc.Failure != "":
		x.postFailed(n, h, hc)
	case a.Decision == DecideRetry:
		x.changeResult(n, Result{Phase: FailedPhase, Message: or(a.Message, "hook "+h.Name+" asked for another attempt"), ExitCode: r.ExitCode})
		x.retryForHook(n, h)
	default:
		if a.Outputs != nil {
			x.replaceOutputs(n, h, a.Outputs)
		}
		if r := w.Result; a.Decision == DecideFail {
			x.changeResult(n, Result{Phase: FailedPhase, Message: or(a.Message, "failed by hook "+h.Name), ExitCode: r.ExitCode, Outputs: r.Outputs})
		}
	}
	w.Hook--
	x.postNext(n)
}

// replaceOutputs puts outputs that a Post hook gave in place of a node's own.
func (x *step) replaceOutputs(n *Node, h *Hook, outputs *Outputs) {
	r := n.work.Result
	if err := x.allowed(n, h, outputs.Artifacts); err != nil {
		x.changeResult(n, Result{Phase: ErrorPhase, Message: fmt.Sprintf("hook %s: output %s", h.Name, err), ExitCode: r.ExitCode, Outputs: r.Outputs})
		return
	}
	r.Outputs = r.Outputs.with(outputs)
	if n.Kind == Leaf {
		x.replacedOutputs(n, h, r)
		n.Message = r.Message
	}
	n.Outputs = r.Outputs
}

// replacedInputs are a node's inputs where a hook replaced some: they must be what the template takes.
func (x *step) replacedInputs(n *Node, h *Hook, r *Inputs) (Inputs, error) {
	in := n.Inputs.with(r)
	if err := x.allowed(n, h, r.Artifacts); err != nil {
		return in, fmt.Errorf("input %w", err)
	}
	for i := range n.template.Inputs.Parameters {
		d := &n.template.Inputs.Parameters[i]
		if _, ok := r.Parameters[d.Name]; !ok {
			continue
		}
		v, err := x.accept(d, in.Parameters[d.Name])
		if err != nil {
			return in, fmt.Errorf("input %q: %w", d.Name, err)
		}
		in.Parameters[d.Name] = v
	}
	return in, nil
}

// replacedOutputs brings outputs that a hook gave into the form of the declared ones; what cannot be is an Error.
func (x *step) replacedOutputs(n *Node, h *Hook, r *Result) {
	r.Outputs.Parameters = maps.Clone(r.Outputs.Parameters)
	before := r.Phase
	x.leafOutputs(n, r)
	if r.Phase != before {
		r.Message, r.Reused = fmt.Sprintf("hook %s: %s", h.Name, r.Message), false
	}
}

// changeResult replaces a node's result and decides anew whether another attempt follows.
func (x *step) changeResult(n *Node, r Result) {
	n.work.Result = &r
	n.Message, n.Outputs, n.Reused = r.Message, r.Outputs, false
	x.decideRetry(n)
}

// retryForHook grants the attempt that a Post hook asked for: within the retry policy's limit, or the hook's own.
func (x *step) retryForHook(n *Node, h *Hook) {
	w := n.work
	parent := x.s.Node(n.Parent)
	reviews := &w.Reviews
	if parent != nil && parent.Kind == RetryNode && n.site.From == fromParent {
		if x.policy(parent) != nil {
			return // decideRetry has applied it
		}
		reviews = &parent.work.Reviews
	}
	most := h.MaxRetries
	if most == 0 {
		most = 1
	}
	if *reviews < most && x.refused(parent, n.Exit) == "" {
		*reviews++
		w.Again, w.Granted, w.Why = true, true, ""
	}
}

// with gives inputs where some are replaced; the receiver is left alone, since attempts share it.
func (in Inputs) with(r *Inputs) Inputs {
	if len(r.Parameters) > 0 {
		in.Parameters = maps.Clone(in.Parameters)
		if in.Parameters == nil {
			in.Parameters = map[string]any{}
		}
		for k, v := range r.Parameters {
			in.Parameters[k] = normal(v)
		}
	}
	if len(r.Artifacts) > 0 {
		in.Artifacts = maps.Clone(in.Artifacts)
		if in.Artifacts == nil {
			in.Artifacts = map[string][]program.Artifact{}
		}
		maps.Copy(in.Artifacts, r.Artifacts)
	}
	return in
}

func (out Outputs) with(r *Outputs) Outputs {
	replaced := Inputs{Parameters: out.Parameters, Artifacts: out.Artifacts}.with(&Inputs{Parameters: r.Parameters, Artifacts: r.Artifacts})
	out.Parameters, out.Artifacts = replaced.Parameters, replaced.Artifacts
	if r.Result != nil {
		out.Result = r.Result
	}
	return out
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
