package engine

import (
	"strconv"
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// task is what a call can read of the other calls of its graph.
func (sc *scope) task(path []string) (any, expr.Presence) {
	g := sc.graph
	if g == nil || g.template == nil || g.template.Graph == nil {
		return nil, expr.Absent
	}
	if len(path) == 0 {
		all := map[string]any{}
		for i := range g.template.Graph.Calls {
			name := g.template.Graph.Calls[i].Name
			if v, p := sc.taskOf(g, i, nil); p == expr.Present {
				all[name] = v
			}
		}
		return all, expr.Present
	}
	i, ok := sc.x.m.shapeOf(g.template.Graph, "").byName[path[0]]
	if !ok {
		return nil, expr.Absent
	}
	return sc.taskOf(g, i, path[1:])
}

func (sc *scope) taskOf(g *Node, call int, path []string) (any, expr.Presence) {
	n := sc.x.s.Child(g, call)
	if sc.own != nil && sc.own.call == &g.template.Graph.Calls[call] {
		n = sc.own
	}
	if n == nil {
		return nil, expr.Skipped
	}
	if len(path) == 0 {
		out := map[string]any{}
		for _, f := range []string{"id", "name", "path", "status", "message", "exitCode", "startedAt", "finishedAt", "reused", "ip", "hostNodeName"} {
			if v, p := sc.taskField(n, f); p == expr.Present {
				out[f] = v
			}
		}
		out["outputs"], _ = sc.taskOutputs(n, nil)
		out["inputs"] = map[string]any{"parameters": orEmpty(n.Inputs.Parameters)}
		return out, expr.Present
	}
	switch path[0] {
	case "outputs":
		return sc.taskOutputs(n, path[1:])
	case "inputs":
		if len(path) >= 3 && path[1] == "parameters" {
			if v, ok := n.Inputs.Parameters[path[2]]; ok {
				return descend(v, path[3:])
			}
		}
		return nil, expr.Absent
	case "hooks":
		return sc.taskHooks(n, path[1:])
	}
	if len(path) > 1 {
		return nil, expr.Absent
	}
	return sc.taskField(n, path[0])
}

func (sc *scope) taskField(n *Node, field string) (any, expr.Presence) {
	switch field {
	case "id":
		return program.NodeID(sc.x.s.Run.Name, n.Path), expr.Present
	case "path":
		return n.Path, expr.Present
	case "name":
		return n.call.Name, expr.Present
	case "status":
		return string(n.Phase), expr.Present
	case "message":
		return n.Message, expr.Present
	case "reused":
		return n.Reused, expr.Present
	case "exitCode":
		if n.ExitCode == nil {
			return nil, expr.Skipped
		}
		return strconv.Itoa(*n.ExitCode), expr.Present
	case "startedAt":
		return stamp(n.Started), expr.Present
	case "finishedAt":
		return stamp(n.Finished), expr.Present
	case "ip":
		return n.IP, expr.Present
	case "hostNodeName":
		return n.Host, expr.Present
	}
	return nil, expr.Absent
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// taskOutputs are a call's outputs; over a loop they are lists in the order of its items.
func (sc *scope) taskOutputs(n *Node, path []string) (any, expr.Presence) {
	if n.Kind == LoopNode {
		return sc.loopOutputs(n, path)
	}
	out := &n.Outputs
	if len(path) == 0 {
		all := map[string]any{"parameters": orEmpty(out.Parameters), "artifacts": listsOf(out.Artifacts)}
		if out.Result != nil {
			all["result"] = *out.Result
		}
		return all, expr.Present
	}
	switch path[0] {
	case "result":
		if out.Result == nil {
			return nil, expr.Skipped
		}
		return *out.Result, expr.Present
	case "exitCode":
		return sc.taskField(n, "exitCode")
	case "parameters":
		if len(path) == 1 {
			return orEmpty(out.Parameters), expr.Present
		}
		if v, ok := out.Parameters[path[1]]; ok {
			return descend(v, path[2:])
		}
		return sc.defaultOutput(n, path[1])
	case "artifacts":
		if len(path) == 1 {
			return listsOf(out.Artifacts), expr.Present
		}
		list, ok := out.Artifacts[path[1]]
		if !ok {
			return nil, expr.Skipped
		}
		if len(path) == 2 {
			return list, expr.Present
		}
		if path[2] == "json" && len(path) == 3 {
			return sc.x.artifactJSON(list)
		}
		return artifactField(list, path[2:])
	}
	return nil, expr.Absent
}

// defaultOutput stands in for an output parameter of a call that gave none: the producer's own default.
func (sc *scope) defaultOutput(n *Node, name string) (any, expr.Presence) {
	if n.template == nil {
		return nil, expr.Skipped
	}
	for i := range n.template.Outputs.Parameters {
		o := &n.template.Outputs.Parameters[i]
		if o.Name != name {
			continue
		}
		if o.Default != nil {
			if v, ok, err := sc.x.value(o.Default, sc.x.leafScope(n)); err == nil && ok {
				return v, expr.Present
			}
		}
		return nil, expr.Skipped
	}
	return nil, expr.Absent
}

func listsOf(m map[string][]program.Artifact) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// loopOutputs aggregates the outputs of a loop's items that succeeded, those without outputs left out. It is computed
// when it is read.
func (sc *scope) loopOutputs(n *Node, path []string) (any, expr.Presence) {
	if len(path) == 0 {
		out := map[string]any{}
		for _, f := range []string{"result", "parameters"} {
			if v, p := sc.loopOutputs(n, []string{f}); p == expr.Present {
				out[f] = v
			}
		}
		return out, expr.Present
	}
	list := []any{}
	artifacts := []program.Artifact{}
	isArtifact := path[0] == "artifacts"
	for _, id := range n.Children {
		c := sc.x.s.Node(id)
		if c.Hooked || c.Phase != SucceededPhase {
			continue
		}
		switch {
		case path[0] == "result" && len(path) == 1:
			if c.Outputs.Result != nil {
				list = append(list, *c.Outputs.Result)
			}
		case path[0] == "parameters" && len(path) == 1:
			if len(c.Outputs.Parameters) > 0 {
				list = append(list, c.Outputs.Parameters)
			}
		case isArtifact && len(path) >= 2:
			artifacts = append(artifacts, c.Outputs.Artifacts[path[1]]...)
		default:
			if v, p := sc.taskOutputs(c, path); p == expr.Present {
				list = append(list, v)
			}
		}
	}
	if isArtifact {
		if len(path) < 2 {
			return nil, expr.Absent
		}
		return artifacts, expr.Present
	}
	return list, expr.Present
}

// taskHooks are the placeholders that a call's hooks gave: those of its last attempt, a list over a loop.
func (sc *scope) taskHooks(n *Node, path []string) (any, expr.Presence) {
	if len(path) == 0 {
		return nil, expr.Absent
	}
	switch n.Kind {
	case LoopNode:
		list := []any{}
		for _, id := range n.Children {
			c := sc.x.s.Node(id)
			if c.Hooked {
				continue
			}
			if v, p := sc.taskHooks(c, path); p == expr.Present {
				list = append(list, v)
			}
		}
		return list, expr.Present
	case RetryNode:
		if a := sc.x.attemptBefore(n, n.Attempt); a != nil {
			return sc.taskHooks(a, path)
		}
	}
	if v, p := hookValue(n, path); p == expr.Present {
		return v, p
	}
	return nil, expr.Skipped
}

// attempt is the graph that a call stands in, where the graph itself is tried again: all of its text sees which try it is.
func (sc *scope) attempt() *Node {
	if sc.graph == nil {
		return nil
	}
	if parent := sc.x.s.Node(sc.graph.Parent); parent == nil || parent.Kind != RetryNode || sc.graph.Hooked {
		return nil
	}
	return sc.graph
}

// retry is what an attempt, or the policy that decides about it, can read of the one before.
func (sc *scope) retry(path []string) (any, expr.Presence) {
	n := sc.leaf
	if n == nil {
		n = sc.attempt()
	}
	if n == nil {
		return nil, expr.Absent
	}
	if path[0] == "retries" {
		if len(path) > 1 {
			return nil, expr.Absent
		}
		return int64(n.Attempt), expr.Present
	}
	code, status, message, duration := "0", "", "", "0"
	if r := sc.last; r != nil {
		status, message = string(r.Phase), r.Message
		duration = wholeSeconds(sc.x.now.Sub(n.Started))
		if r.ExitCode != nil {
			code = strconv.Itoa(*r.ExitCode)
		} else {
			code = "-1"
		}
	} else if parent := sc.x.s.Node(n.Parent); parent != nil && parent.Kind == RetryNode {
		if a := sc.x.attemptBefore(parent, n.Attempt); a != nil {
			status, message, duration = string(a.Phase), a.Message, wholeSeconds(a.Finished.Sub(a.Started))
			code = "-1"
			if a.ExitCode != nil {
				code = strconv.Itoa(*a.ExitCode)
			}
		}
	}
	return descend(map[string]any{"exitCode": code, "status": status, "message": message, "duration": duration}, path[1:])
}

// wholeSeconds is how long an attempt took as an author sees it, who writes asInt(lastRetry.duration): upstream's times
// have no fractions.
func wholeSeconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// self is what a task can read of itself.
func (sc *scope) self(path []string) (any, expr.Presence) {
	n := sc.leaf
	if n == nil {
		n = sc.frame
	}
	if n == nil || len(path) != 2 {
		return nil, expr.Absent
	}
	switch path[0] + "." + path[1] {
	case "node.name":
		return n.Path, expr.Present
	case "node.id", "task.uid":
		return sc.x.s.Run.UID + "/" + n.Path, expr.Present
	case "pod.name":
		return sc.x.podName(n), expr.Present
	case "task.name":
		if n.call != nil && n.call.Name != "" {
			return n.call.Name, expr.Present
		}
		return n.Name, expr.Present
	case "task.title":
		if n.call != nil && n.call.Title != "" {
			return n.call.Title, expr.Present
		}
		return n.Name, expr.Present
	}
	return nil, expr.Absent
}

func (sc *scope) metric(path []string) (any, expr.Presence) {
	n := sc.leaf
	if n == nil || len(path) > 1 {
		return nil, expr.Absent
	}
	switch path[0] {
	case "status":
		return string(n.Phase), expr.Present
	case "duration":
		end := n.Finished
		if end.IsZero() {
			end = sc.x.now
		}
		return seconds(end.Sub(n.Started)), expr.Present
	}
	return sc.taskField(n, "exitCode")
}
