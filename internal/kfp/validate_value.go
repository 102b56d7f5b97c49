package kfp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// mismatch says why a value is not of a parameter type; empty where it is. Numbers and texts are told apart strictly.
func mismatch(v any, typ string) string {
	ok := true
	switch typ {
	case "STRING":
		_, ok = v.(string)
	case "NUMBER_INTEGER":
		_, ok = v.(int64)
	case "NUMBER_DOUBLE":
		_, isInt := v.(int64)
		_, isFloat := v.(float64)
		ok = isInt || isFloat
	case "BOOLEAN":
		_, ok = v.(bool)
	case "LIST":
		_, ok = v.([]any)
	case "STRUCT", "TASK_FINAL_STATUS", "TASK_CONFIG":
		_, ok = v.(map[string]any)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s is no %s", describe(v), typ)
}

// allowed says whether a value is one of the literals; without literals every value is.
func allowed(v any, literals []Value) bool {
	for _, l := range literals {
		if reflect.DeepEqual(l.JSON, v) {
			return true
		}
	}
	return len(literals) == 0
}

func literalList(literals []Value) string {
	parts := make([]string, len(literals))
	for i, l := range literals {
		parts[i] = brief(l.JSON)
	}
	return strings.Join(parts, ", ")
}

// brief writes a value for a message.
func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return describe(v)
	}
	if len(b) > 60 {
		return string(b[:57]) + "..."
	}
	return string(b)
}

// asJSON brings a value from outside into the form that values have here: whole numbers are int64.
func asJSON(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return parseJSON(string(b))
}

// parseJSON reads one JSON value.
func parseJSON(s string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return normalJSON(v), nil
}

func normalJSON(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return normal(f)
	case []any:
		for i := range v {
			v[i] = normalJSON(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalJSON(v[k])
		}
	}
	return v
}
