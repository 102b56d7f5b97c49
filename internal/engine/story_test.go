package engine_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
)

var update = flag.Bool("update", false, "write the stories' outcomes anew")

// A story is a txtar archive in testdata/stories: a manifest, the hooks that selected it, events, and what follows from
// each. The words of its events:
//
//	start [name=value ...]               the run begins, with parameters
//	running PATH                         the task's command has started
//	ready PATH                           the daemon is ready
//	done PATH [name=value ...]           the task has succeeded, with output parameters ("result" is its result)
//	fail PATH [CODE]                     its command has failed
//	error PATH [MESSAGE]                 something around it broke
//	answer PATH HOOK POINT {JSON}        the hook has answered
//	broken PATH HOOK POINT MESSAGE       the hook has failed for good
//	acquired PATH                        the node ("run" for the whole) holds its locks
//	unlockable PATH MESSAGE              its locks can never be held
//	pass DURATION                        time passes; timers that are due fire
//	resume [PATH] [name=value ...]       a person resumes
//	suspend | stop | terminate | retry   a person acts
//	crash                                the state is saved and loaded; what is outstanding follows
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/stories/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { tell(t, file) })
	}
}

func tell(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	story := txtar.Parse(data)
	parts := map[string][]byte{}
	for _, f := range story.Files {
		parts[f.Name] = f.Data
	}
	bundle, err := argo.Load(argo.Source{Name: "workflow.yaml", Data: parts["workflow.yaml"]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := bundle.Compile(argo.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var hooks []engine.Hook
	if h := parts["hooks.json"]; len(h) > 0 {
		if err := json.Unmarshal(h, &hooks); err != nil {
			t.Fatalf("hooks.json: %v", err)
		}
	}
	n := &narrator{t: t, world: newWorld(t, p), hooks: hooks}
	for line := range strings.Lines(string(parts["events"])) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			n.event(line)
		}
	}
	want := string(parts["out"])
	if *update {
		for i := range story.Files {
			if story.Files[i].Name == "out" {
				story.Files[i].Data = n.out.Bytes()
				n.wrote = true
			}
		}
		if !n.wrote {
			story.Files = append(story.Files, txtar.File{Name: "out", Data: n.out.Bytes()})
		}
		if err := os.WriteFile(file, txtar.Format(story), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, n.out.String()); d != "" {
		t.Errorf("(-want +got):\n%s\nRun with -update when the new outcome is right.", d)
	}
}

// narrator tells events to an engine and writes down what follows.
type narrator struct {
	t     *testing.T
	world *world
	hooks []engine.Hook
	out   bytes.Buffer
	wrote bool
}

func (n *narrator) event(line string) {
	fmt.Fprintf(&n.out, "> %s\n", line)
	words := strings.Fields(line)
	w := n.world
	w.pending = nil
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "start":
		w.now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		n.step(engine.Event{Start: &engine.Start{Run: engine.Run{
			Name: "wf", UID: "uid-1", ArtifactRoot: "/artifacts", Created: w.now, Hooks: n.hooks, Parameters: values(words[1:]),
		}}})
	case "running", "ready":
		n.step(engine.Event{Running: &engine.Running{Node: n.id(arg(1)), Ready: words[0] == "ready"}})
	case "done":
		out := values(words[2:])
		r := engine.Result{Phase: engine.SucceededPhase, ExitCode: new(int)}
		if v, ok := out["result"]; ok {
			s := v.(string)
			r.Outputs.Result = &s
			delete(out, "result")
		}
		r.Outputs.Parameters = out
		n.step(engine.Event{Finished: &engine.Finished{Node: n.id(arg(1)), Result: r}})
	case "fail":
		code := 1
		if c, err := strconv.Atoi(arg(2)); err == nil {
			code = c
		}
		r := engine.Result{Phase: engine.FailedPhase, ExitCode: &code, Message: fmt.Sprintf("main: Error (exit code %d)", code)}
		if s, ok := strings.CutPrefix(arg(2), "result="); ok {
			r.Outputs.Result = &s
		}
		n.step(engine.Event{Finished: &engine.Finished{Node: n.id(arg(1)), Result: r}})
	case "error":
		n.step(engine.Event{Finished: &engine.Finished{Node: n.id(arg(1)), Result: engine.Result{
			Phase: engine.ErrorPhase, Message: strings.Join(words[2:], " "),
		}}})
	case "answer", "broken":
		a := engine.Answered{Node: n.id(arg(1)), Hook: arg(2), Point: engine.Point(arg(3))}
		rest := strings.Join(words[4:], " ")
		if words[0] == "broken" {
			a.Failure = rest
		} else if err := json.Unmarshal([]byte(rest), &a.Answer); err != nil {
			n.t.Fatalf("%s: %v", line, err)
		}
		n.step(engine.Event{Answered: &a})
	case "acquired":
		id := engine.NodeID(0)
		if arg(1) != "run" {
			id = n.id(arg(1))
		}
		n.step(engine.Event{Acquired: &engine.Acquired{Node: id}})
	case "unlockable":
		n.step(engine.Event{Acquired: &engine.Acquired{Node: n.id(arg(1)), Failure: strings.Join(words[2:], " ")}})
	case "pass":
		d, err := time.ParseDuration(arg(1))
		if err != nil {
			n.t.Fatalf("%s: %v", line, err)
		}
		n.pass(w.now.Add(d))
	case "resume":
		r := engine.Resume{}
		rest := words[1:]
		if len(rest) > 0 && !strings.Contains(rest[0], "=") {
			r.Nodes, rest = []engine.NodeID{n.id(rest[0])}, rest[1:]
		}
		r.Outputs = values(rest)
		n.step(engine.Event{Resume: &r})
	case "suspend":
		n.step(engine.Event{Suspend: &engine.Suspend{}})
	case "stop", "terminate":
		n.step(engine.Event{Shutdown: &engine.Shutdown{Terminate: words[0] == "terminate"}})
	case "crash":
		data, err := json.Marshal(w.s)
		if err != nil {
			n.t.Fatal(err)
		}
		if w.s, err = w.m.Load(data); err != nil {
			n.t.Fatal(err)
		}
		for _, c := range w.m.Outstanding(w.s) {
			fmt.Fprintf(&n.out, "  ! %s\n", n.command(c))
		}
	case "retry":
		n.step(engine.Event{RetryRun: &engine.RetryRun{}})
	default:
		n.t.Fatalf("%q is no word of a story", words[0])
	}
}

// pass fires the timers that are due, in order of their time.
func (n *narrator) pass(until time.Time) {
	w := n.world
	for {
		var due *engine.Timer
		for t, at := range w.timers {
			if !at.After(until) && (due == nil || at.Before(w.timers[*due])) {
				due = &t
			}
		}
		if due == nil {
			break
		}
		t := *due
		w.now = w.timers[t]
		delete(w.timers, t)
		n.step(engine.Event{Fired: &engine.Fired{Timer: t}})
	}
	w.now = until
}

func (n *narrator) id(path string) engine.NodeID {
	if node := n.world.node(path); node != nil {
		return node.ID
	}
	n.t.Fatalf("there is no node %s in\n%s", path, n.world.picture())
	return 0
}

// step applies an event and writes the commands, then the nodes that changed.
func (n *narrator) step(e engine.Event) {
	w := n.world
	for _, c := range w.step(e) {
		fmt.Fprintf(&n.out, "  ! %s\n", n.command(c))
	}
	for _, id := range w.s.TakeChanged() {
		if id == 0 {
			fmt.Fprintf(&n.out, "  = run %s%s\n", w.s.Phase, remark(w.s.Message))
			continue
		}
		node := w.s.Node(id)
		fmt.Fprintf(&n.out, "  = %s %s %s", node.Path, node.Kind, node.Phase)
		if node.Stage != engine.StageDone {
			fmt.Fprintf(&n.out, "/%s", node.Stage)
		}
		if node.Dropped {
			fmt.Fprint(&n.out, " dropped")
		}
		if node.Reused {
			fmt.Fprint(&n.out, " reused")
		}
		fmt.Fprint(&n.out, show(" in", node.Inputs.Parameters), show(" out", node.Outputs.Parameters))
		if node.Outputs.Result != nil {
			fmt.Fprintf(&n.out, " result=%q", *node.Outputs.Result)
		}
		fmt.Fprintln(&n.out, remark(node.Message))
	}
}

func (n *narrator) command(c engine.Command) string {
	path := func(id engine.NodeID) string {
		if node := n.world.s.Node(id); node != nil {
			return node.Path
		}
		return "run"
	}
	switch c := c.(type) {
	case engine.StartTask:
		s := "start " + c.Path
		for _, k := range c.Body.Containers {
			s += fmt.Sprintf(" %q", append(append([]string(nil), k.Command...), k.Args...))
		}
		for _, name := range slices.Sorted(maps.Keys(c.Inputs.Artifacts)) {
			for _, a := range c.Inputs.Artifacts[name] {
				s += fmt.Sprintf(" with %s of %s", name, a.URI)
			}
		}
		if src := c.Body.Source; src != nil {
			s += fmt.Sprintf(" over %s", src.Location)
		}
		return s
	case engine.StopTask:
		s := fmt.Sprintf("stop %s: %s", c.Path, c.Message)
		if c.Force {
			s += ", at once"
		}
		return s
	case engine.AskHook:
		s := fmt.Sprintf("ask %s %s of %s (%s)", c.Hook, c.Point, c.Path, c.Scope)
		if c.Result != nil {
			s += " about " + string(c.Result.Phase)
		}
		if c.Final {
			s += ", final"
		}
		if len(c.State) > 0 {
			s += " state=" + string(c.State)
		}
		if c.Notify {
			s += ", not waited for"
		}
		return s
	case engine.CancelHook:
		return fmt.Sprintf("cancel %s %s of %s", c.Hook, c.Point, path(c.Node))
	case engine.SetTimer:
		return fmt.Sprintf("timer %s of %s at %s", c.Timer.Kind, path(c.Timer.Node), c.At.Format(time.TimeOnly))
	case engine.CancelTimer:
		return fmt.Sprintf("cancel timer %s of %s", c.Timer.Kind, path(c.Timer.Node))
	case engine.AcquireLocks:
		return fmt.Sprintf("acquire for %s: %s", c.Path, lockList(c))
	case engine.ReleaseLocks:
		return "release of " + c.Path
	}
	return fmt.Sprintf("%T", c)
}

func lockList(c engine.AcquireLocks) string {
	var names []string
	for _, l := range c.Locks {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

func show(label string, m map[string]any) string {
	if len(m) == 0 {
		return ""
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return label + "=" + string(data)
}

func remark(s string) string {
	if s == "" {
		return ""
	}
	return "  # " + s
}

func values(words []string) map[string]any {
	m := map[string]any{}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			m[k] = v
		}
	}
	return m
}
