package argo

import (
	"fmt"

	"github.com/sluice-ml/sluice/internal/program"
)

// dag compiles a DAG template.
func (c *compiler) dag(t *Template, in, key string) (*program.Graph, error) {
	g := &program.Graph{Targets: t.DAG.Target, FailFast: deref(t.FailFast), LastFailure: t.DAG.FailFast != nil && !*t.DAG.FailFast}
	names := map[string]int{}
	for i := range t.DAG.Tasks {
		names[t.DAG.Tasks[i].Name] = i
	}
	for i := range t.DAG.Tasks {
		task := &t.DAG.Tasks[i]
		call, err := c.call(&task.Invocation, task, in, key)
		if err != nil {
			return nil, fmt.Errorf("dag.tasks[%d]: %w", i, err)
		}
		if err := needs(t.DAG.Tasks, i, names, &call); err != nil {
			return nil, fmt.Errorf("dag.tasks[%d]: %w", i, err)
		}
		g.Calls = append(g.Calls, call)
	}
	return g, nil
}

// needs sets what a task waits for, from its depends or its list of dependencies.
func needs(tasks []DAGTask, self int, names map[string]int, call *program.Call) error {
	task := &tasks[self]
	if task.Depends == "" {
		return dependencies(tasks, task.Dependencies, names, call)
	}
	tree, err := parseDepends(task.Depends)
	if err != nil {
		return fmt.Errorf("depends: %w", err)
	}
	var found intSet
	call.Depends, err = tree.bind(func(name string) (int, []program.Result, bool) {
		n, ok := names[name]
		if !ok {
			return 0, nil, false
		}
		found.add(n)
		return n, goodResults(&tasks[n]), true
	})
	if err != nil {
		return fmt.Errorf("depends: %w", err)
	}
	call.Needs = found.list
	return nil
}

// dependencies sets the tasks of a list: each must have ended well.
func dependencies(tasks []DAGTask, list []string, names map[string]int, call *program.Call) error {
	all := &program.Depends{Op: program.And}
	var found intSet
	explicit := false
	for i, d := range list {
		n, ok := names[d]
		if !ok {
			return fmt.Errorf("dependencies[%d]: there is no task %q", i, d)
		}
		found.add(n)
		explicit = explicit || deref(tasks[n].ContinueOn) != ContinueOn{}
		all.Args = append(all.Args, anyOf(n, goodResults(&tasks[n])))
	}
	call.Needs = found.list
	if explicit {
		call.Depends = all
	}
	return nil
}

// goodResults are the results of a task after which a task goes on that only names it.
func goodResults(task *DAGTask) []program.Result {
	out := []program.Result{program.Succeeded, program.Skipped, program.Daemoned}
	if c := task.ContinueOn; c != nil && c.Error {
		out = append(out, program.Errored)
	}
	if c := task.ContinueOn; c != nil && c.Failed {
		out = append(out, program.Failed)
	}
	return out
}

// anyOf asks whether a call ended in one of some ways.
func anyOf(call int, results []program.Result) *program.Depends {
	out := &program.Depends{Op: program.Or}
	for _, r := range results {
		out.Args = append(out.Args, &program.Depends{Op: program.Is, Call: call, Result: r})
	}
	return out
}
