package argoexpr

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/sluice-ml/sluice/internal/program"
)

// normalise turns what an expression gave into a JSON value: nil, bool, int64, float64, string, []any or
// map[string]any. A float without fraction becomes an int64.
func normalise(v any) (any, error) {
	switch t := v.(type) {
	case nil, bool, string, int64:
		return v, nil
	case int:
		return int64(t), nil
	}
	var w weight
	if err := w.add(v, 0); err != nil {
		return nil, err
	}
	return jsonValue(v)
}

func jsonValue(v any) (any, error) {
	switch t := v.(type) {
	case nil, bool, string, int64:
		return v, nil
	case int:
		return int64(t), nil
	case float64:
		return jsonNumber(t)
	case json.Number:
		if n, err := t.Int64(); err == nil {
			return n, nil
		}
		f, err := t.Float64()
		if err != nil {
			return nil, fmt.Errorf("%q is no number", t)
		}
		return jsonNumber(f)
	case time.Time:
		return t.Format(time.RFC3339Nano), nil
	case time.Duration:
		return int64(t), nil
	case json.RawMessage:
		// Texts that are known to be JSON go into JSON as they are.
		return t, nil
	case []byte:
		return string(t), nil
	case program.Artifact:
		return artifactMap(t), nil
	case []any:
		out := make([]any, len(t))
		for i, e := range t {
			var err error
			if out[i], err = jsonValue(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(t))
		for k, e := range t {
			var err error
			if out[k], err = jsonValue(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return reflected(reflect.ValueOf(v))
}

func jsonNumber(f float64) (any, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errors.New("a number is infinite or undefined, which JSON cannot say")
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}

// reflected handles the types that functions give besides the common ones.
func reflected(r reflect.Value) (any, error) {
	switch r.Kind() {
	case reflect.Bool:
		return r.Bool(), nil
	case reflect.String:
		return r.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if n := r.Uint(); n <= math.MaxInt64 {
			return int64(n), nil
		}
		return float64(r.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return jsonNumber(r.Float())
	case reflect.Slice, reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			var err error
			if out[i], err = jsonValue(r.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	case reflect.Map:
		out := make(map[string]any, r.Len())
		for it := r.MapRange(); it.Next(); {
			v, err := jsonValue(it.Value().Interface())
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(it.Key().Interface())] = v
		}
		return out, nil
	case reflect.Pointer:
		if r.IsNil() {
			return nil, nil
		}
		if t, ok := reflect.TypeAssert[*time.Location](r); ok {
			return t.String(), nil
		}
		if s, ok := reflect.TypeAssert[fmt.Stringer](r); ok {
			return s.String(), nil
		}
	case reflect.Func:
		return nil, errors.New("a function is no value: it has to be called")
	}
	return nil, fmt.Errorf("%s is no JSON value", r.Type())
}

// kindOf names the kind of a value for people.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case bool:
		return "a boolean"
	case time.Time:
		return "a time"
	case time.Duration:
		return "a duration"
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map:
		return "a map"
	default:
		if r.CanInt() || r.CanUint() || r.CanFloat() {
			return "a number"
		}
		return fmt.Sprintf("a %T", v)
	}
}
