package argoexpr

import (
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// References gives the paths of the variables that the tags of a text mention ("steps", "a", "outputs", "result"), each
// once, in the order in which they stand there: simple tags and what {{=expressions}} read. Names that hold dots are one
// element. Unknown roots of simple tags are no variables of Argo's and left out; those of expressions are given. A path
// of a tag whose name holds another tag is left out. The error is about expressions that cannot be compiled.
func References(src string) ([][]string, error) {
	if !strings.Contains(src, "{{") {
		return nil, nil
	}
	t, err := compileText(src, compileExpression)
	if err != nil {
		return nil, err
	}
	var paths [][]string
	var collect func(pieces []piece)
	collect = func(pieces []piece) {
		for i := range pieces {
			switch p := &pieces[i]; {
			case p.ref != nil:
				paths = appendPath(paths, p.ref.path)
			case p.expr != nil:
				for _, v := range p.expr.variables {
					paths = appendPath(paths, v.path)
				}
			case p.nested != nil:
				collect(p.nested)
			}
		}
	}
	collect(t.pieces)
	return paths, nil
}

// ExpressionReferences is [References] for an expression (without braces, or as one {{=tag}}, or with tags in it).
func ExpressionReferences(src string) ([][]string, error) {
	if inner, ok := wholeExpression(src); ok {
		src = inner
	} else if strings.Contains(src, "{{") {
		// What stands around the tags can only be read once they are substituted.
		return References(src)
	}
	e, err := compileExpression(src)
	if err != nil {
		return nil, err
	}
	var paths [][]string
	for _, v := range e.variables {
		paths = appendPath(paths, v.path)
	}
	return paths, nil
}

// ConditionReferences is [References] for a condition of either form.
func ConditionReferences(c program.Condition) ([][]string, error) {
	if c.Form == formExpression {
		return ExpressionReferences(c.Source)
	}
	return References(c.Source)
}

func appendPath(paths [][]string, path []string) [][]string {
	if len(path) == 0 || slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, path) }) {
		return paths
	}
	return append(paths, slices.Clone(path))
}
