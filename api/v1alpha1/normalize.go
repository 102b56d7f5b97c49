package v1alpha1

import (
	"encoding/json"
	"math"
	"reflect"
)

// normalize walks a decoded message and turns every json.Number in an untyped place into int64 or float64.
func normalize(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			normalize(v.Elem())
		}
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			normalize(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			normalize(v.Index(i))
		}
	case reflect.Map:
		switch m := v.Interface().(type) {
		case map[string]any:
			for key, value := range m {
				m[key] = NormalizeValue(value)
			}
		case map[string]string, map[string]int64, map[string]json.RawMessage:
		default:
			for _, key := range v.MapKeys() {
				item := reflect.New(v.Type().Elem()).Elem()
				item.Set(v.MapIndex(key))
				normalize(item)
				v.SetMapIndex(key, item)
			}
		}
	}
}

// NormalizeValue gives a JSON value in the form that Sluice keeps: nil, bool, int64, float64, string, []any and
// map[string]any, where a whole number that fits is an int64. Lists and maps are changed in place.
func NormalizeValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return NormalizeValue(f)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return NormalizeValue(float64(v))
	case []any:
		for i := range v {
			v[i] = NormalizeValue(v[i])
		}
		return v
	case map[string]any:
		for key := range v {
			v[key] = NormalizeValue(v[key])
		}
		return v
	}
	return v
}
