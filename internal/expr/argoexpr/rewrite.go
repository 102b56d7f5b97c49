package argoexpr

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
)

// The names of the functions that rewritten expressions call. No source can write them.
const (
	lookupName = "\x00lookup"
	callName   = "\x00call"
	methodName = "\x00method"
	addName    = "\x00add"
	inName     = "\x00in"
	tickName   = "\x00tick"
	equalName  = "\x00equal"
)

// prototype tells the compiler the types of these functions.
var prototype = (&evaluation{}).functions()

// shape is what has to be known of a source before it is rewritten.
type shape struct {
	// locals are the names that the source declares with let.
	locals map[string]bool
	// loops is how many walks over lists the source holds. With one only, its cost is that of its list; several may
	// stand inside each other.
	loops int
}

// inspect parses a source and looks at its shape.
func inspect(src string) (shape, error) {
	tree, err := parse(src)
	if err != nil {
		return shape{}, err
	}
	s := shape{locals: map[string]bool{}}
	ast.Walk(&tree.Node, visit(func(node *ast.Node) {
		switch n := (*node).(type) {
		case *ast.VariableDeclaratorNode:
			s.locals[n.Name] = true
		case *ast.BuiltinNode:
			if looping(n.Name) {
				s.loops++
			}
		}
	}))
	return s, nil
}

// looping says whether a built-in function walks over a list with a predicate.
func looping(name string) bool {
	i, ok := builtin.Index[name]
	return ok && builtin.Builtins[i].Predicate
}

// rewriter turns an expression into calls of the functions above. It visits nodes from the inside out, so that a chain
// of names grows while its nodes are visited.
type rewriter struct {
	shape
	variables []variable
	err       error
}

func (r *rewriter) Visit(node *ast.Node) {
	if r.err != nil {
		return
	}
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value != "$env" && !r.locals[n.Value] {
			r.lookup(node, []string{n.Value}, false)
		}
	case *ast.MemberNode:
		r.member(node, n)
	case *ast.CallNode:
		r.call(node, n)
	case *ast.BuiltinNode:
		switch {
		case dispatched[n.Name]:
			r.dispatch(node, n.Name, n.Arguments)
		case r.loops > 1 && looping(n.Name) && len(n.Arguments) == 1:
			// sum(list) and count(list), so that their rounds are counted like those of others.
			n.Arguments = append(n.Arguments, &ast.PredicateNode{Node: invoke(tickName, &ast.PointerNode{})})
		}
	case *ast.PredicateNode:
		if r.loops > 1 {
			ast.Patch(&n.Node, invoke(tickName, n.Node))
		}
	case *ast.BinaryNode:
		switch n.Operator {
		case "??":
			r.guard(n.Left)
		case "+":
			ast.Patch(node, invoke(addName, n.Left, n.Right))
		case "in":
			ast.Patch(node, invoke(inName, n.Left, n.Right))
		case "==":
			if r.loops > 0 {
				ast.Patch(node, invoke(equalName, n.Left, n.Right))
			}
		case "!=":
			if r.loops > 0 {
				ast.Patch(node, &ast.UnaryNode{Operator: "not", Node: invoke(equalName, n.Left, n.Right)})
			}
		}
	}
}

// lookup replaces a node by the look-up of a path.
func (r *rewriter) lookup(node *ast.Node, path []string, guarded bool) {
	r.variables = append(r.variables, variable{path: path, guarded: guarded})
	ast.Patch(node, invoke(lookupName, &ast.IntegerNode{Value: len(r.variables) - 1}))
}

// variable gives the index of the variable that a node looks up, -1 where it is something else.
func (r *rewriter) variable(node ast.Node) int {
	call, ok := node.(*ast.CallNode)
	if !ok || len(call.Arguments) != 1 {
		return -1
	}
	if name, ok := call.Callee.(*ast.IdentifierNode); !ok || name.Value != lookupName {
		return -1
	}
	index, ok := call.Arguments[0].(*ast.IntegerNode)
	if !ok {
		return -1
	}
	return index.Value
}

