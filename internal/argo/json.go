package argo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// fromJSON reads a JSON document. YAML parsers do not read all JSON (tabs, surrogate pairs), so it has its own way in.
func (b *treeBuilder) fromJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	r := &jsonReader{b: b, dec: dec, data: data, line: 1}
	n, err := r.value(0)
	if err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	return n, nil
}

// jsonReader follows a decoder and counts the lines that it passes.
type jsonReader struct {
	b      *treeBuilder
	dec    *json.Decoder
	data   []byte
	offset int64
	line   int
}

func (r *jsonReader) token() (json.Token, error) {
	t, err := r.dec.Token()
	if end := r.dec.InputOffset(); end > r.offset && end <= int64(len(r.data)) {
		r.line += bytes.Count(r.data[r.offset:end], []byte("\n"))
		r.offset = end
	}
	return t, err
}

func (r *jsonReader) value(depth int) (*node, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &node{line: r.line}
	if err := r.b.count(n.line, depth); err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(t)
	case json.Number:
		n.kind, n.text = numberNode, t.String()
	case string:
		n.kind, n.text = stringNode, t
	case json.Delim:
		n.kind = listNode
		if t == '{' {
			n.kind = mapNode
		}
		return n, r.fill(n, depth)
	}
	return n, nil
}

// fill reads a list's or an object's values up to the closing bracket.
func (r *jsonReader) fill(n *node, depth int) error {
	seen, at := map[string]int{}, map[string]int{}
	for r.dec.More() {
		key := ""
		if n.kind == mapNode {
			t, err := r.token()
			if err != nil {
				return err
			}
			key, _ = t.(string)
		}
		line := r.line
		v, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if n.kind == mapNode {
			if first, ok := seen[key]; ok {
				r.b.twice(key, line, first)
				n.items[at[key]] = v
				continue
			}
			seen[key], at[key] = line, len(n.keys)
			n.keys = append(n.keys, key)
		}
		n.items = append(n.items, v)
	}
	_, err := r.token()
	return err
}
