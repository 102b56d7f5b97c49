package argoexpr

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/sluice-ml/sluice/internal/expr"
)

// evaluation is one run of an expression.
type evaluation struct {
	env        expr.Env
	expression *expression

	// missing is the first variable without a value that was read.
	missing *expr.UnresolvedError
	// used is how much memory the results of functions took together; steps counts rounds of nested loops.
	used, steps int
	random      *rand.Rand
}

// functions gives what the rewritten expression calls.
func (ev *evaluation) functions() map[string]any {
	return map[string]any{
		lookupName: ev.lookup,
		callName:   ev.call,
		methodName: ev.method,
		addName:    ev.add,
		inName:     ev.in,
		tickName:   ev.tick,
		equalName:  ev.equal,
	}
}

// lookup reads variable i.
func (ev *evaluation) lookup(i int) (any, error) {
	v := &ev.expression.variables[i]
	value, presence, err := variableValue(ev.env.Scope, v.path)
	if err != nil {
		return nil, err
	}
	switch presence {
	case expr.Present:
		return value, nil
	case expr.Skipped:
		ev.miss(v.path, true)
		return nil, nil
	}
	if v.guarded {
		return nil, nil
	}
	ev.miss(v.path, false)
	if strict(v.path) {
		return nil, &expr.UnresolvedError{Tag: joined(v.path)}
	}
	return nil, nil
}

func (ev *evaluation) miss(path []string, skipped bool) {
	if ev.missing == nil {
		ev.missing = &expr.UnresolvedError{Tag: joined(path), Skipped: skipped}
	}
}

// call calls a function by its name.
func (ev *evaluation) call(name string, args ...any) (any, error) {
	if err := ev.weighArguments(name, args); err != nil {
		return nil, err
	}
	if err := checkGrowth(name, args); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	result, err := ev.dispatch(name, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ev.charge(result)
}

func (ev *evaluation) dispatch(name string, args []any) (any, error) {
	if f, ok := ownFunctions[name]; ok {
		return f(ev, args)
	}
	if len(name) > len("sprig.") && name[:len("sprig.")] == "sprig." {
		return ev.sprig(name[len("sprig."):], args)
	}
	f, ok := builtin.Index[name]
	if !ok {
		return nil, fmt.Errorf("there is no such function")
	}
	return callBuiltin(builtin.Builtins[f], args)
}

// callBuiltin calls a function of expr-lang, which may panic where its arguments are of a wrong type; the virtual
// machine turns that into an error.
func callBuiltin(f *builtin.Function, args []any) (any, error) {
	if f.Validate != nil {
		types := make([]reflect.Type, len(args))
		for i, a := range args {
			if types[i] = reflect.TypeOf(a); a == nil {
				types[i] = reflect.TypeFor[any]()
			}
		}
		if _, err := f.Validate(types); err != nil {
			return nil, err
		}
	}
	if f.Validate == nil && len(f.Types) > 0 {
		if err := checkArguments(f.Types, args); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Safe != nil:
		v, _, err := f.Safe(args...)
		return v, err
	case f.Fast != nil:
		if len(args) != 1 {
			return nil, fmt.Errorf("takes one argument, not %d", len(args))
		}
		return f.Fast(args[0]), nil
	}
	return f.Func(args...)
}

// checkArguments compares arguments with the signatures that a function has.
func checkArguments(types []reflect.Type, args []any) error {
	for _, t := range types {
		if t.Kind() != reflect.Func || len(args) != t.NumIn() && !t.IsVariadic() {
			continue
		}
		fits := true
		for i, a := range args {
			in := t.In(min(i, t.NumIn()-1))
			if t.IsVariadic() && i >= t.NumIn()-1 {
				in = in.Elem()
			}
			if at := reflect.TypeOf(a); at == nil || !at.AssignableTo(in) {
				fits = false
			}
		}
		if fits {
			return nil
		}
	}
	kinds := make([]string, len(args))
	for i, a := range args {
		kinds[i] = kindOf(a)
	}
	return fmt.Errorf("cannot take (%s)", joinWith(kinds, ", "))
}

// method calls a method of a time or a duration; nothing else has any.
func (ev *evaluation) method(object any, name string, args ...any) (any, error) {
	switch object.(type) {
	case time.Time, time.Duration, *time.Location, time.Month, time.Weekday:
	case nil:
		if ev.missing != nil {
			return nil, ev.missing
		}
		return nil, fmt.Errorf("cannot call %s of null", name)
	default:
		return nil, fmt.Errorf("%s has no method %s", kindOf(object), name)
	}
	m := reflect.ValueOf(object).MethodByName(name)
	if !m.IsValid() {
		return nil, fmt.Errorf("%s has no method %s", kindOf(object), name)
	}
	result, err := reflectCall(m, args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ev.charge(result)
}

// add is the operator +, which joins texts.
func (ev *evaluation) add(a, b any) (any, error) {
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			if err := fits(len(x) + len(y)); err != nil {
				return nil, err
			}
			return ev.charge(x + y)
		}
	}
	if err := ev.operands("+", a, b); err != nil {
		return nil, err
	}
	return runtime.Add(a, b), nil
}

// operands gives a readable error for operands that runtime.Add would refuse with Go's names for their types.
func (ev *evaluation) operands(op string, a, b any) error {
	if addable(a, b) {
		return nil
	}
	if (a == nil || b == nil) && ev.missing != nil {
		return ev.missing
	}
	return fmt.Errorf("cannot compute %s %s %s: convert with string(), int() or float() first", kindOf(a), op, kindOf(b))
}

func addable(a, b any) bool {
	number := func(v any) bool {
		k := reflect.ValueOf(v).Kind()
		return k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr
	}
	switch a.(type) {
	case time.Time:
		_, ok := b.(time.Duration)
		return ok
	case time.Duration:
		switch b.(type) {
		case time.Duration, time.Time:
			return true
		}
		return false
	}
	if _, ok := b.(time.Duration); ok {
		return false
	}
	return number(a) && number(b)
}

// in is the operator "in". Its cost is counted, since it walks over a list.
func (ev *evaluation) in(needle, array any) (any, error) {
	if v := reflect.ValueOf(array); v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		if err := ev.step(v.Len() / 16); err != nil {
			return nil, err
		}
	}
	return runtime.In(needle, array), nil
}

// equal is == inside a loop, where comparing lists again and again is counted.
func (ev *evaluation) equal(a, b any) (bool, error) {
	if v := reflect.ValueOf(a); v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
		var w weight
		if err := w.add(a, 0); err != nil {
			return false, err
		}
		if err := ev.step(w.nodes / 16); err != nil {
			return false, err
		}
	}
	return runtime.Equal(a, b), nil
}

// tick counts a round of a loop.
func (ev *evaluation) tick(v any) (any, error) { return v, ev.step(1) }

func (ev *evaluation) step(n int) error {
	if ev.steps += n; ev.steps > maxSteps {
		return fmt.Errorf("more than %d rounds of nested loops: such work belongs in a task", maxSteps)
	}
	return nil
}
