package argoexpr

import (
	"errors"
	"fmt"
	"strings"

	exprlang "github.com/expr-lang/expr"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/sluice-ml/sluice/internal/expr"
)

// expression is a compiled expr-lang source. Its variables are not in an environment that is built for each
// evaluation: every chain of constant names, such as steps['a'].outputs.parameters.x, is compiled to a call that looks
// that one path up when it is reached. So an evaluation reads what it needs and nothing else.
type expression struct {
	source    string
	program   *vm.Program
	variables []variable
}

// variable is a path that an expression reads. Guarded is set where the expression says itself what is to happen
// without a value: left of ??, before ?.
type variable struct {
	path    []string
	guarded bool
}

// maxNodes bounds the size of an expression's syntax tree.
const maxNodes = 5000

func compileExpression(src string) (*expression, error) {
	if len(src) > maxExpressionSource {
		return nil, fmt.Errorf("an expression of %d bytes is longer than the limit of %d", len(src), maxExpressionSource)
	}
	if strings.TrimSpace(src) == "" {
		return nil, errors.New("an expression is empty")
	}
	shape, err := inspect(src)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", shorten(src), err)
	}
	rw := &rewriter{shape: shape}
	program, err := exprlang.Compile(src,
		exprlang.Env(prototype),
		exprlang.MaxNodes(maxNodes),
		exprlang.Patch(rw),
	)
	if rw.err != nil {
		return nil, fmt.Errorf("expression %q: %w", shorten(src), rw.err)
	}
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", shorten(src), err)
	}
	return &expression{source: src, program: program, variables: rw.variables}, nil
}

// parse gives the syntax tree of a source as the compiler will see it.
func parse(src string) (*parser.Tree, error) {
	c := conf.CreateNew()
	c.MaxNodes = maxNodes
	return parser.ParseWithConfig(src, c)
}

func checkSyntax(src string) error {
	_, err := parse(src)
	return err
}

// run evaluates, and gives the result as a JSON value together with what was noticed on the way.
func (e *expression) run(env expr.Env) (any, *evaluation, error) {
	ev := &evaluation{env: env, expression: e}
	result, err := exprlang.Run(e.program, ev.functions())
	if err != nil {
		return nil, ev, e.failure(err, ev)
	}
	result, err = normalise(result)
	if err != nil {
		return nil, ev, fmt.Errorf("expression %q: its result: %w", shorten(e.source), err)
	}
	return result, ev, nil
}

// failure says why an evaluation failed: for want of a value, where one was missing on the way.
func (e *expression) failure(err error, ev *evaluation) error {
	if unresolved, ok := errors.AsType[*expr.UnresolvedError](err); ok {
		return unresolved
	}
	if ev.missing != nil {
		return ev.missing
	}
	return fmt.Errorf("expression %q: %w", shorten(e.source), err)
}

// value is the expression's value. Null stands for no value where something that it reads was skipped.
func (e *expression) value(env expr.Env) (any, error) {
	v, ev, err := e.run(env)
	if err != nil {
		return nil, err
	}
	if v == nil && ev.missing != nil {
		return nil, ev.missing
	}
	return v, nil
}

// text is the value inside a text. source is the tag with its braces.
func (e *expression) text(source string, env expr.Env) (string, error) {
	v, ev, err := e.run(env)
	if err != nil {
		return "", err
	}
	if v == nil {
		tag := strings.TrimSuffix(strings.TrimPrefix(source, "{{"), "}}")
		return "", &expr.UnresolvedError{Tag: tag, Skipped: ev.missing != nil && ev.missing.Skipped}
	}
	return formatValue(v)
}

// boolean is the value of a condition. Argo's texts "true" and "false" count, since its tags only give texts.
func (e *expression) boolean(env expr.Env) (bool, error) {
	v, ev, err := e.run(env)
	if err != nil {
		return false, err
	}
	switch t := v.(type) {
	case bool:
		return t, nil
	case string:
		if t == "true" || t == "false" {
			return t == "true", nil
		}
	case nil:
		if ev.missing != nil {
			return false, ev.missing
		}
	}
	text, _ := formatValue(v)
	return false, fmt.Errorf("expression %q: a condition must be true or false, but the result is %s", shorten(e.source), shorten(text))
}
