package kfp

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one document of a file: its JSON value, and the YAML that it was read from.
type document struct {
	value any
	node  *yaml.Node
}

// places finds where paths stand: in the documents themselves, or in the specs that lie in one of them.
type places []*yaml.Node

// find gives the line and column, from 1, of the field at the longest beginning of a path that exists; 0 where none does.
func (ps places) find(path string) (line, column int) {
	rest := len(path)
	for _, n := range ps {
		if found, left := follow(n, path); found != nil && left < rest {
			rest, line, column = left, found.Line, found.Column
		}
	}
	return line, column
}

// follow goes along a path as far as it exists. It gives the last key or entry, and how much of the path is left.
func follow(n *yaml.Node, path string) (found *yaml.Node, left int) {
	for path != "" {
		n = content(n)
		var at, value *yaml.Node
		var rest string
		if path[0] == '[' {
			at, rest = entryOf(n, path)
			value = at
		} else {
			at, value, rest = fieldOf(n, path)
		}
		if at == nil {
			return found, len(path)
		}
		found, n, path = at, value, strings.TrimPrefix(rest, ".")
	}
	return found, 0
}

// content looks through documents and aliases.
func content(n *yaml.Node) *yaml.Node {
	for n != nil {
		switch {
		case n.Kind == yaml.AliasNode:
			n = n.Alias
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		default:
			return n
		}
	}
	return nil
}

func entryOf(n *yaml.Node, path string) (entry *yaml.Node, rest string) {
	text, rest, ok := strings.Cut(path[1:], "]")
	i, isNumber := wholeNumber(text)
	if !ok || !isNumber || n == nil || n.Kind != yaml.SequenceNode || i < 0 || i >= int64(len(n.Content)) {
		return nil, ""
	}
	return n.Content[i], rest
}

// fieldOf follows the longest key that begins a path: names in a pipeline may have dots in them, and fields may be
// written with underscores.
func fieldOf(n *yaml.Node, path string) (key, value *yaml.Node, rest string) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil, ""
	}
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		for _, name := range []string{k.Value, lowerCamel(k.Value)} {
			if len(name) > longest && within(path, name) {
				key, value, rest, longest = k, n.Content[i+1], path[len(name):], len(name)
			}
		}
	}
	return key, value, rest
}

// within says whether a path is another, or leads on from there.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (other == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
