package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// jqTime bounds how long a filter may take.
const jqTime = 2 * time.Second

// boundless finds what lets a filter make up values that are not in its input. It runs in the controller, which is
// everybody's.
var boundless = regexp.MustCompile(`\b(range|repeat|while|until|recurse|recurse_down|combinations|def|foreach|reduce|limit|inputs?|import|include|env)\b|\*`)

// jq applies a jq filter to a JSON value and gives its results, each on a line, texts without quotes, as "jq -r" and so
// Argo's executor do. Filters that could give more than there is in their input are refused.
func jq(ctx context.Context, filter string, input any) (string, error) {
	if word := boundless.FindString(filter); word != "" {
		return "", fmt.Errorf("jqFilter %q: %q is not allowed here, since it can make up values without end; pick what is in the object", filter, word)
	}
	ctx, cancel := context.WithTimeout(ctx, jqTime)
	defer cancel()
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
