package argoexpr

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// Ordered is what a scope may implement to say in which order the names of a map were declared; without it, whole
// parameter lists ({{workflow.parameters}}, {{inputs.parameters}}) are printed in the order of their names.
type Ordered interface {
	Names(path []string) []string
}

// text resolves a simple tag. source is the tag with its braces.
func (r *reference) text(source string, env expr.Env) (string, error) {
	v, presence := r.lookup(env.Scope)
	switch presence {
	case expr.Absent:
		if r.lenient {
			return source, nil
		}
		return "", &expr.UnresolvedError{Tag: r.tag}
	case expr.Skipped:
		return "", &expr.UnresolvedError{Tag: r.tag, Skipped: true}
	}
	switch t := v.(type) {
	case string:
		if r.tag == "workflow.failures" {
			return quoteJSON(t), nil
		}
		return t, nil
	case nil:
		// A null is a value of an item or a placeholder; everywhere else it is an input that nobody gave.
		if r.path[0] != "item" && r.path[0] != "hooks" && !(len(r.path) > 2 && r.path[2] == "hooks") {
			return "", &expr.UnresolvedError{Tag: r.tag}
		}
	}
	return formatAt(r.path, v, env.Scope)
}

// lookup finds the value of a reference.
func (r *reference) lookup(scope expr.Scope) (any, expr.Presence) {
	if scope == nil {
		return nil, expr.Absent
	}
	v, presence := scope.Lookup(r.path)
	if presence != expr.Absent {
		return v, presence
	}
	if r.other != nil {
		if v, presence = scope.Lookup(r.other); presence != expr.Absent {
			return v, presence
		}
	}
	if v, presence = derive(scope, r.path); presence != expr.Absent || r.other == nil {
		return v, presence
	}
	return derive(scope, r.other)
}

// derive computes the variables that are forms of others, for scopes that have only those.
func derive(scope expr.Scope, path []string) (any, expr.Presence) {
	n := len(path)
	if n < 2 {
		return nil, expr.Absent
	}
	if n == 2 && path[1] == "name" && (path[0] == "steps" || path[0] == "tasks") {
		return scope.Lookup([]string{"task", "name"})
	}
	last := path[n-1]
	switch {
	case n == 3 && last == "json" && (path[0] == "workflow" || path[0] == "cronworkflow"):
		return wholeJSON(scope, path[:2])
	case n == 3 && path[0] == "workflow" && path[1] == "creationTimestamp":
		v, presence := scope.Lookup(path[:2])
		if t, ok := asTime(v); ok && presence == expr.Present {
			if text, ok := strftime(last, t); ok {
				return text, expr.Present
			}
			return nil, expr.Absent
		}
		return nil, presence
	}
	if i := slices.Index(path, "artifacts"); i >= 0 && n > i+2 {
		v, presence := scope.Lookup(path[:i+2])
		if presence != expr.Present {
			return nil, presence
		}
		if v, ok := artifactField(v, path[i+2:]); ok {
			return v, expr.Present
		}
		return nil, expr.Absent
	}
	// Placeholders of hooks and items are JSON values that can be looked into.
	if path[0] == "item" || path[0] == "hooks" || (n > 4 && path[2] == "hooks") {
		for k := n - 1; k >= 1; k-- {
			v, presence := scope.Lookup(path[:k])
			if presence == expr.Absent {
				continue
			}
			for _, key := range path[k:] {
				m, ok := v.(map[string]any)
				if !ok {
					return nil, expr.Absent
				}
				if v, ok = m[key]; !ok {
					return nil, expr.Absent
				}
			}
			return v, presence
		}
	}
	return nil, expr.Absent
}

// wholeJSON is what workflow.parameters.json, workflow.labels.json and workflow.annotations.json hold.
func wholeJSON(scope expr.Scope, path []string) (any, expr.Presence) {
	switch path[1] {
	case "parameters", "labels", "annotations":
	default:
		return nil, expr.Absent
	}
	v, presence := scope.Lookup(path)
	if presence != expr.Present {
		return nil, presence
	}
	text, err := formatAt(path, v, scope)
	if err != nil {
		return nil, expr.Absent
	}
	return text, expr.Present
}

// formatAt gives the text of the value at a path.
func formatAt(path []string, v any, scope expr.Scope) (string, error) {
	if len(path) == 2 {
		switch path[0] + "." + path[1] {
		case "workflow.parameters", "inputs.parameters":
			if m, ok := v.(map[string]any); ok {
				return parameterList(path, m, scope)
			}
		case "workflow.duration":
			if f, ok := v.(float64); ok {
				return strconv.FormatFloat(f, 'f', 6, 64), nil
			}
		case "workflow.failures":
			text, err := marshal(v)
			if err != nil {
				return "", err
			}
			return quoteJSON(text), nil
		}
	}
	if list, ok := v.([]any); ok && len(path) > 3 && (path[0] == "steps" || path[0] == "tasks") && path[2] == "outputs" {
		v = overLoop(path[3:], list)
	}
	return formatValue(v)
}

