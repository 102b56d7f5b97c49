package argo

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// peer is what upstream recorded of a run: the world in which the engine runs the same manifest again.
type peer struct {
	Result, Message, Progress string
	Nodes                     []peerNode
	Volatile, Suspended       bool
}

type peerNode struct {
	Name, DisplayName, Type, Phase, Message, Boundary, Progress string
	TemplateName, TemplateScope                                 string
	TemplateRef                                                 *TemplateRef
	NodeFlag                                                    *NodeFlag
	Children, OutboundNodes                                     []string
	Inputs, Outputs                                             struct {
		Parameters map[string]string
		Artifacts  []struct{ Name string }
		Result     *string
		ExitCode   string
	}
}

const runName = "wf"

func readPeer(t *testing.T, root, file string) (*peer, map[string]*peerNode) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "expected", strings.ReplaceAll(file, "/", "__")+".json"))
	if err != nil {
		t.Fatal(err)
	}
	out := &peer{}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(data), "$WF", runName)), out); err != nil {
		t.Fatal(err)
	}
	byName := map[string]*peerNode{}
	for i := range out.Nodes {
		byName[out.Nodes[i].Name] = &out.Nodes[i]
	}
	return out, byName
}

// world answers the engine's commands with what upstream's tasks did.
type world struct {
	t     *testing.T
	m     *engine.Machine
	s     *engine.State
	now   time.Time
	peers map[string]*peerNode
	// fail names tasks that fail, where there are no peers.
	fail  map[string]bool
	todo  []engine.Event
	timer []engine.SetTimer
}

func (w *world) step(e engine.Event) {
	w.t.Helper()
	w.now = w.now.Add(time.Second)
	e.Time, e.Seed = w.now, 1
	cmds, err := w.m.Step(w.s, e)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.StartTask:
			if c.Daemon {
				w.todo = append(w.todo, engine.Event{Running: &engine.Running{Node: c.Node, IP: "$IP", Ready: true}})
				continue
			}
			w.todo = append(w.todo, engine.Event{Finished: &engine.Finished{Node: c.Node, Result: w.result(c)}})
		case engine.StopTask:
			w.todo = append(w.todo, engine.Event{Finished: &engine.Finished{Node: c.Node, Result: engine.Result{Phase: engine.SucceededPhase, Message: c.Message}}})
		case engine.AcquireLocks:
			w.todo = append(w.todo, engine.Event{Acquired: &engine.Acquired{Node: c.Node}})
		case engine.SetTimer:
			w.timer = append(w.timer, c)
		case engine.CancelTimer:
			w.timer = slices.DeleteFunc(w.timer, func(s engine.SetTimer) bool { return s.Timer == c.Timer })
		}
	}
}

func (w *world) result(c engine.StartTask) engine.Result {
	r := engine.Result{Phase: engine.SucceededPhase, Started: w.now}
	p := w.peers[c.Path]
	if w.peers == nil {
		p = &peerNode{Phase: "Succeeded"}
		p.Outputs.ExitCode = "0"
		if w.fail[c.Path] {
			p.Phase, p.Outputs.ExitCode = "Failed", "1"
		}
	}
	if p == nil {
		w.t.Errorf("the engine starts %s, which upstream has not", c.Path)
		return r
	}
	r.Phase, r.Message = engine.Phase(p.Phase), p.Message
	if p.Outputs.ExitCode != "" {
		code, err := strconv.Atoi(p.Outputs.ExitCode)
		if err != nil {
			w.t.Fatal(err)
		}
		r.ExitCode = &code
	}
	r.Outputs.Result = p.Outputs.Result
	if r.Outputs.Result == nil && c.Body.Result {
		none := "not referred to"
		r.Outputs.Result = &none
	}
	for _, o := range c.Outputs.Parameters {
		if v, ok := p.Outputs.Parameters[o.Name]; ok && v != "<valueFrom>" {
			if r.Outputs.Parameters == nil {
				r.Outputs.Parameters = map[string]any{}
			}
			r.Outputs.Parameters[o.Name] = v
		}
	}
	for _, o := range p.Outputs.Artifacts {
		if a, ok := c.OutputArtifacts[o.Name]; ok {
			if r.Outputs.Artifacts == nil {
				r.Outputs.Artifacts = map[string][]program.Artifact{}
			}
			r.Outputs.Artifacts[o.Name] = []program.Artifact{a}
		}
	}
	for _, ctr := range c.Body.Containers {
		if q := w.peers[c.Path+"."+ctr.Name]; q != nil {
			r.Containers = append(r.Containers, engine.ContainerResult{Name: ctr.Name, Phase: engine.Phase(q.Phase)})
		}
	}
	return r
}

// run goes on until nothing more happens. Timers fire when all else is done, deadlines never.
func (w *world) run() {
	for range 100_000 {
		if len(w.todo) > 0 {
			e := w.todo[0]
			w.todo = w.todo[1:]
			w.step(e)
			continue
		}
		i := slices.IndexFunc(w.timer, func(s engine.SetTimer) bool { return s.Timer.Kind != engine.DeadlineTimer })
		if i < 0 || w.s.Phase.Ended() {
			return
		}
		timer := w.timer[i]
		w.timer = slices.Delete(w.timer, i, i+1)
		if timer.At.After(w.now) {
			w.now = timer.At
		}
		w.step(engine.Event{Fired: &engine.Fired{Timer: timer.Timer}})
	}
	w.t.Error("the run does not end")
}