func (r *rewriter) member(node *ast.Node, n *ast.MemberNode) {
	name, constant := n.Property.(*ast.StringNode)
	if root, ok := n.Node.(*ast.IdentifierNode); ok && root.Value == "$env" {
		if !constant {
			r.fail("$env can only be asked for a constant name")
			return
		}
		r.lookup(node, []string{name.Value}, n.Optional)
		return
	}
	i := r.variable(n.Node)
	if i < 0 {
		return
	}
	v := &r.variables[i]
	if !constant {
		if v.path[0] == "sprig" {
			r.fail("sprig's functions can only be called by a constant name")
		}
		return
	}
	path := append(append(make([]string, 0, len(v.path)+1), v.path...), name.Value)
	guarded := n.Optional || v.guarded
	// The shorter path is not read any more.
	v.path = nil
	r.lookup(node, path, guarded)
}

// call turns the call of a function into one that goes through [evaluation.call], where sizes are watched.
func (r *rewriter) call(node *ast.Node, n *ast.CallNode) {
	i := r.variable(n.Callee)
	if i < 0 {
		if m, ok := n.Callee.(*ast.MemberNode); ok {
			if name, ok := m.Property.(*ast.StringNode); ok {
				r.method(node, m.Node, name.Value, n.Arguments)
				return
			}
		}
		r.fail("only functions and methods with constant names can be called")
		return
	}
	path := r.variables[i].path
	r.variables[i].path = nil
	switch {
	case len(path) == 1 && functions[path[0]]:
		r.dispatch(node, path[0], n.Arguments)
	case len(path) == 1:
		r.fail(fmt.Sprintf("there is no function %q", path[0]))
	case len(path) == 2 && path[0] == "sprig":
		if why := refusedSprig[path[1]]; why != "" {
			r.fail(fmt.Sprintf("sprig.%s %s", path[1], why))
			return
		}
		if !hasSprig(path[1]) {
			r.fail(fmt.Sprintf("sprig has no function %q", path[1]))
			return
		}
		r.dispatch(node, "sprig."+path[1], n.Arguments)
	default:
		last := len(path) - 1
		var object ast.Node = &ast.NilNode{}
		r.lookup(&object, path[:last], false)
		r.method(node, object, path[last], n.Arguments)
	}
}

func (r *rewriter) dispatch(node *ast.Node, name string, args []ast.Node) {
	ast.Patch(node, invoke(callName, append([]ast.Node{&ast.StringNode{Value: name}}, args...)...))
}

func (r *rewriter) method(node *ast.Node, object ast.Node, name string, args []ast.Node) {
	ast.Patch(node, invoke(methodName, append([]ast.Node{object, &ast.StringNode{Value: name}}, args...)...))
}

// guard marks the variables left of ?? as guarded.
func (r *rewriter) guard(node ast.Node) {
	ast.Walk(&node, visit(func(n *ast.Node) {
		if i := r.variable(*n); i >= 0 {
			r.variables[i].guarded = true
		}
	}))
}

func (r *rewriter) fail(message string) {
	if r.err == nil {
		r.err = fmt.Errorf("%s", message)
	}
}

type visit func(*ast.Node)

func (v visit) Visit(node *ast.Node) { v(node) }

func invoke(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}

// dispatched are the built-in functions of expr-lang that go through [evaluation.call]: all but those that take a
// predicate, which the virtual machine runs itself, and those whose results are never larger than a number.
var dispatched = dispatchedBuiltins()

func dispatchedBuiltins() map[string]bool {
	small := map[string]bool{"len": true, "type": true, "abs": true, "ceil": true, "floor": true, "round": true, "get": true}
	names := map[string]bool{}
	for _, f := range builtin.Builtins {
		if !f.Predicate && !small[f.Name] {
			names[f.Name] = true
		}
	}
	return names
}
