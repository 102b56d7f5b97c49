package argo

import (
	"fmt"

	"github.com/sluice-ml/sluice/internal/program"
)

// steps compiles a steps template: the calls of all rounds, and which of them make up each round.
func (c *compiler) steps(t *Template, in, key string) (*program.Graph, error) {
	g := &program.Graph{Stages: [][]int{}, FailFast: deref(t.FailFast)}
	for i, round := range t.Steps {
		stage := []int{}
		for j := range round {
			call, err := c.call(&round[j].Invocation, round[j], in, key)
			if err != nil {
				return nil, fmt.Errorf("steps[%d][%d]: %w", i, j, err)
			}
			stage = append(stage, len(g.Calls))
			g.Calls = append(g.Calls, call)
		}
		g.Stages = append(g.Stages, stage)
	}
	return g, nil
}
