package argoexpr

import (
	"fmt"
	"reflect"
)

// What one evaluation may use. Expressions come from manifests, so they must neither fill the memory nor run for long;
// whoever computes more than this does it in a task.
const (
	// maxText bounds one text, maxMemory all results of functions together, in bytes.
	maxText   = 4 << 20
	maxMemory = 64 << 20
	// maxSteps bounds the rounds of nested loops, and other work that is counted in the same coin.
	maxSteps = 1_000_000
	// maxNodesOfValue and maxDepth bound lists and maps.
	maxNodesOfValue = 2_000_000
	maxDepth        = 500
)

// fits says that a text of n bytes is too long.
func fits(n int) error {
	if n > maxText || n < 0 {
		return fmt.Errorf("the result would be a text of %d bytes, and %d are allowed", n, maxText)
	}
	return nil
}

// charge counts what a function gave.
func (ev *evaluation) charge(v any) (any, error) {
	size := 0
	switch t := v.(type) {
	case nil, bool, int, int64, float64:
		return v, nil
	case string:
		if err := fits(len(t)); err != nil {
			return nil, err
		}
		size = len(t)
	default:
		switch r := reflect.ValueOf(v); r.Kind() {
		case reflect.Slice, reflect.Array:
			size = 24 * r.Len()
		case reflect.Map:
			size = 64 * r.Len()
		}
	}
	if ev.used += size; ev.used > maxMemory {
		return nil, fmt.Errorf("the expression uses more than %d bytes of memory", maxMemory)
	}
	return v, nil
}

// weighArguments refuses arguments that are too large to be worked on: values may hold the same list many times over,
// which costs nothing until something writes them out.
func (ev *evaluation) weighArguments(name string, args []any) error {
	var w weight
	for _, a := range args {
		if err := w.add(a, 0); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return ev.step(w.nodes / 16)
}

// weight is how much a value is when it is written out.
type weight struct{ bytes, nodes int }

func (w *weight) add(v any, depth int) error {
	w.nodes++
	if w.nodes > maxNodesOfValue || w.bytes > maxMemory {
		return fmt.Errorf("a value is too large when written out: more than %d elements or %d bytes", maxNodesOfValue, maxMemory)
	}
	if depth > maxDepth {
		return fmt.Errorf("a value is nested deeper than %d levels", maxDepth)
	}
	switch t := v.(type) {
	case nil, bool, int, int64, float64:
		return nil
	case string:
		w.bytes += len(t)
		return nil
	case []any:
		for _, e := range t {
			if err := w.add(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for k, e := range t {
			w.bytes += len(k)
			if err := w.add(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array:
		if k := r.Type().Elem().Kind(); k >= reflect.Bool && k <= reflect.Complex128 {
			w.nodes += r.Len()
			return nil
		}
		for i := range r.Len() {
			if err := w.add(r.Index(i).Interface(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := r.MapRange(); it.Next(); {
			if err := w.add(it.Key().Interface(), depth+1); err != nil {
				return err
			}
			if err := w.add(it.Value().Interface(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// growth says how long the text of a function that multiplies can become, from its arguments. Wrong arguments give 0:
// the function itself complains.
var growth = map[string]func(args []any) int{
	"repeat":                           func(a []any) int { return times(length(a, 0), number(a, 1)) },
	"replace":                          func(a []any) int { return times(length(a, 0)+1, length(a, 2)+1) },
	"join":                             func(a []any) int { return times(count(a, 0), length(a, 1)) },
	"sprig.repeat":                     func(a []any) int { return times(length(a, 1), number(a, 0)) },
	"sprig.replace":                    func(a []any) int { return times(length(a, 2)+1, length(a, 1)+1) },
	"sprig.join":                       func(a []any) int { return times(count(a, 1), length(a, 0)) },
	"sprig.indent":                     func(a []any) int { return times(length(a, 1)+1, number(a, 0)+1) },
	"sprig.nindent":                    func(a []any) int { return times(length(a, 1)+1, number(a, 0)+1) },
	"sprig.wrapWith":                   func(a []any) int { return times(length(a, 2)+1, length(a, 1)+1) },
	"sprig.regexReplaceAll":            func(a []any) int { return times(length(a, 1)+1, length(a, 2)+1) },
	"sprig.mustRegexReplaceAll":        func(a []any) int { return times(length(a, 1)+1, length(a, 2)+1) },
	"sprig.regexReplaceAllLiteral":     func(a []any) int { return times(length(a, 1)+1, length(a, 2)+1) },
	"sprig.mustRegexReplaceAllLiteral": func(a []any) int { return times(length(a, 1)+1, length(a, 2)+1) },
	"sprig.randAlpha":                  func(a []any) int { return number(a, 0) },
	"sprig.randAlphaNum":               func(a []any) int { return number(a, 0) },
	"sprig.randAscii":                  func(a []any) int { return number(a, 0) },
	"sprig.randNumeric":                func(a []any) int { return number(a, 0) },
	"sprig.randBytes":                  func(a []any) int { return times(number(a, 0), 2) },
	"sprig.until":                      func(a []any) int { return times(distance(0, number(a, 0)), 8) },
	"sprig.untilStep": func(a []any) int {
		return times(distance(number(a, 0), number(a, 1))/max(abs(number(a, 2)), 1), 8)
	},
	"sprig.seq": sequenceLength,
}

// multiplied are replacements where the pattern may match rarely: they are allowed more than [maxText] on paper, since
// what they really give is charged.
const multiplied = 16 * maxText

// checkGrowth refuses a call whose result could be too long.
func checkGrowth(name string, args []any) error {
	f, ok := growth[name]
	if !ok {
		return nil
	}
	n := f(args)
	switch name {
	case "replace", "sprig.replace", "sprig.wrapWith", "sprig.regexReplaceAll", "sprig.mustRegexReplaceAll",
		"sprig.regexReplaceAllLiteral", "sprig.mustRegexReplaceAllLiteral", "sprig.indent", "sprig.nindent":
		if n <= multiplied {
			return nil
		}
	}
	return fits(n)
}

func sequenceLength(a []any) int {
	from, to, step := 1, 0, 1
	switch len(a) {
	case 1:
		to = number(a, 0)
	case 2:
		from, to = number(a, 0), number(a, 1)
	case 3:
		from, step, to = number(a, 0), number(a, 1), number(a, 2)
	}
	return times(distance(from, to)/max(abs(step), 1), 12)
}

// times multiplies without overflow; what is too much stays too much.
func times(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > multiplied || b > multiplied {
		return multiplied + 1
	}
	return a * b
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

// distance is |a-b|, or too much.
func distance(a, b int) int {
	const far = 1 << 40
	if abs(a) > far || abs(b) > far || a == minInt || b == minInt {
		return far
	}
	return abs(a - b)
}

const minInt = -1 << 63

func length(args []any, i int) int {
	if i < len(args) {
		if s, ok := args[i].(string); ok {
			return len(s)
		}
	}
	return 0
}

// number is an argument that says how much; too much where it does not fit.
func number(args []any, i int) int {
	if i >= len(args) {
		return 0
	}
	switch r := reflect.ValueOf(args[i]); {
	case r.CanInt():
		return int(r.Int())
	case r.CanFloat():
		if f := r.Float(); f > 1<<40 || f < -1<<40 {
			return 1 << 40
		}
		return int(r.Float())
	}
	return 0
}

func count(args []any, i int) int {
	if i < len(args) {
		if r := reflect.ValueOf(args[i]); r.Kind() == reflect.Slice || r.Kind() == reflect.Array {
			return r.Len()
		}
	}
	return 0
}
