package argoexpr

import (
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// In Argo the variables of expressions are texts, whatever they look like: inputs.parameters.n is "3" and
// lastRetry.exitCode is "2", lists and maps are their JSON, and asInt makes numbers. Only artifacts, placeholders of
// hooks and what belongs to no workflow (request, response, cronworkflow, the value of Select) have types.

// depth says at which length of its path a variable of Argo's is complete: 3 for inputs.parameters.<n>. It is 0 for
// variables with types.
func depth(path []string) int {
	second := ""
	if len(path) > 1 {
		second = path[1]
	}
	switch path[0] {
	case "inputs", "outputs":
		switch second {
		case "artifacts":
			return 0
		case "result", "exitCode":
			return 2
		}
		return 3
	case "steps", "tasks":
		if len(path) < 3 {
			return 3
		}
		switch path[2] {
		case "hooks":
			return 0
		case "inputs", "outputs":
			if len(path) < 4 {
				return 4
			}
			switch path[3] {
			case "artifacts":
				return 0
			case "parameters":
				return 5
			}
			return 4
		}
		return 3
	case "workflow":
		switch second {
		case "parameters", "labels", "annotations":
			return 3
		case "outputs":
			if len(path) > 2 && path[2] == "artifacts" {
				return 0
			}
			return 4
		}
		return 2
	case "item", "retries", "status", "duration", "exitCode":
		return 1
	case "lastRetry", "node", "pod", "task", "resourcesDuration":
		return 2
	}
	return 0
}

// strict says whether a variable that the scope does not know is an error by itself. Elsewhere it is nil, as in Argo,
// which is an error only where something needs a value.
func strict(path []string) bool {
	switch path[0] {
	case "steps", "tasks":
		return true
	}
	_, known := roots[path[0]]
	return !known && path[0] != "request" && path[0] != "response"
}

// variableValue gives what an expression sees at a path.
func variableValue(scope expr.Scope, path []string) (any, expr.Presence, error) {
	if scope == nil || len(path) == 0 {
		return nil, expr.Absent, nil
	}
	v, presence := scope.Lookup(path)
	if presence == expr.Absent {
		v, presence = derive(scope, path)
	}
	if presence == expr.Absent && len(path) > 2 {
		if joined := joinNames(path); len(joined) != len(path) {
			v, presence = scope.Lookup(joined)
		}
	}
	switch presence {
	case expr.Present:
		shown, err := show(scope, path, v)
		return shown, presence, err
	case expr.Skipped:
		return nil, presence, nil
	}
	return inside(scope, path)
}

// inside looks for the value in that of a shorter path.
func inside(scope expr.Scope, path []string) (any, expr.Presence, error) {
	least := max(depth(path), 1)
	for n := len(path) - 1; n >= least; n-- {
		v, presence := scope.Lookup(path[:n])
		switch presence {
		case expr.Absent:
			continue
		case expr.Skipped:
			return nil, presence, nil
		}
		if item, ok := v.(map[string]any); ok && path[0] == "item" && n == 1 {
			// An item's fields are texts, too, but the item itself is looked into before it becomes one.
			field, ok := item[path[1]]
			if !ok {
				return nil, expr.Absent, nil
			}
			v, n = field, 2
		}
		shown, err := show(scope, path[:n], v)
		if err != nil {
			return nil, expr.Absent, err
		}
		for _, key := range path[n:] {
			switch t := shown.(type) {
			case nil:
				return nil, expr.Absent, nil
			case map[string]any:
				next, ok := t[key]
				if !ok {
					return nil, expr.Absent, nil
				}
				shown = next
			case map[string]string:
				next, ok := t[key]
				if !ok {
					return nil, expr.Absent, nil
				}
				shown = next
			case map[string][]string:
				next, ok := t[key]
				if !ok {
					return nil, expr.Absent, nil
				}
				shown = next
			default:
				return nil, expr.Absent, fmt.Errorf("%s is %s and has no field %q", joined(path[:n]), kindOf(shown), key)
			}
		}
		return shown, expr.Present, nil
	}
	return nil, expr.Absent, nil
}

// show turns a value of the scope into what an expression sees.
func show(scope expr.Scope, path []string, v any) (any, error) {
	switch t := v.(type) {
	case nil:
		return nil, nil
	case []program.Artifact:
		return showArtifacts(scope, path, t), nil
	case program.Artifact:
		return showArtifacts(scope, path, []program.Artifact{t}), nil
	}
	d := depth(path)
	if d == 0 {
		// Typed; but artifacts may be inside.
		if m, ok := v.(map[string]any); ok {
			return showMap(scope, path, m)
		}
		return v, nil
	}
	if m, ok := v.(map[string]any); ok && (len(path) < d || path[0] == "item" && len(path) == 1) {
		return showMap(scope, path, m)
	}
	if len(path) == 2 && path[0] == "workflow" && path[1] == "failures" {
		if text, ok := v.(string); ok {
			return quoteJSON(text), nil
		}
	}
	return formatAt(path, v, scope)
}

func showMap(scope expr.Scope, path []string, m map[string]any) (any, error) {
	out := make(map[string]any, len(m))
	for key, v := range m {
		shown, err := showField(scope, append(path[:len(path):len(path)], key), v)
		if err != nil {
			return nil, err
		}
		out[key] = shown
	}
	return out, nil
}

func showField(scope expr.Scope, path []string, v any) (any, error) {
	if path[0] != "item" {
		return show(scope, path, v)
	}
	if v == nil {
		return nil, nil
	}
	return formatValue(v)
}

// showArtifacts gives one artifact as a map, several as a list of maps.
func showArtifacts(scope expr.Scope, path []string, list []program.Artifact) any {
	shown := make([]any, len(list))
	for i := range list {
		m := artifactMap(list[i])
		if len(list) == 1 {
			if p, presence := scope.Lookup(append(path[:len(path):len(path)], "path")); presence == expr.Present {
				m["path"] = p
			}
		}
		if key := artifactKey(list[i]); key != "" {
			m["key"] = key
		}
		shown[i] = m
	}
	if len(shown) == 1 {
		return shown[0]
	}
	return shown
}

func joined(path []string) string { return strings.Join(path, ".") }

func joinWith(list []string, sep string) string { return strings.Join(list, sep) }
