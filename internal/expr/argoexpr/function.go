package argoexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/expr-lang/expr/builtin"
)

// functions are what can be called by a plain name besides expr-lang's own.
var functions = map[string]bool{"asInt": true, "asFloat": true, "toJson": true, "jsonpath": true}

// ownFunctions are functions of ours, and those of expr-lang that need a clock or are replaced to bound their cost.
var ownFunctions = map[string]func(ev *evaluation, args []any) (any, error){
	"asInt":    func(_ *evaluation, args []any) (any, error) { return convert(builtin.Int, args) },
	"asFloat":  func(_ *evaluation, args []any) (any, error) { return convert(builtin.Float, args) },
	"int":      func(_ *evaluation, args []any) (any, error) { return convert(builtin.Int, args) },
	"float":    func(_ *evaluation, args []any) (any, error) { return convert(builtin.Float, args) },
	"toJson":   func(_ *evaluation, args []any) (any, error) { return toJSON(args, "") },
	"toJSON":   func(_ *evaluation, args []any) (any, error) { return toJSON(args, "  ") },
	"jsonpath": func(_ *evaluation, args []any) (any, error) { return queryJSON(args) },
	"now": func(ev *evaluation, args []any) (any, error) {
		if len(args) != 0 {
			return nil, errors.New("takes no argument")
		}
		return ev.env.Now, nil
	},
	"uniq": uniqueElements,
}

// convert makes a number of a text or another number. What was skipped is no number.
func convert(f func(any) any, args []any) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("takes one argument, not %d", len(args))
	}
	switch v := args[0].(type) {
	case nil:
		return nil, errors.New("cannot convert null")
	case string:
		n, err := safely(func() any { return f(v) })
		if err != nil {
			return nil, fmt.Errorf("cannot convert %q", shorten(v))
		}
		return n, nil
	}
	n, err := safely(func() any { return f(args[0]) })
	if err != nil {
		return nil, fmt.Errorf("cannot convert %s", kindOf(args[0]))
	}
	return n, nil
}

// safely calls a function of a library that panics on wrong arguments.
func safely(f func() any) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return f(), nil
}

func toJSON(args []any, indent string) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("takes one argument, not %d", len(args))
	}
	v, err := normalise(args[0])
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(v)
	if indent != "" && err == nil {
		data, err = json.MarshalIndent(v, "", indent)
	}
	if err != nil {
		return nil, err
	}
	return string(data), nil
}

// queryJSON is jsonpath(text, path).
func queryJSON(args []any) (any, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("takes a JSON text and a path, not %d arguments", len(args))
	}
	path, ok := args[1].(string)
	if !ok {
		return nil, fmt.Errorf("the path must be a text, not %s", kindOf(args[1]))
	}
	value := args[0]
	if text, ok := value.(string); ok {
		value = nil
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			return nil, fmt.Errorf("the first argument is no JSON: %w", err)
		}
	}
	return jsonPath(path, value)
}

// uniqueElements is uniq without comparing each element with all others where they are texts, numbers or booleans.
func uniqueElements(ev *evaluation, args []any) (any, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("takes one argument, not %d", len(args))
	}
	list := reflect.ValueOf(args[0])
	if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
		return nil, fmt.Errorf("cannot take %s", kindOf(args[0]))
	}
	seen := make(map[any]bool, list.Len())
	out := []any{}
	for i := range list.Len() {
		e := list.Index(i).Interface()
		if e != nil && !reflect.TypeOf(e).Comparable() {
			if err := ev.step(list.Len() * list.Len() / 64); err != nil {
				return nil, err
			}
			return callBuiltin(builtin.Builtins[builtin.Index["uniq"]], args)
		}
		if !seen[e] {
			seen[e] = true
			out = append(out, e)
		}
	}
	return out, nil
}

// reflectCall calls a Go function with the arguments of an expression, whose numbers fit any type of number.
func reflectCall(f reflect.Value, args []any) (any, error) {
	t := f.Type()
	if t.IsVariadic() {
		if len(args) < t.NumIn()-1 {
			return nil, fmt.Errorf("takes at least %d arguments, not %d", t.NumIn()-1, len(args))
		}
	} else if len(args) != t.NumIn() {
		return nil, fmt.Errorf("takes %d arguments, not %d", t.NumIn(), len(args))
	}
	in := make([]reflect.Value, len(args))
	for i, a := range args {
		want := t.In(min(i, t.NumIn()-1))
		if t.IsVariadic() && i >= t.NumIn()-1 {
			want = want.Elem()
		}
		v, ok := argument(a, want)
		if !ok {
			return nil, fmt.Errorf("argument %d cannot be %s", i+1, kindOf(a))
		}
		in[i] = v
	}
	out := f.Call(in)
	if n := len(out); n > 1 {
		if err, ok := reflect.TypeAssert[error](out[n-1]); ok && err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out[0].Interface(), nil
}

// argument fits a value to a type.
func argument(a any, want reflect.Type) (reflect.Value, bool) {
	if a == nil {
		switch want.Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice, reflect.Pointer:
			return reflect.Zero(want), true
		}
		return reflect.Value{}, false
	}
	v := reflect.ValueOf(a)
	if v.Type().AssignableTo(want) {
		return v, true
	}
	if isNumber(v.Kind()) && isNumber(want.Kind()) {
		return v.Convert(want), true
	}
	switch {
	case want.Kind() == reflect.Slice && v.Kind() == reflect.Slice:
		out := reflect.MakeSlice(want, v.Len(), v.Len())
		for i := range v.Len() {
			e, ok := argument(v.Index(i).Interface(), want.Elem())
			if !ok {
				return reflect.Value{}, false
			}
			out.Index(i).Set(e)
		}
		return out, true
	case want.Kind() == reflect.Map && v.Kind() == reflect.Map && v.Type().Key() == want.Key():
		out := reflect.MakeMapWithSize(want, v.Len())
		for it := v.MapRange(); it.Next(); {
			e, ok := argument(it.Value().Interface(), want.Elem())
			if !ok {
				return reflect.Value{}, false
			}
			out.SetMapIndex(it.Key(), e)
		}
		return out, true
	}
	return reflect.Value{}, false
}

func isNumber(k reflect.Kind) bool {
	return k >= reflect.Int && k <= reflect.Float64 && k != reflect.Uintptr
}
