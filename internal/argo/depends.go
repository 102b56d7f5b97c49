package argo

import (
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// dependsTree is a parsed depends text: a word with an operand, or an operator over args.
type dependsTree struct {
	op     program.DependsOp
	args   []*dependsTree
	task   string
	result program.Result
}

// dependsResults are the results that a task named in a depends text can be asked for.
var dependsResults = map[string]program.Result{
	"Succeeded": program.Succeeded, "Failed": program.Failed, "Errored": program.Errored, "Skipped": program.Skipped,
	"Omitted": program.Omitted, "Daemoned": program.Daemoned, "AnySucceeded": program.AnySucceeded, "AllFailed": program.AllFailed,
}

// parseDepends reads a depends text: task names, with a result after a dot, joined by &&, || and !, with parentheses.
// ! binds closest, && closer than ||. Errors say at which character.
func parseDepends(src string) (*dependsTree, error) {
	p := &dependsParser{src: src}
	t, err := p.or(0)
	if err != nil {
		return nil, err
	}
	if p.skip(); p.pos < len(src) {
		return nil, p.errorf("%q does not belong here; join tasks with && or ||", shortRest(src[p.pos:]))
	}
	return t, nil
}

type dependsParser struct {
	src string
	pos int
}

// maxDependsDepth bounds the nesting of parentheses and negations.
const maxDependsDepth = 100

func (p *dependsParser) errorf(format string, args ...any) error {
	return fmt.Errorf("at character %d: %s", p.pos+1, fmt.Sprintf(format, args...))
}

func (p *dependsParser) skip() {
	for p.pos < len(p.src) && strings.ContainsRune(" \t\r\n", rune(p.src[p.pos])) {
		p.pos++
	}
}

// take moves over an operator if it comes next.
func (p *dependsParser) take(op string) bool {
	p.skip()
	if strings.HasPrefix(p.src[p.pos:], op) {
		p.pos += len(op)
		return true
	}
	return false
}

func (p *dependsParser) or(depth int) (*dependsTree, error) {
	return p.chain("||", program.Or, func() (*dependsTree, error) {
		return p.chain("&&", program.And, func() (*dependsTree, error) { return p.operand(depth) })
	})
}

func (p *dependsParser) chain(sign string, op program.DependsOp, next func() (*dependsTree, error)) (*dependsTree, error) {
	first, err := next()
	if err != nil {
		return nil, err
	}
	args := []*dependsTree{first}
	for p.take(sign) {
		t, err := next()
		if err != nil {
			return nil, err
		}
		args = append(args, t)
	}
	if len(args) == 1 {
		return first, nil
	}
	return &dependsTree{op: op, args: args}, nil
}

func (p *dependsParser) operand(depth int) (*dependsTree, error) {
	if depth > maxDependsDepth {
		return nil, p.errorf("is nested more than %d levels deep", maxDependsDepth)
	}
	if p.take("!") {
		t, err := p.operand(depth + 1)
		if err != nil {
			return nil, err
		}
		return &dependsTree{op: program.Not, args: []*dependsTree{t}}, nil
	}
	if p.take("(") {
		t, err := p.or(depth + 1)
		if err != nil {
			return nil, err
		}
		if !p.take(")") {
			return nil, p.errorf("a ) is missing")
		}
		return t, nil
	}
	return p.word()
}

// word reads a task's name and, after a dot, a result.
func (p *dependsParser) word() (*dependsTree, error) {
	p.skip()
	name := p.name()
	if name == "" {
		if p.pos >= len(p.src) {
			return nil, p.errorf("a task's name is missing at the end")
		}
		return nil, p.errorf("expected a task's name, found %q", shortRest(p.src[p.pos:]))
	}
	t := &dependsTree{op: program.Is, task: name}
	if p.pos >= len(p.src) || p.src[p.pos] != '.' {
		return t, nil
	}
	p.pos++
	word := p.name()
	r, ok := dependsResults[word]
	if !ok {
		return nil, p.errorf("%q is no result of a task; use Succeeded, Failed, Errored, Skipped, Omitted, Daemoned, AnySucceeded or AllFailed", word)
	}
	t.result = r
	return t, nil
}

func (p *dependsParser) name() string {
	start := p.pos
	for p.pos < len(p.src) {
		ch := p.src[p.pos]
		if ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '-' || ch == '_' {
			p.pos++
			continue
		}
		break
	}
	return p.src[start:p.pos]
}

func shortRest(s string) string {
	if len(s) > 20 {
		return s[:20]
	}
	return s
}

// tasks lists the names in the text, each once, in order.
func (t *dependsTree) tasks() []string {
	var out []string
	seen := map[string]bool{}
	var walk func(*dependsTree)
	walk = func(t *dependsTree) {
		if t.op == program.Is && !seen[t.task] {
			seen[t.task] = true
			out = append(out, t.task)
		}
		for _, a := range t.args {
			walk(a)
		}
	}
	walk(t)
	return out
}

// bind turns names into indices of calls. lookup also gives the results that a name alone asks for.
func (t *dependsTree) bind(lookup func(name string) (int, []program.Result, bool)) (*program.Depends, error) {
	if t.op != program.Is {
		out := &program.Depends{Op: t.op}
		for _, a := range t.args {
			arg, err := a.bind(lookup)
			if err != nil {
				return nil, err
			}
			out.Args = append(out.Args, arg)
		}
		return out, nil
	}
	n, results, ok := lookup(t.task)
	if !ok {
		return nil, fmt.Errorf("there is no task %q", t.task)
	}
	if t.result != "" {
		return &program.Depends{Op: program.Is, Call: n, Result: t.result}, nil
	}
	return anyOf(n, results), nil
}
