package hook

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Limits of match conditions. None of them is time: the engine asks, and the same facts must always get the same answer,
// on a busy machine and at a replay too.
//
// The cost is CEL's own measure; a condition over a task's facts needs a few hundred. It counts what a loop does, but
// takes any value for a small one; so no value may have more than maxConditionParts parts, counted in depth (lists that
// share their parts are walked once for each place), or more text than ten bytes a unit of maxConditionSize.
const (
	maxConditionBytes = 4096
	// maxConditionNest bounds what stands in what: to check types takes the third power of it, a minute for 200.
	maxConditionNest  = 40
	maxConditionCost  = 100_000
	maxConditionParts = 20_000
	maxConditionDepth = 64
	maxConditionSize  = 400_000
	maxPatternSize    = 500 // instructions of a regular expression
	maxPrograms       = 1024
)

// Conditions evaluates match conditions: CEL over "task" (name, path, template, kind, attempt, labels, annotations,
// inputs.parameters) and "workflow" (name, namespace, uid, labels, annotations, parameters). It keeps compiled programs
// and is safe for concurrent use. The zero value is ready.
type Conditions struct {
	mu       sync.Mutex
	programs map[string]cel.Program
}

// Match says whether all conditions hold for the facts; it is an engine.Matcher. To read a label or parameter that is
// not there is an error, as in Kubernetes: has(...) and "in" ask first.
func (c *Conditions) Match(conditions []string, facts map[string]any) (bool, error) {
	for _, source := range conditions {
		program, err := c.program(source)
		if err != nil {
			return false, fmt.Errorf("condition %q: %w", clip(source, 80), err)
		}
		ok, err := evaluate(program, facts)
		if err != nil {
			return false, fmt.Errorf("condition %q: %w", clip(source, 80), err)
		}
		if !ok {
			return false, nil
		}
	}
	return true, nil
}

// CheckCondition says what is wrong with a condition's text, before anything is asked of it.
func CheckCondition(source string) error {
	_, err := compile(source)
	return err
}

func (c *Conditions) program(source string) (cel.Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, ok := c.programs[source]; ok {
		return p, nil
	}
	p, err := compile(source)
	if err != nil {
		return nil, err
	}
	if c.programs == nil || len(c.programs) >= maxPrograms {
		c.programs = map[string]cel.Program{}
	}
	c.programs[source] = p
	return p, nil
}

// environment is what conditions are compiled in. To make one takes milliseconds, and it never changes.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("task", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("workflow", cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true),
		ext.Strings(),
		cel.RegexProgramSizeLimit(maxPatternSize),
		cel.ParserRecursionLimit(maxConditionNest),
	)
})

func compile(source string) (cel.Program, error) {
	switch {
	case strings.TrimSpace(source) == "":
		return nil, errors.New("is empty")
	case len(source) > maxConditionBytes:
		return nil, fmt.Errorf("has %d bytes, more than the %d that are allowed", len(source), maxConditionBytes)
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		return nil, issuesError(issues)
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("must give true or false, not %s", t)
	}
	if name := unbounded(ast); name != "" {
		return nil, fmt.Errorf("calls %s, which conditions cannot: what it makes has no bound", name)
	}
	return env.Program(ast,
		cel.CostLimit(maxConditionCost), cel.CostTracking(depthCost{}),
		cel.MemoryLimit(maxConditionSize), cel.MemoryTracking(types.MemoryTrackerSampleInterval(1), types.MemoryTrackerSizeCalculator(sizes)),
	)
}

// unbounded names a call in a condition whose result may be as large as the product of what it takes, and is made before
// anything can measure it; "" if there is none.
func unbounded(ast *cel.Ast) (name string) {
	celast.PostOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind {
			return
		}
		switch f := e.AsCall().FunctionName(); f {
		case "format", "join", "replace":
			name = f
		}
	}))
	return name
}

// sizes measures a value with all that is in it.
var sizes = types.NewSizeCalculator(
	types.SizeCalculatorMaxDepth(maxConditionDepth), types.SizeCalculatorMaxTraversal(maxConditionParts),
)

// depthCost makes a comparison cost what it walks over: CEL's own measure looks at the outermost list or map only.
type depthCost struct{}

// CallCost gives the cost of comparisons; nil leaves all else to CEL.
func (depthCost) CallCost(_, overload string, args []ref.Val, _ ref.Val) *uint64 {
	switch overload {
	case overloads.Equals, overloads.NotEquals, overloads.InList:
	default:
		return nil
	}
	cost := uint64(1)
	for _, a := range args {
		cost += uint64(sizes.AggregateSize(a))
	}
	return &cost
}

// issuesError says in one line what is wrong with a source, and where.
func issuesError(issues *cel.Issues) error {
	var texts []string
	for _, e := range issues.Errors() {
		texts = append(texts, fmt.Sprintf("line %d, character %d: %s", e.Location.Line(), e.Location.Column()+1, clip(e.Message, 200)))
		if len(texts) == 5 {
			break
		}
	}
	return errors.New(strings.Join(texts, "; "))
}

func evaluate(program cel.Program, facts map[string]any) (ok bool, err error) {
	defer func() {
		// Conditions come from users, and an evaluator that gives up on one must not take the workflow with it.
		if fault := recover(); fault != nil {
			err = fmt.Errorf("cannot be evaluated: %v", fault)
		}
	}()
	value, _, err := program.Eval(facts)
	if err != nil {
		return false, err
	}
	result, isBool := value.Value().(bool)
	if !isBool {
		return false, fmt.Errorf("must give true or false, not %v", clip(fmt.Sprint(value.Value()), 40))
	}
	return result, nil
}

// clip cuts a text to about n bytes and takes line breaks and other control characters out, for messages.
func clip(text string, n int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
