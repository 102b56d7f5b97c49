package argo

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on what is read. A manifest on a cluster is at most about 1.5 MiB; these leave room and stop bombs.
const (
	maxBytes = 16 << 20
	maxNodes = 1 << 20
	maxDepth = 200
)

// parseDocuments reads the documents of a file, YAML or JSON, into trees. Empty documents are left out. The error
// says at which line the text is not YAML.
//
// A key that is given twice in one object is no error, as Kubernetes' tools take the last one; notes say where.
func parseDocuments(data []byte) (docs []*node, notes []note, err error) {
	if len(data) > maxBytes {
		return nil, nil, fmt.Errorf("is %d MiB; a manifest may have at most %d", len(data)>>20, maxBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	b := &treeBuilder{}
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		n, err := b.fromJSON(data)
		if err != nil {
			return nil, nil, err
		}
		return []*node{n}, b.notes, nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var y yaml.Node
		err := dec.Decode(&y)
		if errors.Is(err, io.EOF) {
			return docs, b.notes, nil
		}
		if err != nil {
			return docs, b.notes, fmt.Errorf("is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		n, err := b.fromYAML(&y, 0)
		if err != nil {
			return docs, b.notes, err
		}
		if n.kind != nullNode {
			docs = append(docs, n)
		}
	}
}

// treeBuilder turns parsed YAML or JSON into trees, within the bounds.
type treeBuilder struct {
	nodes int
	notes []note
}

// note is something odd in a text.
type note struct {
	mark
	text string
}

// twice notes a key that was given before.
func (b *treeBuilder) twice(key string, at mark, first int) {
	b.notes = append(b.notes, note{at, fmt.Sprintf("the key %s was given before, in line %d; only this one counts, remove the other", shorten(key), first)})
}

func (b *treeBuilder) count(line, depth int) error {
	if b.nodes++; b.nodes > maxNodes {
		return fmt.Errorf("line %d: has more than %d values once its aliases are expanded", line, maxNodes)
	}
	if depth > maxDepth {
		return fmt.Errorf("line %d: is nested more than %d levels deep", line, maxDepth)
	}
	return nil
}

func markOf(y *yaml.Node) mark { return mark{y.Line, y.Column} }

func (b *treeBuilder) fromYAML(y *yaml.Node, depth int) (*node, error) {
	if err := b.count(y.Line, depth); err != nil {
		return nil, err
	}
	n := &node{mark: markOf(y)}
	switch y.Kind {
	case yaml.DocumentNode:
		if len(y.Content) == 0 {
			return n, nil
		}
		return b.fromYAML(y.Content[0], depth)
	case yaml.AliasNode:
		if y.Alias == nil {
			return nil, fmt.Errorf("line %d: *%s refers to nothing", y.Line, y.Value)
		}
		v, err := b.fromYAML(y.Alias, depth+1)
		if err != nil {
			return nil, err
		}
		v.mark = markOf(y)
		return v, nil
	case yaml.SequenceNode:
		n.kind = listNode
		for _, c := range y.Content {
			v, err := b.fromYAML(c, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
		}
		return n, nil
	case yaml.MappingNode:
		n.kind = mapNode
		return n, b.mapping(n, y, depth)
	case yaml.ScalarNode:
		return n, scalar(n, y)
	}
	return n, nil // an empty document
}

// mapping reads the pairs of an object; those of "<<" come in where the object itself has no such key.
func (b *treeBuilder) mapping(n *node, y *yaml.Node, depth int) error {
	seen, at := map[string]int{}, map[string]int{}
	var merged []*node
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		v, err := b.fromYAML(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		if k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style == 0 {
			switch v.kind {
			case mapNode:
				merged = append(merged, v)
			case listNode:
				merged = append(merged, v.items...)
			default:
				return fmt.Errorf("line %d: << must be given an object", k.Line)
			}
			continue
		}
		key := k
		if k.Kind == yaml.AliasNode && k.Alias != nil {
			key = k.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a key must be a plain text, not a list or an object", k.Line)
		}
		if first, ok := seen[key.Value]; ok {
			b.twice(key.Value, markOf(k), first)
			n.items[at[key.Value]], n.marks[at[key.Value]] = v, markOf(k)
			continue
		}
		seen[key.Value], at[key.Value] = k.Line, len(n.keys)
		n.put(key.Value, markOf(k), v)
	}
	for _, m := range merged {
		if m.kind != mapNode {
			return fmt.Errorf("line %d: << must be given objects", m.line)
		}
		for i, k := range m.keys {
			if _, ok := seen[k]; !ok {
				seen[k] = m.line
				n.put(k, m.marks[i], m.items[i])
			}
		}
	}
	return nil
}

// floatForm is what YAML 1.1 takes for a decimal number.
var floatForm = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)

// scalar reads a scalar by the rules of YAML 1.1, as Kubernetes' tools do: yes and on are booleans, 0755 is octal.
func scalar(n *node, y *yaml.Node) error {
	n.kind, n.text = stringNode, y.Value
	if y.Style&yaml.TaggedStyle != 0 {
		switch y.ShortTag() {
		case "!!str", "!":
			return nil
		case "!!binary":
			data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(y.Value), ""))
			if err != nil {
				return fmt.Errorf("line %d: !!binary is not base64: %w", y.Line, err)
			}
			n.text = string(data)
			return nil
		case "!!int", "!!float", "!!bool", "!!null", "!!timestamp":
		default:
			return fmt.Errorf("line %d: the tag %s means nothing here; remove it", y.Line, y.Tag)
		}
	} else if y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return nil
	}
	n.written = y.Value
	switch y.Value {
	case "", "~", "null", "Null", "NULL":
		n.kind, n.text = nullNode, ""
		return nil
	case "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		n.kind, n.text = boolNode, "true"
		return nil
	case "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		n.kind, n.text = boolNode, "false"
		return nil
	}
	if number, ok := yamlNumber(y.Value); ok {
		n.kind, n.text = numberNode, number
	}
	return nil
}

// yamlNumber gives the JSON form of a YAML 1.1 number.
func yamlNumber(text string) (string, bool) {
	if text == "" || !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return "", false
	}
	plain := strings.ReplaceAll(text, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return strconv.FormatInt(i, 10), true
	}
	if u, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return strconv.FormatUint(u, 10), true
	}
	if !floatForm.MatchString(plain) {
		return "", false
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", false
	}
	out, err := json.Marshal(f)
	return string(out), err == nil
}
