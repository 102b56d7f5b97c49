// Package kfpexpr evaluates the texts of compiled Kubeflow pipelines: placeholders ("{{$.inputs.parameters['x']}}"), the
// structures IfPresent and Concat, CEL conditions and selectors, and KFP's typed parameters and artifact locations.
//
// # Placeholders
//
// A placeholder is "{{$" followed by steps, ".name" or "['name']" with single, doubled or double quotes, and "}}". All are
// replaced in one pass: a value that looks like a placeholder is not looked into. Besides KFP's own there are
//
//	{{$.hooks['h']['k']}}  {{$.tasks['t'].hooks['h']['k']}}   what Pre hooks answered
//	{{$.inputs.artifacts['x'].json}} .key .type .metadata['k']  an artifact's description
//
// and, written only by internal/kfp where one input of a task refers to another ("f-strings" of the SDK):
//
//	{{$.scope['tasks']['a']['outputs']['parameters']['x']}}   a path in the caller's scope, taken literally
//	{{$.select['EXPR'].…}}    an expression over what follows; EXPR is query-escaped
//	{{$.const['JSON']}}       a constant, query-escaped
//	{{$.final_status['t']}}   how a task ended, as PipelineTaskFinalStatus
//	{{$.call_uid['t']}}       an identifier of the call t of this graph
//	{{$.optional['x']}}       the input x, nothing where it has no value
//	{{$.claim_name}}          the name of the volume claim that a task makes
//
// # Expressions
//
// An expression ([Language.Value]) is a JSON document whose texts may hold placeholders. Where the whole document is one
// placeholder its value keeps its type.
//
// # Conditions
//
// A condition of the form "cel" is CEL over the inputs of the call that it decides about: the scope's inputs.* must be the
// call's own, resolved arguments, not those of the graph around it.
package kfpexpr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// language implements [expr.Language]. Its only state is the cache of compiled CEL programs.
type language struct{ cel *celCache }

// New gives the language of compiled Kubeflow pipelines.
func New() expr.Language { return &language{cel: newCELCache()} }

// Text replaces the placeholders in src. A structure (IfPresent, Concat, a pod patch) gives its text; one that gives
// several texts joins them with spaces, as a shell would show them.
func (l *language) Text(src string, env expr.Env) (string, error) {
	if isPatch(src) {
		return l.patch(src, env)
	}
	if s, ok := parseStructure(src); ok {
		parts, err := l.expand(s, env, 0)
		return strings.Join(parts, " "), err
	}
	return l.replace(src, env)
}

// Args is Text for a command line; an IfPresent becomes as many arguments as it has, or none.
func (l *language) Args(src []string, env expr.Env) ([]string, error) {
	out := make([]string, 0, len(src))
	for i, arg := range src {
		if s, ok := parseStructure(arg); ok {
			parts, err := l.expand(s, env, 0)
			if err != nil {
				return nil, fmt.Errorf("argument %d: %w", i, err)
			}
			out = append(out, parts...)
			continue
		}
		text, err := l.replace(arg, env)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		out = append(out, text)
	}
	return out, nil
}

// Value evaluates a JSON document with placeholders.
func (l *language) Value(src string, env expr.Env) (any, error) {
	if isPatch(src) {
		return l.patchDocument(src, env)
	}
	dec := json.NewDecoder(strings.NewReader(src))
	dec.UseNumber()
	var doc any
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("expression %q is no JSON: %w", short(src), err)
	}
	if text, ok := doc.(string); ok {
		if p, whole := wholePlaceholder(text); whole {
			v, known, err := l.resolve(p, env)
			if err != nil || known {
				return v, err
			}
		}
	}
	return l.template(doc, env)
}

// template replaces placeholders in all texts of a JSON value, keys included.
func (l *language) template(doc any, env expr.Env) (any, error) {
	switch doc := doc.(type) {
	case string:
		return l.replace(doc, env)
	case []any:
		out := make([]any, len(doc))
		for i, e := range doc {
			v, err := l.template(e, env)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(doc))
		for _, k := range sortedKeys(doc) {
			key, err := l.replace(k, env)
			if err != nil {
				return nil, err
			}
			v, err := l.template(doc[k], env)
			if err != nil {
				return nil, err
			}
			out[key] = v
		}
		return out, nil
	}
	return normalise(doc), nil
}

// ItemName gives short texts and numbers, and nothing for lists and structures.
func (l *language) ItemName(item any) string {
	switch v := item.(type) {
	case string:
		if r := []rune(v); len(r) > 40 {
			return string(r[:40])
		}
		return v
	case int64, float64, bool:
		return text(v)
	}
	return ""
}

// Condition decides a CEL condition over the call's inputs.
func (l *language) Condition(c program.Condition, env expr.Env) (bool, error) {
	if c.Form != "cel" && c.Form != "expression" {
		return false, fmt.Errorf("a condition of form %q is not of this language", c.Form)
	}
	return l.cel.condition(c.Source, conditionVariables(env))
}

// Select evaluates a CEL expression over one value. The value is there as string_value (its text, whatever its type),
// and under the name of its own kind: number_value, bool_value, list_value, struct_value, null_value.
func (l *language) Select(src string, value any) (any, error) {
	return l.cel.selectFrom(src, value)
}
