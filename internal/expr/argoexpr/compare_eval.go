package argoexpr

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
)

// here is what paths of a filter begin at: the element (@) and the whole document ($).
type here struct{ element, root any }

// eval evaluates a comparison to a text, a number, a boolean or a list.
func (n *node) eval(at *here) (any, error) {
	switch n.op {
	case valueNode:
		return n.value, nil
	case pathNode:
		if n.element {
			return n.path.query(at.element, at.root)
		}
		return n.path.query(at.root, at.root)
	case listNode:
		list := make([]any, len(n.args))
		for i, a := range n.args {
			v, err := a.eval(at)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, nil
	}
	left, err := n.args[0].eval(at)
	if err != nil {
		return nil, err
	}
	switch n.op {
	case "!":
		b, err := boolean(left, "!")
		return !b, err
	case negative:
		f, err := numeric(left, "-")
		return -f, err
	case inverted:
		f, err := numeric(left, "~")
		return float64(^int64(f)), err
	case "&&", "||":
		b, err := boolean(left, n.op)
		if err != nil || b == (n.op == "||") {
			return b, err
		}
		right, err := n.args[1].eval(at)
		if err != nil {
			return nil, err
		}
		return boolean(right, n.op)
	case "??":
		if left != nil {
			return left, nil
		}
		return n.args[1].eval(at)
	case "?":
		b, err := boolean(left, "?")
		if err != nil {
			return nil, err
		}
		if b {
			return n.args[1].eval(at)
		}
		return n.args[2].eval(at)
	}
	right, err := n.args[1].eval(at)
	if err != nil {
		return nil, err
	}
	return apply(n.op, left, right)
}

// apply computes a binary operator.
func apply(op string, left, right any) (any, error) {
	switch op {
	case "==":
		return same(left, right), nil
	case "!=":
		return !same(left, right), nil
	case "<", "<=", ">", ">=":
		return order(op, left, right)
	case "=~", "!~":
		text := display(left)
		pattern := display(right)
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("%q is no regular expression: %w", shorten(pattern), err)
		}
		return re.MatchString(text) == (op == "=~"), nil
	case "in":
		list, ok := right.([]any)
		if !ok {
			list = []any{right}
		}
		for _, e := range list {
			if same(left, e) {
				return true, nil
			}
		}
		return false, nil
	}
	if op == "+" {
		_, l := left.(string)
		_, r := right.(string)
		if l || r {
			text := display(left) + display(right)
			return text, fits(len(text))
		}
	}
	a, err := numeric(left, op)
	if err != nil {
		return nil, err
	}
	b, err := numeric(right, op)
	if err != nil {
		return nil, err
	}
	return compute(op, a, b)
}

func compute(op string, a, b float64) (any, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "/":
		return a / b, nil
	case "%":
		return math.Mod(a, b), nil
	case "**":
		return math.Pow(a, b), nil
	case "&":
		return float64(int64(a) & int64(b)), nil
	case "|":
		return float64(int64(a) | int64(b)), nil
	case "^":
		return float64(int64(a) ^ int64(b)), nil
	case "<<":
		return float64(int64(a) << (uint64(b) & 63)), nil
	case ">>":
		return float64(int64(a) >> (uint64(b) & 63)), nil
	}
	return nil, fmt.Errorf("there is no operator %q", op)
}

// same is equality without conversions: 1 is 1.0, but not '1'.
func same(a, b any) bool {
	if x, ok := a.(float64); ok {
		y, ok := b.(float64)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func order(op string, left, right any) (bool, error) {
	var sign int
	switch a := left.(type) {
	case float64:
		b, ok := right.(float64)
		if !ok {
			return false, incomparable(op, left, right)
		}
		if math.IsNaN(a) || math.IsNaN(b) {
			return false, nil
		}
		sign = compare(a, b)
	case string:
		b, ok := right.(string)
		if !ok {
			return false, incomparable(op, left, right)
		}
		sign = compare(a, b)
	default:
		return false, incomparable(op, left, right)
	}
	switch op {
	case "<":
		return sign < 0, nil
	case "<=":
		return sign <= 0, nil
	case ">":
		return sign > 0, nil
	}
	return sign >= 0, nil
}

func compare[T float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func incomparable(op string, left, right any) error {
	return fmt.Errorf("cannot compute %s %s %s: both must be numbers or both texts", describe(left), op, describe(right))
}

func boolean(v any, op string) (bool, error) {
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("%s is neither true nor false and cannot be used with %s", describe(v), op)
	}
	return b, nil
}

func numeric(v any, op string) (float64, error) {
	f, ok := v.(float64)
	if !ok {
		return 0, fmt.Errorf("%s is no number and cannot be used with %s (hint: put texts with special characters in quotes)", describe(v), op)
	}
	return f, nil
}

// display is a value as a text.
func display(v any) string {
	switch t := v.(type) {
	case string:
		return t
	case float64:
		return formatFloat(t)
	case bool:
		return strconv.FormatBool(t)
	}
	return fmt.Sprint(v)
}

func describe(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(shorten(s))
	}
	return shorten(display(v))
}
