package kfp

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// decoder fills the spec's types from JSON values. Unlike encoding/json it notes every unknown field and every value of a
// wrong type with its path, and goes on.
type decoder struct{ problems *problems }

var valueType = reflect.TypeFor[Value]()

// decode fills to, a pointer, from v. A null leaves it as it is.
func (d *decoder) decode(path string, v any, to any) {
	d.fill(path, v, reflect.ValueOf(to).Elem())
}

func (d *decoder) fill(path string, v any, to reflect.Value) {
	if to.Type() == valueType {
		to.Set(reflect.ValueOf(Value{JSON: v}))
		return
	}
	if to.Kind() == reflect.Pointer && to.Type().Elem() == valueType {
		to.Set(reflect.ValueOf(&Value{JSON: v}))
		return
	}
	if v == nil {
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		p := reflect.New(to.Type().Elem())
		d.fill(path, v, p.Elem())
		to.Set(p)
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			d.unusable(path, "a mapping", v)
			return
		}
		d.fillStruct(path, m, to)
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			d.unusable(path, "a mapping", v)
			return
		}
		out := reflect.MakeMapWithSize(to.Type(), len(m))
		for _, k := range sortedKeys(m) {
			e := reflect.New(to.Type().Elem()).Elem()
			if e.Kind() == reflect.Pointer {
				// An entry without content is there all the same: "tasks: {a: }".
				e.Set(reflect.New(e.Type().Elem()))
				d.fill(join(path, k), m[k], e.Elem())
			} else {
				d.fill(join(path, k), m[k], e)
			}
			out.SetMapIndex(reflect.ValueOf(k), e)
		}
		to.Set(out)
	case reflect.Slice:
		l, ok := v.([]any)
		if !ok {
			d.unusable(path, "a list", v)
			return
		}
		out := reflect.MakeSlice(to.Type(), len(l), len(l))
		for i, e := range l {
			d.fill(path+"["+strconv.Itoa(i)+"]", e, out.Index(i))
		}
		to.Set(out)
	case reflect.Interface:
		to.Set(reflect.ValueOf(v))
	default:
		d.fillScalar(path, v, to)
	}
}

func (d *decoder) fillStruct(path string, m map[string]any, to reflect.Value) {
	t := to.Type()
	for _, k := range sortedKeys(m) {
		name := lowerCamel(k)
		found := false
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("json") == name {
				d.fill(join(path, k), m[k], to.Field(i))
				found = true
				break
			}
		}
		if !found {
			d.problems.add(join(path, k), "remove it, or check its spelling", "unknown field %q", k)
		}
	}
}

func (d *decoder) fillScalar(path string, v any, to reflect.Value) {
	switch to.Kind() {
	case reflect.String:
		if s, ok := v.(string); ok {
			to.SetString(s)
			return
		}
		d.wrong(path, "a text", v)
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			to.SetBool(b)
			return
		}
		d.wrong(path, "true or false", v)
	case reflect.Int64:
		if n, ok := wholeNumber(v); ok {
			to.SetInt(n)
			return
		}
		d.wrong(path, "a whole number", v)
	case reflect.Float64:
		if f, ok := number(v); ok {
			to.SetFloat(f)
			return
		}
		d.wrong(path, "a number", v)
	}
}

// unusable reports a value that much else may hang on, so that without it the rest cannot be judged.
func (d *decoder) unusable(path, want string, v any) {
	d.wrong(path, want, v)
	d.problems.broken = d.problems.broken || !strings.Contains(path, ".container.")
}

func (d *decoder) wrong(path, want string, v any) {
	d.problems.drop(path, "write "+want, "got %s where %s is needed", describe(v), want)
}

// number reads a JSON number, or a text that is one (protojson writes 64-bit integers as texts).
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

func wholeNumber(v any) (int64, bool) {
	if n, ok := v.(int64); ok {
		return n, true
	}
	if s, ok := v.(string); ok {
		n, err := strconv.ParseInt(s, 10, 64)
		return n, err == nil
	}
	f, ok := number(v)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// lowerCamel turns a_name_like_this into aNameLikeThis; other names stay.
func lowerCamel(s string) string {
	if !strings.Contains(s, "_") {
		return s
	}
	parts := strings.Split(s, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// describe names a JSON value for an error message.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if len(v) > 40 {
			v = v[:37] + "..."
		}
		return fmt.Sprintf("the text %q", v)
	case bool:
		return strconv.FormatBool(v)
	case int64, float64:
		return fmt.Sprintf("the number %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return fmt.Sprintf("a %T", v)
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
