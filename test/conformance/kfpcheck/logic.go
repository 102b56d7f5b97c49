package kfpcheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// logic walks the pipeline's own DAGs beside the run's tasks and checks that each ended as its place in them demands.
type logic struct {
	pipeline *Pipeline
	children map[string][]Task // by the parent's id
	anyBad   bool              // some task of the run failed: what had not started then is not started any more
	found    []string
}

// checkLogic compares the states of a run's tasks with the pipeline.
func checkLogic(p *Pipeline, r *Run) []string {
	if p.Root.DAG == nil {
		return nil
	}
	l := &logic{pipeline: p, children: map[string][]Task{}}
	for _, t := range r.Details.Tasks {
		l.children[t.ParentID] = append(l.children[t.ParentID], t)
		l.anyBad = l.anyBad || t.State == "FAILED"
	}
	l.dag("root", r.State, p.Root, l.rootTasks(r))
	return l.found
}

// rootTasks are the tasks of the root DAG: those that hang on the one task that stands for the root.
func (l *logic) rootTasks(r *Run) []Task {
	top := l.children[""]
	if len(top) != 1 || top[0].Type != "ROOT" {
		l.add("root", "want one task without a parent, which stands for the pipeline, got %d", len(top))
		return top
	}
	if top[0].State != r.State {
		l.add("root", "is %s, but the run is %s", top[0].State, r.State)
	}
	return l.children[top[0].ID]
}

func (l *logic) add(where, format string, args ...any) {
	l.found = append(l.found, where+": "+fmt.Sprintf(format, args...))
}

// dag checks one run of a DAG component: its tasks against each other, and its own state against theirs.
func (l *logic) dag(where, state string, c Component, tasks []Task) {
	byKey := map[string]Task{}
	for _, t := range tasks {
		if _, twice := byKey[t.key()]; twice {
			l.add(where, "two tasks are called %s", t.key())
		}
		byKey[t.key()] = t
	}
	for key := range byKey {
		if _, ok := c.DAG.Tasks[key]; !ok {
			l.add(where, "has a task %s that is not in the pipeline", key)
		}
	}
	states := map[string]string{}
	for key := range c.DAG.Tasks {
		states[key] = byKey[key].State // "" for one that is not shown
	}
	for key, spec := range c.DAG.Tasks {
		l.task(where+"."+key, spec, states)
		l.condition(where+"."+key, spec, byKey[key])
		if t, ok := byKey[key]; ok {
			l.inside(where+"."+key, t, spec)
		}
	}
	l.branches(where, c, states)
	l.result(where, state, c, states)
}

func good(state string) bool { return state == "SUCCEEDED" }

// task checks a task's state against those before it.
func (l *logic) task(where string, spec TaskSpec, states map[string]string) {
	state := states[where[strings.LastIndex(where, ".")+1:]]
	ran := state == "SUCCEEDED" || state == "FAILED"
	var bad []string
	for name := range spec.Upstream() {
		if !good(states[name]) {
			bad = append(bad, name+" "+orAbsent(states[name]))
		}
	}
	slices.Sort(bad)
	switch {
	case spec.Always():
		if !ran && spec.Trigger.Condition == "" && state != "CANCELED" {
			l.add(where, "is %s, but must run whatever became of those before it", orAbsent(state))
		}
	case len(bad) > 0:
		if ran {
			l.add(where, "is %s, but must not run after %s", state, strings.Join(bad, ", "))
		}
	case spec.Trigger.Condition == "" && !ran && !l.anyBad:
		l.add(where, "is %s, but nothing kept it from running", orAbsent(state))
	}
}

// branches checks that of the branches of an if at most one ran, and one where there is an else.
func (l *logic) branches(where string, c Component, states map[string]string) {
	if !strings.HasPrefix(where[strings.LastIndex(where, ".")+1:], "condition-branches-") {
		return
	}
	var ran []string
	conditions := 0
	otherwise := false
	for key, spec := range c.DAG.Tasks {
		if spec.Trigger.Condition == "" {
			continue
		}
		conditions++
		// The SDK writes an else as the conjunction of all negations.
		otherwise = otherwise || strings.HasPrefix(spec.Trigger.Condition, "!") && strings.Count(spec.Trigger.Condition, "!(") == len(c.DAG.Tasks)-1
		if states[key] == "SUCCEEDED" || states[key] == "FAILED" {
			ran = append(ran, key)
		}
	}
	slices.Sort(ran)
	if len(ran) > 1 {
		l.add(where, "more than one branch ran: %v", ran)
	}
	if len(ran) == 0 && otherwise && conditions > 1 && !l.anyBad {
		l.add(where, "no branch ran although there is an else")
	}
}

// result checks a DAG's state against those of its tasks.
func (l *logic) result(where, state string, c Component, states map[string]string) {
	var failed, unforgiven []string
	for key, s := range states {
		if s != "FAILED" {
			continue
		}
		failed = append(failed, key)
		forgiven := false
		for _, spec := range c.DAG.Tasks {
			forgiven = forgiven || spec.Always() && spec.Upstream()[key]
		}
		if !forgiven {
			unforgiven = append(unforgiven, key)
		}
	}
	slices.Sort(unforgiven)
	switch state {
	case "SUCCEEDED":
		if len(unforgiven) > 0 {
			l.add(where, "is SUCCEEDED although %s FAILED", strings.Join(unforgiven, ", "))
		}
	case "FAILED":
		if len(failed) == 0 {
			l.add(where, "is FAILED although none of its tasks is")
		}
	}
}

// inside looks into a task that is a DAG or a loop.
func (l *logic) inside(where string, t Task, spec TaskSpec) {
	below := l.children[t.ID]
	if t.State == "SKIPPED" {
		l.allSkipped(where, below)
		return
	}
	c, ok := l.pipeline.Components[spec.Component.Name]
	if !ok {
		return
	}
	if !spec.Loop() {
		if c.DAG != nil {
			l.dag(where, t.State, c, below)
		}
		return
	}
	if n, known := spec.items(); known && n != len(below) && t.State == "SUCCEEDED" {
		l.add(where, "has %d iterations, want %d", len(below), n)
	}
	bad := 0
	for i, iteration := range below {
		if iteration.Type != "LOOP_ITERATION" {
			l.add(where, "has %s in it, a %s where iterations belong", iteration.key(), iteration.Type)
		}
		if iteration.State == "FAILED" {
			bad++
		}
		if c.DAG != nil {
			l.dag(fmt.Sprintf("%s[%d].%s", where, i, spec.Info.Name), iteration.State, c, l.children[iteration.ID])
		}
	}
	if t.State == "SUCCEEDED" && bad > 0 || t.State == "FAILED" && bad == 0 {
		l.add(where, "is %s with %d failed iterations", t.State, bad)
	}
}

func (l *logic) allSkipped(where string, tasks []Task) {
	for _, t := range tasks {
		if t.State != "SKIPPED" && t.State != "CANCELED" {
			l.add(where, "is SKIPPED, but %s in it is %s", t.key(), t.State)
		}
		l.allSkipped(where, l.children[t.ID])
	}
}

// items is the number of a loop's items where the pipeline has them literally.
func (t TaskSpec) items() (int, bool) {
	if t.Iterator == nil || t.Iterator.Items.Raw == "" {
		return 0, false
	}
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(t.Iterator.Items.Raw), &items); err != nil {
		return 0, false
	}
	return len(items), true
}

func orAbsent(state string) string {
	if state == "" {
		return "not there"
	}
	return state
}