// runPeer runs a manifest of the corpus in upstream's world and projects it.
func runPeer(t *testing.T, b *Bundle, peers map[string]*peerNode) *Workflow {
	t.Helper()
	w, p := startWorld(t, b, peers)
	w.run()
	wf, err := b.Workflow(Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Project(p, w.s, ProjectOptions{Workflow: wf})
}

// startWorld gives a run of a manifest that has not started.
func startWorld(t *testing.T, b *Bundle, peers map[string]*peerNode) (*world, *program.Program) {
	t.Helper()
	p, err := b.Compile(Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := engine.New(p, argoexpr.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, m: m, s: engine.NewState(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), peers: peers}
	w.todo = []engine.Event{{Start: &engine.Start{Run: engine.Run{
		Name: runName, UID: "u", Namespace: "argo", Created: w.now, ArtifactRoot: "/artifacts", Labels: p.Labels, Annotations: p.Annotations,
	}}}}
	return w, p
}

// shown is a node as both sides can be compared.
type shown struct {
	Name, DisplayName, Type, Phase, Boundary, TemplateName, TemplateScope, Progress string
	Ref                                                                             TemplateRef
	Hooked, Retried                                                                 bool
	Children, Outbound                                                              []string
	Parameters, Inputs                                                              map[string]string
	Result, ExitCode                                                                string
}

func showPeer(n *peerNode) shown {
	out := shown{
		Name: n.Name, DisplayName: n.DisplayName, Type: n.Type, Phase: n.Phase, Boundary: n.Boundary, TemplateName: n.TemplateName,
		TemplateScope: n.TemplateScope, Progress: n.Progress, Children: n.Children, Outbound: n.OutboundNodes, Parameters: n.Outputs.Parameters,
		Inputs: n.Inputs.Parameters, ExitCode: n.Outputs.ExitCode,
	}
	if n.TemplateRef != nil {
		out.Ref = *n.TemplateRef
	}
	if n.NodeFlag != nil {
		out.Hooked, out.Retried = n.NodeFlag.Hooked, n.NodeFlag.Retried
	}
	if n.Outputs.Result != nil {
		out.Result = *n.Outputs.Result
	}
	return out
}

func showOurs(n NodeStatus, names map[string]string) shown {
	out := shown{
		Name: n.Name, DisplayName: n.DisplayName, Type: n.Type, Phase: n.Phase, Boundary: names[n.BoundaryID], TemplateName: n.TemplateName,
		TemplateScope: n.TemplateScope, Progress: n.Progress,
	}
	if n.TemplateRef != nil {
		out.Ref = *n.TemplateRef
	}
	if n.NodeFlag != nil {
		out.Hooked, out.Retried = n.NodeFlag.Hooked, n.NodeFlag.Retried
	}
	for _, c := range n.Children {
		out.Children = append(out.Children, names[c])
	}
	for _, c := range n.OutboundNodes {
		out.Outbound = append(out.Outbound, names[c])
	}
	slices.Sort(out.Children)
	slices.Sort(out.Outbound)
	params := func(list []Parameter) map[string]string {
		var m map[string]string
		for _, p := range list {
			if m == nil {
				m = map[string]string{}
			}
			m[p.Name] = "<valueFrom>"
			if p.Value != nil {
				m[p.Name] = string(*p.Value)
			}
		}
		return m
	}
	if n.Inputs != nil {
		out.Inputs = params(n.Inputs.Parameters)
	}
	if n.Outputs != nil {
		out.Parameters = params(n.Outputs.Parameters)
		if n.Outputs.Result != nil {
			out.Result = *n.Outputs.Result
		}
		if n.Outputs.ExitCode != nil {
			out.ExitCode = *n.Outputs.ExitCode
		}
	}
	return out
}

// TestProjectCorpus runs the corpus on the engine with upstream's own results for every task, and compares each node of
// the projection with upstream's.
func TestProjectCorpus(t *testing.T) {
	root, entries := corpus(t)
	for _, e := range entries {
		if e.class == "rejected" || e.phase == "rejected" {
			continue
		}
		t.Run(e.file, func(t *testing.T) {
			p, peers := readPeer(t, root, e.file)
			if len(peers) == 0 {
				t.Skip("upstream has no nodes")
			}
			b, err := loadEntry(t, root, e)
			if err != nil {
				t.Fatal(err)
			}
			w := runPeer(t, b, peers)
			if got := fmt.Sprint(w.Status.Phase, " ", w.Status.Progress); got != p.Result+" "+p.Progress {
				t.Errorf("phase and progress %s, upstream has %s %s; message: %s", got, p.Result, p.Progress, w.Status.Message)
			}
			names := map[string]string{}
			for id, n := range w.Status.Nodes {
				names[id] = n.Name
			}
			ours := map[string]shown{}
			for _, n := range w.Status.Nodes {
				ours[n.Name] = showOurs(n, names)
			}
			theirs := map[string]shown{}
			for name, n := range peers {
				theirs[name] = showPeer(n)
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("nodes differ (-upstream +ours):\n%s", diff)
			}
		})
	}
}
