package kfpcheck

import (
	"sync"

	"cel.dev/cel-go/cel"
)

// environment is plain CEL over the inputs of a task. It is made here anew: the program under test has its own.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("inputs", cel.MapType(cel.StringType, cel.DynType)))
})

// holds evaluates a trigger condition with a task's inputs. It does not know where the inputs do not tell.
func holds(condition string, given map[string]any) (value, known bool) {
	env, err := environment()
	if err != nil {
		return false, false
	}
	ast, issues := env.Compile(condition)
	if issues.Err() != nil {
		return false, false
	}
	program, err := env.Program(ast)
	if err != nil {
		return false, false
	}
	if given == nil {
		given = map[string]any{}
	}
	result, _, err := program.Eval(map[string]any{"inputs": map[string]any{"parameter_values": given}})
	if err != nil {
		return false, false
	}
	value, known = result.Value().(bool)
	return value, known
}

// condition checks that a task ran only where its condition holds, and was skipped for it only where it does not.
func (l *logic) condition(where string, spec TaskSpec, t Task) {
	if spec.Trigger.Condition == "" {
		return
	}
	value, known := holds(spec.Trigger.Condition, t.Given.Parameters)
	if !known {
		return
	}
	ran := t.State == "SUCCEEDED" || t.State == "FAILED"
	switch {
	case ran && !value:
		l.add(where, "is %s, but its condition is false: %s", t.State, spec.Trigger.Condition)
	case t.State == "SKIPPED" && value && !l.anyBad && !l.anySkipped(t, spec):
		l.add(where, "is SKIPPED, but its condition is true: %s", spec.Trigger.Condition)
	}
}

// anySkipped says whether something that the task waits for did not succeed, which is a reason to skip it, too.
func (l *logic) anySkipped(t Task, spec TaskSpec) bool {
	upstream := spec.Upstream()
	for _, sibling := range l.children[t.ParentID] {
		if upstream[sibling.key()] && !good(sibling.State) {
			return true
		}
	}
	return false
}
