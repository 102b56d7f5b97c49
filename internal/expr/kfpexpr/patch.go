package kfpexpr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
)

// PatchMarker begins a text that is a pod patch: a JSON document written by internal/kfp for settings that depend on
// parameters. In it
//
//	{"$parameter": "x"}               is the value of the task's input x, with its type
//	{"$parameter": "x", "$list": true} in a list: x's elements where it is a list, x itself where it is none
//
// and whatever needs an input that has no value is left out: the field, the element of a list, and the mapping around a
// field that it cannot do without ({"$require": "x"} beside the fields).
const PatchMarker = "{{$.pod_patch}}"

func isPatch(src string) bool { return strings.HasPrefix(src, PatchMarker) }

// absent stands for a value that is to be left out.
type absent struct{}

// patch evaluates a pod patch to its JSON; the patch of nothing is an empty text.
func (l *language) patch(src string, env expr.Env) (string, error) {
	v, err := l.patchDocument(src, env)
	if err != nil || len(v) == 0 {
		return "", err
	}
	return compact(v), nil
}

// patchDocument evaluates a pod patch; what is left of nothing is an empty mapping.
func (l *language) patchDocument(src string, env expr.Env) (map[string]any, error) {
	var doc any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(src, PatchMarker)), &doc); err != nil {
		return nil, fmt.Errorf("pod patch: %w", err)
	}
	v, err := l.patchValue(doc, env)
	if err != nil {
		return nil, fmt.Errorf("pod patch: %w", err)
	}
	if m, ok := v.(map[string]any); ok {
		return m, nil
	}
	return map[string]any{}, nil
}

func (l *language) patchValue(v any, env expr.Env) (any, error) {
	switch v := v.(type) {
	case string:
		return l.replace(v, env)
	case []any:
		out := []any{}
		for _, e := range v {
			r, err := l.patchValue(e, env)
			if err != nil {
				return nil, err
			}
			if _, gone := r.(absent); gone {
				continue
			}
			if m, ok := e.(map[string]any); ok && m["$list"] == true {
				if list, ok := r.([]any); ok {
					out = append(out, list...)
					continue
				}
			}
			out = append(out, r)
		}
		if len(out) == 0 && len(v) > 0 {
			return absent{}, nil
		}
		return out, nil
	case map[string]any:
		return l.patchMapping(v, env)
	}
	return normalise(v), nil
}

func (l *language) patchMapping(m map[string]any, env expr.Env) (any, error) {
	if name, ok := m["$parameter"].(string); ok {
		v, presence := env.Lookup([]string{"inputs", "parameters", name})
		if presence != expr.Present || v == nil {
			return absent{}, nil
		}
		return structured(normalise(v)), nil
	}
	if name, ok := m["$require"].(string); ok && !present(env, name) {
		return absent{}, nil
	}
	out := make(map[string]any, len(m))
	for _, k := range sortedKeys(m) {
		if k == "$require" {
			continue
		}
		v, err := l.patchValue(m[k], env)
		if err != nil {
			return nil, err
		}
		if _, gone := v.(absent); !gone {
			out[k] = v
		}
	}
	if len(out) == 0 && len(m) > 0 {
		return absent{}, nil
	}
	return out, nil
}

// structured reads a text that holds a JSON list or mapping as what it holds.
func structured(v any) any {
	s, ok := v.(string)
	if !ok || !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return v
	}
	var doc any
	if json.Unmarshal([]byte(s), &doc) != nil {
		return v
	}
	return normalise(doc)
}
