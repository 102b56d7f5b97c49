package argoexpr

import (
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
)

// text is a compiled text: literal pieces and tags in their order.
type text struct {
	pieces []piece
	// literal is the length of all literal pieces together.
	literal int
}

// piece is one of: a literal, a simple tag, an expression tag, or a tag whose name holds other tags.
type piece struct {
	literal string
	ref     *reference
	expr    *expression
	nested  []piece
	// source is the tag as written, with its braces.
	source string
}

// maxNesting is how deep tags may stand in tags' names.
const maxNesting = 4

// compileText cuts a text into pieces. Expressions are compiled through compile.
func compileText(src string, compile func(string) (*expression, error)) (*text, error) {
	t := &text{}
	start := 0 // of the literal that has not been added yet
	add := func(end int) {
		if end > start {
			t.pieces = append(t.pieces, piece{literal: src[start:end]})
			t.literal += end - start
		}
	}
	// Behind the last closing braces there is nothing to look for.
	last := strings.LastIndex(src, "}}")
	for pos := 0; pos < last; {
		i := strings.Index(src[pos:last], "{{")
		if i < 0 {
			break
		}
		i += pos
		if strings.HasPrefix(src[i:], "{{=") {
			p, end, err := expressionTag(src, i, compile)
			if err != nil {
				return nil, err
			}
			if end > 0 {
				add(i)
				t.pieces = append(t.pieces, p)
				start, pos = end, end
				continue
			}
		} else if p, end := simpleTag(src, i, maxNesting); end > 0 {
			add(i)
			t.pieces = append(t.pieces, p)
			start, pos = end, end
			continue
		}
		// Not a tag: the next one may begin with the second of these braces.
		pos = i + 1
	}
	add(len(src))
	return t, nil
}

// simpleTag reads the tag that begins at src[i:] and gives its end, 0 where there is none.
func simpleTag(src string, i, depth int) (piece, int) {
	var parts []piece
	begin := i + 2
	pos := begin
	for pos < len(src) {
		switch c := src[pos]; {
		case c == '}' && strings.HasPrefix(src[pos:], "}}"):
			end := pos + 2
			if parts == nil {
				ref, ok := parseReference(src[begin:pos])
				if !ok {
					return piece{}, 0
				}
				return piece{ref: &ref, source: src[i:end]}, end
			}
			if pos > begin {
				parts = append(parts, piece{literal: src[begin:pos]})
			}
			return piece{nested: parts, source: src[i:end]}, end
		case c == '{' && strings.HasPrefix(src[pos:], "{{") && depth > 1:
			inner, end := simpleTag(src, pos, depth-1)
			if end == 0 {
				return piece{}, 0
			}
			// Only the name of a variable of Argo's can be composed; other braces just happen to stand around a tag.
			if parts == nil && !knownRoot(src[begin:pos]) {
				return piece{}, 0
			}
			if pos > begin {
				parts = append(parts, piece{literal: src[begin:pos]})
			}
			parts = append(parts, inner)
			begin, pos = end, end
		case c == '{' || c == '}' || c == '\n' || c == '\r':
			return piece{}, 0
		default:
			pos++
		}
	}
	return piece{}, 0
}

// knownRoot says whether a text begins with the root of a variable and a dot.
func knownRoot(text string) bool {
	root, _, dotted := strings.Cut(strings.TrimSpace(text), ".")
	_, known := roots[root]
	return known && dotted
}

// maxEnds is how many pairs of closing braces are tried as the end of an expression tag.
const maxEnds = 16

// expressionTag reads the tag that begins at src[i:] with "{{=". It ends at the first pair of closing braces where the
// expression is complete, so that an expression may hold maps; where it is complete nowhere, the first pair counts and
// the error is about what stands before it.
func expressionTag(src string, i int, compile func(string) (*expression, error)) (piece, int, error) {
	begin := i + len("{{=")
	var first error
	pos := begin
	for range maxEnds {
		j := strings.Index(src[pos:], "}}")
		if j < 0 {
			break
		}
		j += pos
		e, err := compile(src[begin:j])
		if err == nil {
			return piece{expr: e, source: src[i : j+2]}, j + 2, nil
		}
		if first == nil {
			first = err
		}
		if j-begin > maxExpressionSource {
			break
		}
		pos = j + 1
	}
	if first != nil {
		return piece{}, 0, first
	}
	return piece{}, 0, nil
}

// wholeExpression gives the expression of a text that is nothing but one {{=tag}}.
func wholeExpression(src string) (string, bool) {
	s := strings.TrimSpace(src)
	if !strings.HasPrefix(s, "{{=") || !strings.HasSuffix(s, "}}") || len(s) < len("{{=}}") {
		return "", false
	}
	inner := s[len("{{=") : len(s)-2]
	if strings.Contains(inner, "{{") {
		return "", false
	}
	// "{{=a}} && {{=b}}" begins and ends like one tag, but is two; braces of a map are no end.
	if strings.Contains(inner, "}}") && checkSyntax(inner) != nil {
		return "", false
	}
	return inner, true
}

// substitute puts the values in.
func (t *text) substitute(env expr.Env) (string, error) {
	if len(t.pieces) == 1 {
		return t.pieces[0].value(env)
	}
	var b strings.Builder
	b.Grow(t.literal + 16*len(t.pieces))
	for i := range t.pieces {
		p := &t.pieces[i]
		if p.literal != "" {
			b.WriteString(p.literal)
			continue
		}
		v, err := p.value(env)
		if err != nil {
			return "", err
		}
		if b.Len()+len(v) > maxTextResult {
			return "", fmt.Errorf("the text with %s substituted would be longer than %d bytes", shorten(p.source), maxTextResult)
		}
		b.WriteString(v)
	}
	return b.String(), nil
}

// maxTextResult is how long a text may become.
const maxTextResult = 64 << 20

func (p *piece) value(env expr.Env) (string, error) {
	switch {
	case p.ref != nil:
		return p.ref.text(p.source, env)
	case p.expr != nil:
		return p.expr.text(p.source, env)
	case p.nested != nil:
		return p.composed(env)
	}
	return p.literal, nil
}

// composed resolves a tag whose name holds tags. The values can only be parts of a name: braces in them are refused, so
// that a value is never expanded.
func (p *piece) composed(env expr.Env) (string, error) {
	var b strings.Builder
	for i := range p.nested {
		v, err := p.nested[i].value(env)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(v, "{}\n") {
			return "", fmt.Errorf("the value of %s cannot be part of a variable's name: %q", p.nested[i].source, shorten(v))
		}
		b.WriteString(v)
	}
	ref, ok := parseReference(b.String())
	if !ok {
		return "", &expr.UnresolvedError{Tag: b.String()}
	}
	return ref.text("{{"+b.String()+"}}", env)
}

// shorten makes a text fit into an error message.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
