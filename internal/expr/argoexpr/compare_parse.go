package argoexpr

import (
	"errors"
	"fmt"
)

// node is a piece of a parsed comparison.
type node struct {
	// op is an operator, or one of the words below.
	op    string
	value any
	args  []*node
	// path is that of a pathNode, and element is set where it begins at @.
	path    *jsonSteps
	element bool
}

// The kinds of nodes that are no operators.
const (
	valueNode = "value"
	listNode  = "list"
	pathNode  = "path"
	negative  = "negative"
	inverted  = "inverted"
)

const (
	maxComparisonSource = 1 << 20
	maxComparisonDepth  = 200
)

// levels are the binary operators from the loosest to the tightest, as govaluate ranks them.
var levels = [][]string{
	{"||"}, {"&&"},
	{"==", "!=", "<", "<=", ">", ">=", "=~", "!~", "in"},
	{"&", "|", "^"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}, {"**"},
}

type comparisonParser struct {
	lex   lexer
	tok   token
	depth int
}

// parseComparison reads a whole source.
func parseComparison(src string, paths bool) (*node, error) {
	if len(src) > maxComparisonSource {
		return nil, fmt.Errorf("a comparison of %d bytes is longer than the limit of %d", len(src), maxComparisonSource)
	}
	p := &comparisonParser{lex: lexer{src: src, paths: paths}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	n, err := p.ternary()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != endToken {
		return nil, p.unexpected()
	}
	return n, nil
}

// unexpected says what is wrong with the present token where an operator or the end should be.
func (p *comparisonParser) unexpected() error {
	switch p.tok.kind {
	case wordToken, textToken, numberToken, boolToken:
		return fmt.Errorf("%s at character %d follows another value: an operator is missing (hint: put texts with spaces in quotes)", p.tok, p.tok.pos+1)
	}
	return fmt.Errorf("%s at character %d is not expected there", p.tok, p.tok.pos+1)
}

func (p *comparisonParser) advance() error {
	t, err := p.lex.next()
	p.tok = t
	return err
}

func (p *comparisonParser) is(op string) bool {
	if p.tok.kind == operatorToken {
		return p.tok.text == op
	}
	return op == "in" && p.tok.kind == wordToken && (p.tok.text == "in" || p.tok.text == "IN")
}

func (p *comparisonParser) enter() error {
	if p.depth++; p.depth > maxComparisonDepth {
		return fmt.Errorf("nested deeper than %d levels", maxComparisonDepth)
	}
	return nil
}

func (p *comparisonParser) ternary() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	n, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	for p.is("??") {
		right, err := p.after(func() (*node, error) { return p.binary(0) })
		if err != nil {
			return nil, err
		}
		n = &node{op: "??", args: []*node{n, right}}
	}
	if !p.is("?") {
		return n, nil
	}
	yes, err := p.after(p.ternary)
	if err != nil {
		return nil, err
	}
	if !p.is(":") {
		return nil, fmt.Errorf("a ? at character %d has no : with the other value", p.tok.pos+1)
	}
	no, err := p.after(p.ternary)
	if err != nil {
		return nil, err
	}
	return &node{op: "?", args: []*node{n, yes, no}}, nil
}

// after skips the present token and parses what follows.
func (p *comparisonParser) after(parse func() (*node, error)) (*node, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	return parse()
}

func (p *comparisonParser) binary(level int) (*node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	for {
		op := ""
		for _, o := range levels[level] {
			if p.is(o) {
				op = o
			}
		}
		if op == "" {
			return left, nil
		}
		right, err := p.after(func() (*node, error) { return p.binary(level + 1) })
		if err != nil {
			return nil, err
		}
		left = &node{op: op, args: []*node{left, right}}
	}
}

func (p *comparisonParser) unary() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer func() { p.depth-- }()
	for op, name := range map[string]string{"!": "!", "-": negative, "~": inverted} {
		if p.is(op) {
			n, err := p.after(p.unary)
			if err != nil {
				return nil, err
			}
			return &node{op: name, args: []*node{n}}, nil
		}
	}
	return p.primary()
}

func (p *comparisonParser) primary() (*node, error) {
	t := p.tok
	switch t.kind {
	case textToken:
		return p.leaf(t.text)
	case wordToken:
		if p.lex.paths {
			switch t.text {
			case "null", "nil":
				return p.leaf(nil)
			}
		}
		return p.leaf(t.text)
	case numberToken:
		return p.leaf(t.number)
	case boolToken:
		return p.leaf(t.text == "true")
	case pathToken:
		steps, err := parseJSONPath(t.text)
		if err != nil {
			return nil, err
		}
		return &node{op: pathNode, path: steps, element: t.text[0] == '@'}, p.advance()
	case endToken:
		return nil, errors.New("it ends where a value is expected (hint: put a text that may be empty in quotes)")
	}
	if !p.is("(") {
		return nil, fmt.Errorf("%s at character %d stands where a value is expected (hint: put a text that may be empty in quotes)", t, t.pos+1)
	}
	return p.parentheses()
}

func (p *comparisonParser) leaf(v any) (*node, error) {
	return &node{op: valueNode, value: v}, p.advance()
}

// parentheses reads (x) or the list (x, y, ...).
func (p *comparisonParser) parentheses() (*node, error) {
	first, err := p.after(p.ternary)
	if err != nil {
		return nil, err
	}
	list := []*node{first}
	for p.is(",") {
		n, err := p.after(p.ternary)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	if !p.is(")") {
		if p.tok.kind == endToken {
			return nil, errors.New("a closing ) is missing")
		}
		return nil, p.unexpected()
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if len(list) == 1 {
		return first, nil
	}
	return &node{op: listNode, args: list}, nil
}
