package argo

import (
	"fmt"

	"github.com/sluice-ml/sluice/internal/program"
)

// dag compiles a DAG template.
func (c *compiler) dag(t *Template, in, key string) (*program.Graph, error) {
	g := &program.Graph{Targets: t.DAG.Target, FailFast: t.DAG.FailFast == nil || *t.DAG.FailFast}
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
		if err := needs(task, names, &call); err != nil {
			return nil, fmt.Errorf("dag.tasks[%d]: %w", i, err)
		}
		g.Calls = append(g.Calls, call)
	}
	return g, nil
}

// needs sets what a task waits for, from its depends or its list of dependencies.
func needs(task *DAGTask, names map[string]int, call *program.Call) error {
	if task.Depends == "" {
		for i, d := range task.Dependencies {
			n, ok := names[d]
			if !ok {
				return fmt.Errorf("dependencies[%d]: there is no task %q", i, d)
			}
			call.Needs = appendNew(call.Needs, n)
		}
		return nil
	}
	tree, err := parseDepends(task.Depends)
	if err != nil {
		return fmt.Errorf("depends: %w", err)
	}
	call.Depends, err = tree.bind(func(name string) (int, bool) {
		n, ok := names[name]
		if ok {
			call.Needs = appendNew(call.Needs, n)
		}
		return n, ok
	})
	if err != nil {
		return fmt.Errorf("depends: %w", err)
	}
	return nil
}

func appendNew(list []int, n int) []int {
	for _, v := range list {
		if v == n {
			return list
		}
	}
	return append(list, n)
}
