package argo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// nodeKind is the kind of a JSON value.
type nodeKind byte

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	stringNode
	listNode
	mapNode
)

// kindNames are for messages.
var kindNames = [...]string{"null", "a boolean", "a number", "a string", "a list", "an object"}

func (k nodeKind) String() string { return kindNames[k] }

// node is a JSON value that knows where in its file it stands.
type node struct {
	kind nodeKind
	mark
	// text is a string's value, a number's JSON, or "true" and "false"; written is how the author wrote it, where that
	// may be something else ("y", "0755").
	text, written string
	// items of a list, or values of an object, whose keys are in keys and stand at marks.
	items []*node
	keys  []string
	marks []mark
	// dropped values are left out of the JSON: what is wrong with them has been reported.
	dropped bool
}

// mark is a place in a text: line and column count from 1, and are 0 where they are not known.
type mark struct{ line, column int }

// put adds an entry to an object.
func (n *node) put(key string, at mark, v *node) {
	n.keys, n.marks, n.items = append(n.keys, key), append(n.marks, at), append(n.items, v)
}

// get gives an object's value, or nil.
func (n *node) get(key string) *node {
	if n == nil || n.kind != mapNode {
		return nil
	}
	for i, k := range n.keys {
		if k == key {
			return n.items[i]
		}
	}
	return nil
}

// str gives an object's string value, or "".
func (n *node) str(key string) string {
	if v := n.get(key); v != nil && v.kind == stringNode {
		return v.text
	}
	return ""
}

// write appends the value's JSON.
func (n *node) write(b *bytes.Buffer) {
	switch n.kind {
	case nullNode:
		b.WriteString("null")
	case boolNode, numberNode:
		b.WriteString(n.text)
	case stringNode:
		b.Write(quoted(n.text))
	case listNode:
		b.WriteByte('[')
		n.each(func(first bool, _ string, v *node) {
			if !first {
				b.WriteByte(',')
			}
			v.write(b)
		})
		b.WriteByte(']')
	case mapNode:
		b.WriteByte('{')
		n.each(func(first bool, key string, v *node) {
			if !first {
				b.WriteByte(',')
			}
			b.Write(quoted(key))
			b.WriteByte(':')
			v.write(b)
		})
		b.WriteByte('}')
	}
}

// quoted gives a text's JSON. Every text has one; what is not UTF-8 in it is replaced.
func quoted(s string) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		return []byte(`""`)
	}
	return data
}

// each calls f for all values that are not dropped.
func (n *node) each(f func(first bool, key string, v *node)) {
	first := true
	for i, v := range n.items {
		if v.dropped {
			continue
		}
		key := ""
		if n.kind == mapNode {
			key = n.keys[i]
		}
		f(first, key, v)
		first = false
	}
}

// json gives the value's JSON.
func (n *node) json() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

// markOf finds where the longest prefix of a path ("spec.templates[2].name") that exists stands.
func (n *node) markOf(path string) mark {
	found, _ := n.find(path)
	return found.mark
}

// find follows a path as far as it exists, and says whether that was to its end.
func (n *node) find(path string) (*node, bool) {
	for path != "" {
		var next *node
		if path[0] == '[' {
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return n, false
			}
			if i, err := strconv.Atoi(path[1:end]); err == nil && n.kind == listNode && i >= 0 && i < len(n.items) {
				next = n.items[i]
			}
			path = path[end+1:]
		} else {
			next, path = n.longestKey(path)
		}
		if next == nil {
			return n, false
		}
		n = next
		path = strings.TrimPrefix(path, ".")
	}
	return n, true
}

// longestKey follows the longest key that begins the path: keys of objects may have dots in them.
func (n *node) longestKey(path string) (*node, string) {
	if n.kind != mapNode {
		return nil, ""
	}
	best := -1
	for i, k := range n.keys {
		if len(k) <= len(path) && path[:len(k)] == k && (len(k) == len(path) || path[len(k)] == '.' || path[len(k)] == '[') {
			if best < 0 || len(k) > len(n.keys[best]) {
				best = i
			}
		}
	}
	if best < 0 {
		return nil, ""
	}
	return n.items[best], path[len(n.keys[best]):]
}

// texts calls f for every string in the value that is not dropped, with its path.
func (n *node) texts(path string, f func(path, text string)) {
	if n.dropped {
		return
	}
	switch n.kind {
	case stringNode:
		f(path, n.text)
	case listNode:
		for i, v := range n.items {
			v.texts(index(path, i), f)
		}
	case mapNode:
		for i, v := range n.items {
			v.texts(join(path, n.keys[i]), f)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