// overLoop gives what a loop's outputs are together. Each result counts as the JSON that it is; the values of a
// parameter only where all of them are lists or maps, else they stay texts.
func overLoop(path []string, list []any) []any {
	values := make([]any, len(list))
	composite := true
	for i, e := range list {
		values[i] = e
		text, ok := e.(string)
		if !ok {
			composite = false
			continue
		}
		var parsed any
		if json.Unmarshal([]byte(text), &parsed) == nil {
			values[i] = json.RawMessage(text)
		}
		switch parsed.(type) {
		case []any, map[string]any:
		default:
			composite = false
		}
	}
	if len(path) == 1 && path[0] == "result" || len(path) == 2 && path[0] == "parameters" && composite {
		return values
	}
	return list
}

// quoteJSON makes of a JSON text a JSON string, as Argo gives workflow.failures; what is one already stays.
func quoteJSON(text string) string {
	if strings.HasPrefix(text, `"`) {
		return text
	}
	return strconv.Quote(text)
}

// parameterList prints parameters as Argo's JSON has them: a list of names and values.
func parameterList(path []string, m map[string]any, scope expr.Scope) (string, error) {
	type parameter struct {
		Name  string  `json:"name"`
		Value *string `json:"value,omitempty"`
	}
	list := make([]parameter, 0, len(m))
	for _, name := range namesOf(path, m, scope) {
		p := parameter{Name: name}
		if m[name] != nil {
			text, err := formatValue(m[name])
			if err != nil {
				return "", err
			}
			p.Value = &text
		}
		list = append(list, p)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	return string(data), nil
}

func namesOf(path []string, m map[string]any, scope expr.Scope) []string {
	names := make([]string, 0, len(m))
	if o, ok := scope.(Ordered); ok {
		for _, name := range o.Names(path) {
			if _, ok := m[name]; ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) < len(m) {
		var rest []string
		for name := range m {
			if !slices.Contains(names, name) {
				rest = append(rest, name)
			}
		}
		slices.Sort(rest)
		names = append(names, rest...)
	}
	return names
}

// formatValue gives the text that a value has inside a text: a string as it is, everything else as JSON.
func formatValue(v any) (string, error) {
	switch t := v.(type) {
	case nil:
		return "null", nil
	case string:
		return t, nil
	case bool:
		return strconv.FormatBool(t), nil
	case int:
		return strconv.Itoa(t), nil
	case int32:
		return strconv.FormatInt(int64(t), 10), nil
	case int64:
		return strconv.FormatInt(t, 10), nil
	case float64:
		return formatFloat(t), nil
	case json.Number:
		return t.String(), nil
	case time.Time:
		return t.UTC().Format(time.RFC3339), nil
	case *time.Time:
		if t == nil {
			return "null", nil
		}
		return t.UTC().Format(time.RFC3339), nil
	case []program.Artifact:
		if len(t) == 1 {
			return encodeArtifact(t[0])
		}
		list := make([]any, len(t))
		for i := range t {
			list[i] = artifactMap(t[i])
		}
		return marshal(list)
	case program.Artifact:
		return encodeArtifact(t)
	}
	return marshal(v)
}

// marshal gives JSON as Argo's does: keys sorted, and <, > and & escaped.
func marshal(v any) (string, error) {
	n, err := normalise(v)
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	return string(data), nil
}

// formatFloat writes whole numbers without exponent and everything else as JSON does.
func formatFloat(f float64) string {
	if f == float64(int64(f)) && f > -1e18 && f < 1e18 {
		return strconv.FormatInt(int64(f), 10)
	}
	if data, err := json.Marshal(f); err == nil {
		return string(data)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func asTime(v any) (time.Time, bool) {
	switch t := v.(type) {
	case time.Time:
		return t, true
	case *time.Time:
		if t != nil {
			return *t, true
		}
	case string:
		if parsed, err := time.Parse(time.RFC3339, t); err == nil {
			return parsed, true
		}
	}
	return time.Time{}, false
}

// layouts are the strftime letters that Argo knows, each as Go writes it. L is the fraction of the second with its point.
var layouts = map[string]string{
	"B": "January", "b": "Jan", "m": "01", "A": "Monday", "a": "Mon", "d": "02", "H": "15", "I": "03", "M": "04",
	"S": "05", "Y": "2006", "y": "06", "p": "PM", "Z": "MST", "z": "-0700", "L": ".000", "RFC3339": time.RFC3339,
}

// strftime formats a time by a letter, "s" (seconds since 1970) or "RFC3339".
func strftime(letter string, t time.Time) (string, bool) {
	if letter == "s" {
		return strconv.FormatInt(t.Unix(), 10), true
	}
	layout, ok := layouts[letter]
	if !ok {
		return "", false
	}
	return t.UTC().Format(layout), true
}
