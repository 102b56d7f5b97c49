package argo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// fromJSON reads a JSON document. YAML parsers do not read all JSON (tabs, surrogate pairs), so it has its own way in.
func (b *treeBuilder) fromJSON(data []byte) (*node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	r := &jsonReader{b: b, dec: dec, data: data, at: mark{line: 1}}
	n, err := r.value(0)
	if err != nil {
		return nil, fmt.Errorf("is not valid JSON: %w", err)
	}
	return n, nil
}

// jsonReader follows a decoder and counts the lines that it passes.
type jsonReader struct {
	b    *treeBuilder
	dec  *json.Decoder
	data []byte
	// offset is the end of the last token; at is where it begins, and line the offset at which that line does.
	offset, line int
	at           mark
}

func (r *jsonReader) token() (json.Token, error) {
	for r.offset < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[r.offset]) >= 0 {
		r.offset++
		if r.data[r.offset-1] == '\n' {
			r.at.line++
			r.line = r.offset
		}
	}
	r.at.column = r.offset - r.line + 1
	t, err := r.dec.Token()
	r.offset = int(r.dec.InputOffset())
	return t, err
}

func (r *jsonReader) value(depth int) (*node, error) {
	t, err := r.token()
	if err != nil {
		return nil, err
	}
	n := &node{mark: r.at}
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
		begin := r.at
		v, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		if n.kind == mapNode {
			if first, ok := seen[key]; ok {
				r.b.twice(key, begin, first)
				n.items[at[key]], n.marks[at[key]] = v, begin
				continue
			}
			seen[key], at[key] = begin.line, len(n.keys)
			n.put(key, begin, v)
			continue
		}
		n.items = append(n.items, v)
	}
	_, err := r.token()
	return err
}
