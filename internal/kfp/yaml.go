package kfp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxNodes bounds how many values a document may have once its aliases are written out.
const maxNodes = 2_000_000

// documents reads all documents of a YAML stream (JSON is YAML). Documents without content are left out.
func documents(data []byte) ([]document, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var docs []document
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
		}
		r := reader{budget: maxNodes}
		v, err := r.value(&n, 0)
		if err != nil {
			return nil, err
		}
		if v != nil {
			docs = append(docs, document{v, &n})
		}
	}
}

// reader turns YAML nodes into JSON values.
type reader struct{ budget int }

func (r *reader) value(n *yaml.Node, depth int) (any, error) {
	r.budget--
	if r.budget < 0 || depth > 1000 {
		return nil, fmt.Errorf("line %d: the document is too large or too deeply nested", n.Line)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return r.value(n.Content[0], depth+1)
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := r.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, nil
}

func (r *reader) mapping(n *yaml.Node, depth int) (any, error) {
	out := make(map[string]any, len(n.Content)/2)
	var merged []map[string]any
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		v, err := r.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Tag == "!!merge" {
			merged = append(merged, merges(v)...)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: the key of a mapping must be a text", k.Line)
		}
		if _, twice := out[k.Value]; twice {
			return nil, fmt.Errorf("line %d: the key %q appears twice", k.Line, k.Value)
		}
		out[k.Value] = v
	}
	for _, m := range merged {
		for k, v := range m {
			if _, own := out[k]; !own {
				out[k] = v
			}
		}
	}
	return out, nil
}

func merges(v any) []map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return []map[string]any{v}
	case []any:
		var out []map[string]any
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
		return out
	}
	return nil
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		var b bool
		if err := n.Decode(&b); err != nil {
			return nil, fmt.Errorf("line %d: %q is neither true nor false", n.Line, n.Value)
		}
		return b, nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err == nil {
			return i, nil
		}
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, fmt.Errorf("line %d: %q is no number", n.Line, n.Value)
		}
		return f, nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("line %d: %q is no number that JSON can hold", n.Line, n.Value)
		}
		return normal(f), nil
	}
	return n.Value, nil
}

// normal makes a number without fraction an int64, as the whole program keeps numbers.
func normal(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return int64(f)
	}
	return f
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
