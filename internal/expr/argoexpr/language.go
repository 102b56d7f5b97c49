// Package argoexpr evaluates the texts of Argo Workflow manifests: {{simple}} tags, {{=expression}} tags in expr-lang
// with Argo's extra functions and sprig, and the comparison language of "when".
//
// Argo substitutes tags in the JSON of a template, over and over until nothing changes. Here each text is substituted
// once: a value that looks like a tag stays what it is. Everything else follows Argo v4.1: docs/variables.md of its
// repository, and where that is silent, what its controller does.
package argoexpr

import (
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// Language is Argo's [expr.Language]. It holds nothing but caches of compiled sources and may be used by any number of
// goroutines.
type Language struct {
	texts       *cache[*text]
	expressions *cache[*expression]
}

var _ expr.Language = (*Language)(nil)

// Sources longer than this are refused: nothing that a person writes comes near.
const (
	maxTextSource       = 4 << 20
	maxExpressionSource = 64 << 10
)

// New gives a Language with empty caches.
func New() expr.Language {
	return &Language{
		texts:       newCache[*text](cacheEntries, cacheBytes),
		expressions: newCache[*expression](cacheEntries, cacheBytes),
	}
}

// Text replaces the tags in src. Braces of another language (unknown roots) stay as they are; a tag of Argo's without a
// value is an [expr.UnresolvedError].
func (l *Language) Text(src string, env expr.Env) (string, error) {
	if !strings.Contains(src, "{{") {
		return src, nil
	}
	t, err := l.text(src)
	if err != nil {
		return "", err
	}
	return t.substitute(env)
}

// Args is Text for every element: in Argo an element of a command line stays one element.
func (l *Language) Args(src []string, env expr.Env) ([]string, error) {
	if len(src) == 0 {
		return nil, nil
	}
	out := make([]string, len(src))
	for i, s := range src {
		text, err := l.Text(s, env)
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// Value evaluates an expr-lang expression. Tags inside it are substituted first, as Argo does; an expression that is
// one {{=tag}} as a whole is the expression inside.
func (l *Language) Value(src string, env expr.Env) (any, error) {
	inner, err := l.expressionSource(src, env)
	if err != nil {
		return nil, err
	}
	e, err := l.expression(inner)
	if err != nil {
		return nil, err
	}
	return e.value(env)
}

// Select evaluates an expression in which "value" is the value.
func (l *Language) Select(src string, value any) (any, error) {
	return l.Value(src, expr.Env{Scope: oneValue{value}})
}

// oneValue is the scope of Select.
type oneValue struct{ value any }

func (o oneValue) Lookup(path []string) (any, expr.Presence) {
	if len(path) == 1 && path[0] == "value" {
		return o.value, expr.Present
	}
	return nil, expr.Absent
}

// expressionSource strips the braces of an expression that is one {{=tag}}, or substitutes the tags in it.
func (l *Language) expressionSource(src string, env expr.Env) (string, error) {
	if !strings.Contains(src, "{{") {
		return src, nil
	}
	if inner, ok := wholeExpression(src); ok {
		return inner, nil
	}
	return l.Text(src, env)
}

func (l *Language) text(src string) (*text, error) {
	if t, ok := l.texts.get(src); ok {
		return t, nil
	}
	if len(src) > maxTextSource {
		return nil, fmt.Errorf("a text of %d bytes with tags is longer than the limit of %d", len(src), maxTextSource)
	}
	t, err := compileText(src, l.expression)
	if err != nil {
		return nil, err
	}
	l.texts.put(src, t, len(src))
	return t, nil
}

func (l *Language) expression(src string) (*expression, error) {
	if e, ok := l.expressions.get(src); ok {
		return e, nil
	}
	e, err := compileExpression(src)
	if err != nil {
		return nil, err
	}
	l.expressions.put(src, e, len(src))
	return e, nil
}

// Parameter gives the text of a value: Argo's parameters are texts. Nil stays nil.
func (l *Language) Parameter(value any, _ program.Type) (any, error) {
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		return v, nil
	}
	text, err := formatValue(value)
	if err != nil {
		return nil, fmt.Errorf("parameter: %w", err)
	}
	return text, nil
}
