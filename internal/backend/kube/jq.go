package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/itchyny/gojq"
)

// jq applies a jq filter to a JSON value and gives its results, each on a line, texts without quotes, as "jq -r" and so
// Argo's executor do. The context bounds how long a filter may take: some never end.
func jq(ctx context.Context, filter string, input any) (string, error) {
	query, err := gojq.Parse(filter)
	if err != nil {
		return "", fmt.Errorf("jqFilter %q: %w", filter, err)
	}
	code, err := gojq.Compile(query) // without access to files, modules or the environment
	if err != nil {
		return "", fmt.Errorf("jqFilter %q: %w", filter, err)
	}
	var lines []string
	for results := code.RunWithContext(ctx, plainJSON(input)); ; {
		result, more := results.Next()
		if !more {
			return strings.TrimSpace(strings.Join(lines, "\n")), nil
		}
		if err, failed := result.(error); failed {
			return "", fmt.Errorf("jqFilter %q: %w", filter, err)
		}
		if text, isText := result.(string); isText {
			lines = append(lines, text)
			continue
		}
		text, err := gojq.Marshal(result)
		if err != nil {
			return "", fmt.Errorf("jqFilter %q: %w", filter, err)
		}
		lines = append(lines, string(text))
	}
}

// plainJSON gives a value in the types that gojq takes: it knows no int64.
func plainJSON(v any) any {
	switch v := v.(type) {
	case int64:
		return int(v)
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return int(i)
		}
		f, _ := v.Float64() // a number that is neither cannot be JSON
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, in := range v {
			out[k] = plainJSON(in)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, in := range v {
			out[i] = plainJSON(in)
		}
		return out
	}
	return v
}
