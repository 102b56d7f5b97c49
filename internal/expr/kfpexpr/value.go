package kfpexpr

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// text writes a value as KFP does in a command line: texts as they are, numbers without exponent, the rest as JSON.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return compact(v)
}

// compact writes JSON without HTML escapes, keys sorted.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// normalise brings a JSON value into the program's form: whole numbers are int64.
func normalise(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return normalise(f)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
			return int64(v)
		}
		return v
	case float32:
		return normalise(float64(v))
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
		return float64(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normalise(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = normalise(e)
		}
		return out
	}
	return v
}

// Parameter brings a value into a declared type, or says why it cannot be of it. A text takes anything, written as JSON. A
// number, a boolean, a list or a structure must be one already, or a text that is one: what a task writes to the file of an
// output parameter is a text. Null stays null: whether it may be is for the caller to know.
func (l *language) Parameter(value any, typ program.Type) (any, error) {
	value = normalise(value)
	if value == nil || typ == program.Any {
		return value, nil
	}
	if typ == program.String {
		return text(value), nil
	}
	if s, ok := value.(string); ok {
		parsed, err := parseText(s, typ)
		if err != nil {
			return nil, fmt.Errorf("%s is no %s", describe(value), typ)
		}
		value = parsed
	}
	var ok bool
	switch typ {
	case program.Integer:
		_, ok = value.(int64)
	case program.Double:
		_, isInt := value.(int64)
		_, isFloat := value.(float64)
		ok = isInt || isFloat
	case program.Boolean:
		_, ok = value.(bool)
	case program.List:
		_, ok = value.([]any)
	case program.Struct, program.FinalStatus, program.Config:
		_, ok = value.(map[string]any)
	default:
		return nil, fmt.Errorf("unknown parameter type %q", typ)
	}
	if !ok {
		return nil, fmt.Errorf("%s is no %s", describe(value), typ)
	}
	return value, nil
}

// parseText reads a text as KFP reads the file of an output parameter.
func parseText(s string, typ program.Type) (any, error) {
	s = strings.TrimSpace(s)
	switch typ {
	case program.Boolean:
		return strconv.ParseBool(s)
	case program.Integer, program.Double:
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, fmt.Errorf("%q is no number", s)
		}
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
		return normalise(f), nil
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return normalise(v), nil
}

// describe names a value for a message.
func describe(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the text %q", short(v))
	case bool, int64, float64:
		return text(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a structure"
	}
	return fmt.Sprintf("a %T", v)
}

func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
