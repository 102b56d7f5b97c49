package runner

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// lockedTasks is a run of n tasks under way, each of which holds a lock, inside a graph that holds one, and what is
// outstanding of it.
func lockedTasks(t testing.TB, n int) (*engine.State, []engine.Command) {
	t.Helper()
	g := &program.Template{Key: "local/main", Name: "main", Graph: &program.Graph{}, Locks: []program.Lock{{Name: "all"}}}
	for i := range n {
		g.Graph.Calls = append(g.Graph.Calls, program.Call{Name: "t" + strconv.Itoa(i), Template: program.TemplateRef{Scope: "local", Name: "task"}})
	}
	leaf := &program.Template{
		Key: "local/task", Name: "task", Locks: []program.Lock{{Name: "m", Semaphore: true}},
		Task: &program.Body{Kind: program.Containers, Containers: []program.Container{{Name: "main"}}},
	}
	p := &program.Program{
		Language: "argo", Name: "test", Templates: map[string]*program.Template{g.Key: g, leaf.Key: leaf},
		Entry: program.Call{Template: program.TemplateRef{Scope: "local", Name: "main"}},
	}
	m, err := engine.New(p, argoexpr.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := engine.NewState()
	todo := []engine.Event{{Start: &engine.Start{Run: engine.Run{Name: "run", UID: "uid", ArtifactRoot: "/artifacts"}}}}
	for len(todo) > 0 {
		e := todo[0]
		todo = todo[1:]
		e.Time = time.Unix(1e9, 0).UTC()
		commands, err := m.Step(s, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			if lock, ok := c.(engine.AcquireLocks); ok {
				todo = append(todo, engine.Event{Acquired: &engine.Acquired{Node: lock.Node}})
			}
		}
	}
	return s, m.Outstanding(s)
}

func starts(commands []engine.Command) []engine.StartTask {
	var out []engine.StartTask
	for _, c := range commands {
		if start, ok := c.(engine.StartTask); ok {
			out = append(out, start)
		}
	}
	return out
}

func TestRegaining(t *testing.T) {
	s, commands := lockedTasks(t, 3)
	r := newRegaining()
	r.note(s, commands)
	carry := func(list []engine.StartTask) (begun []string) {
		for _, c := range list {
			if !r.hold(s, c) {
				begun = append(begun, c.Path)
			}
		}
		return begun
	}
	node := map[string]engine.NodeID{}
	for n := range s.Nodes() {
		node[n.Path] = n.ID
	}
	if begun := carry(starts(commands)); begun != nil {
		t.Fatalf("started without their locks: %v", begun)
	}
	if !r.drop(node["run.t2"]) || r.drop(node["run.t2"]) {
		t.Error("a start that is kept back can be taken back once")
	}
	for _, c := range []struct {
		path string
		want []string
	}{
		{"run.t0", nil},                // its graph's is missing
		{"run", []string{"run.t0"}},    // t1's own is missing
		{"run.t1", []string{"run.t1"}}, //
		{"run.t1", nil},                // once
		{"run.t2", nil},                // it was taken back
	} {
		if d := cmp.Diff(c.want, carry(r.regained(node[c.path]))); d != "" {
			t.Errorf("with the locks of %s: %s", c.path, d)
		}
	}
	if len(r.lost)+len(r.held)+len(r.behind) > 0 {
		t.Errorf("something is left over: %+v", r)
	}
}

// BenchmarkRegain is the resume of a run of n tasks that hold a lock each: their starts are kept back, and go out one by one.
func BenchmarkRegain(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, commands := lockedTasks(b, n)
			todo := starts(commands)
			for b.Loop() {
				r := newRegaining()
				r.note(s, commands)
				for _, c := range todo {
					if !r.hold(s, c) {
						b.Fatal("it was not kept back")
					}
				}
				begun := 0
				for _, c := range commands {
					lock, ok := c.(engine.AcquireLocks)
					if !ok {
						continue
					}
					for _, start := range r.regained(lock.Node) {
						if !r.hold(s, start) {
							begun++
						}
					}
				}
				if begun != n {
					b.Fatalf("%d starts", begun)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/task")
			b.ReportMetric(0, "ns/op")
		})
	}
}
