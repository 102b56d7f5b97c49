package argoexpr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// The forms of conditions.
const (
	formWhen       = "when"
	formExpression = "expression"
)

// Condition decides a condition. The form "when" is a comparison after its tags are substituted; an empty one is true.
// The form "expression" is an expression with a boolean result, with or without {{= }} around it.
func (l *Language) Condition(c program.Condition, env expr.Env) (bool, error) {
	switch c.Form {
	case formWhen:
		if c.Source == "" {
			return true, nil
		}
		text, err := l.Text(c.Source, env)
		if err != nil {
			return false, err
		}
		return decide(text)
	case formExpression:
		source, err := l.expressionSource(c.Source, env)
		if err != nil {
			return false, err
		}
		e, err := l.expression(source)
		if err != nil {
			return false, err
		}
		return e.boolean(env)
	}
	return false, fmt.Errorf("there is no form of conditions %q", c.Form)
}

// decide evaluates a comparison to a boolean.
func decide(source string) (bool, error) {
	n, err := parseComparison(source, false)
	if err != nil {
		return false, fmt.Errorf("invalid 'when' expression '%s': %w", shorten(source), err)
	}
	v, err := n.eval(nil)
	if err != nil {
		return false, fmt.Errorf("failed to evaluate 'when' expression '%s': %w", shorten(source), err)
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("expected boolean evaluation for '%s', got %s", shorten(source), describe(v))
	}
	return b, nil
}

// CheckCondition says what is wrong with a condition before anything runs. Of "when" only the tags can be checked where
// it has any, since it is parsed after they are substituted.
func CheckCondition(c program.Condition) error {
	switch c.Form {
	case formWhen:
		if strings.Contains(c.Source, "{{") {
			return CheckText(c.Source)
		}
		if c.Source == "" {
			return nil
		}
		_, err := decide(c.Source)
		return err
	case formExpression:
		return CheckExpression(c.Source)
	}
	return fmt.Errorf("there is no form of conditions %q", c.Form)
}

// CheckExpression says what is wrong with an expression: its syntax, and functions that do not exist. An expression with
// tags in it is checked as a text, since it is parsed after they are substituted.
func CheckExpression(src string) error {
	if inner, ok := wholeExpression(src); ok {
		src = inner
	} else if strings.Contains(src, "{{") {
		return CheckText(src)
	}
	_, err := compileExpression(src)
	return err
}

// CheckText says what is wrong with the expression tags of a text.
func CheckText(src string) error {
	if !strings.Contains(src, "{{=") {
		return nil
	}
	var errs []error
	_, err := compileText(src, func(source string) (*expression, error) {
		e, err := compileExpression(source)
		return e, err
	})
	if err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
