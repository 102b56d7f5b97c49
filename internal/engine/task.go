package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

type artifactMap = map[string][]program.Artifact

// launch starts a leaf's task.
func (x *step) launch(n *Node) {
	w := n.work
	n.Stage = StageRun
	x.s.touch(n)
	if n.template.Suspend != nil {
		x.launchSuspend(n)
		return
	}
	cmd, err := x.startTask(n)
	if err != nil {
		w.Broken = true
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	if err := x.startDeadline(n); err != nil {
		w.Broken = true
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	if !w.Deadline.IsZero() {
		cmd.Timeout = w.Deadline.Sub(w.At)
	}
	x.emit(cmd)
}

func (x *step) launchSuspend(n *Node) {
	n.Phase = RunningPhase
	if d := n.template.Suspend.Duration; d != "" {
		text, err := x.m.lang.Text(d, x.env(x.leafScope(n)))
		if err == nil {
			var wait time.Duration
			if wait, err = parseDuration(text); err == nil {
				n.work.Timer = x.now.Add(wait)
				x.emit(SetTimer{Timer: Timer{n.ID, SuspendTimer}, At: n.work.Timer})
			}
		}
		if err != nil {
			n.work.Broken = true
			x.conclude(n, Result{Phase: ErrorPhase, Message: "suspend.duration: " + err.Error()})
			return
		}
	}
	if err := x.startDeadline(n); err != nil {
		n.work.Broken = true
		x.conclude(n, Result{Phase: ErrorPhase, Message: err.Error()})
		return
	}
	x.watch(n, string(RunningPhase))
}

// startTask makes the command for a leaf. It depends only on what the state records, so that it can be made again.
func (x *step) startTask(n *Node) (StartTask, error) {
	t := n.template
	sc := x.leafScope(n)
	cmd := StartTask{
		Node: n.ID, Path: n.identity(), Pod: x.podName(n), Attempt: n.Attempt, Template: t, Inputs: n.Inputs,
		Outputs: t.Outputs, Labels: t.Labels, Annotations: t.Annotations, Daemon: t.Daemon,
	}
	var err error
	if cmd.ArtifactPaths, err = x.inputPaths(n, sc); err != nil {
		return cmd, err
	}
	var paths map[string]string
	if cmd.OutputArtifacts, paths, err = x.places(n); err != nil {
		return cmd, err
	}
	if cmd.Outputs, err = x.resolveOutputs(t, paths, sc); err != nil {
		return cmd, err
	}
	env := rendering{x: x, sc: sc, seed: n.work.Seed, now: n.work.At}
	body := *t.Task
	if !x.m.Pods {
		body = body.WithoutPod()
	}
	if cmd.Body, err = body.Resolve(env.text, env.args); err != nil {
		return cmd, err
	}
	if x.m.Pods {
		if cmd.RunPod, err = program.ResolveJSON(x.m.program.Pod, env.text); err != nil {
			return cmd, fmt.Errorf("pod settings of the workflow: %w", err)
		}
	}
	if cmd.Labels, err = env.labels(t.Labels); err != nil {
		return cmd, err
	}
	if cmd.Annotations, err = env.labels(t.Annotations); err != nil {
		return cmd, err
	}
	for i := range n.Hooks {
		a := &n.Hooks[i].Answer
		if n.Hooks[i].Point != Pre {
			continue
		}
		cmd.Labels = withLabels(cmd.Labels, a.Labels)
		cmd.Annotations = withLabels(cmd.Annotations, a.Annotations)
		if len(a.PodPatch) > 0 {
			cmd.PodPatches = append(cmd.PodPatches, a.PodPatch)
		}
	}
	if src := cmd.Body.Source; src != nil {
		list, ok, err := x.artifacts(src, sc)
		if err != nil {
			return cmd, fmt.Errorf("data source: %w", err)
		}
		if ok && len(list) == 1 {
			cmd.Body.Source = &program.Binding{Location: list[0].Store}
		}
	}
	if imp := cmd.Body.Import; imp != nil {
		v, ok, err := x.value(&imp.URI, sc)
		if err != nil {
			return cmd, fmt.Errorf("artifact URI: %w", err)
		}
		uri, isText := v.(string)
		if !ok || !isText {
			return cmd, fmt.Errorf("artifact URI: no text")
		}
		imp.URI = program.Binding{Text: &uri}
	}
	return cmd, nil
}

func withLabels(base, more map[string]string) map[string]string {
	if len(more) == 0 {
		return base
	}
	out := make(map[string]string, len(base)+len(more))
	maps.Copy(out, base)
	maps.Copy(out, more)
	return out
}

// rendering evaluates a body's texts with a node's recorded time and seed: a second rendering gives the same.
type rendering struct {
	x     *step
	sc    *scope
	seed  uint64
	now   time.Time
	draws uint64
}

func (r *rendering) text(src string) (string, error) {
	if !hasTag(src) {
		return src, nil
	}
	return r.x.m.lang.Text(src, r.env())
}

func (r *rendering) args(src []string) ([]string, error) { return r.x.m.lang.Args(src, r.env()) }

func (r *rendering) labels(m map[string]string) (map[string]string, error) {
	if len(m) == 0 {
		return m, nil
	}
	out := make(map[string]string, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) { // in one order, since each evaluation draws a seed
		t, err := r.text(m[k])
		if err != nil {
			return nil, fmt.Errorf("label %s: %w", k, err)
		}
		out[k] = t
	}
	return out, nil
}

// running notes that a task's command has started.
func (x *step) running(e Running) {
	n := x.live(e.Node)
	if n == nil || n.Kind != Leaf || n.Stage != StageRun {
		return
	}
	if n.Phase == Pending {
		n.Phase = RunningPhase
		x.watch(n, string(RunningPhase))
	}
	n.Host, n.IP = or(e.Host, n.Host), or(e.IP, n.IP)
	x.s.touch(n)
	if e.Ready && n.template.Daemon && !n.Daemoned {
		n.Daemoned = true
		x.s.own.Open++
		owner := x.s.own
		if g := x.enclosingGraph(n); g != nil && g.work != nil {
			owner = g.work
		}
		owner.Daemons = append(owner.Daemons, n.ID)
		x.freePlace(n)
		x.freeSlot(n)
		x.ended = append(x.ended, n)
	}
}

// taskFinished takes an attempt's result.
func (x *step) taskFinished(e Finished) {
	n := x.live(e.Node)
	if n == nil || n.Kind != Leaf || n.Stage != StageRun {
		return
	}
	r := e.Result
	if n.Daemoned {
		if r.Phase == FailedPhase { // it was ended with its graph
			r.Phase, r.Message = SucceededPhase, ""
		}
		x.conclude(n, r)
		return
	}
	if n.Phase == Pending && r.Phase != ErrorPhase {
		// A task that was never seen running has run all the same.
		n.Phase = RunningPhase
		x.watch(n, string(RunningPhase))
	}
	if why := n.work.Stopping; why != "" && r.Phase != SucceededPhase {
		r.Phase, r.Message = FailedPhase, why
	}
	r.Outputs.Parameters = maps.Clone(r.Outputs.Parameters) // the event is kept as it was told
	x.leafOutputs(n, &r)
	x.conclude(n, r)
}

func (x *step) noted(e Noted) {
	if own := x.s.own; e.Node == 0 && own.Locked && (x.s.Root == 0 || own.Reopened) && !x.s.Phase.Ended() {
		x.s.Message = e.Message // of the locks that the run waits for
		x.s.touchRun()
		return
	}
	n := x.live(e.Node)
	if n == nil {
		return
	}
	n.Message = e.Message
	if e.Progress != "" {
		n.Progress = e.Progress
	}
	x.s.touch(n)
}

// identity is the path under which the backend knows the attempt.
func (n *Node) identity() string { return or(n.Identity, n.Path) }

// podName is the name of the attempt's pod.
func (x *step) podName(n *Node) string {
	name := ""
	if n.template != nil {
		name = n.template.Name
	}
	return program.PodName(x.s.Run.Name, name, n.identity())
}
