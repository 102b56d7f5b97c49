package argocheck

import (
	"regexp"
	"strings"
)

// evaluate computes a substituted condition of the simple kind: words compared by ==, != and =~, joined by &&, ||, !
// and parentheses. Of anything else it says that it does not know. It shares nothing with the program under test.
func evaluate(condition string) (value, known bool) {
	p := &conditionParser{tokens: tokens.FindAllString(condition, -1)}
	value = p.or()
	return value, !p.bad && p.next == len(p.tokens)
}

var tokens = regexp.MustCompile(`==|!=|=~|&&|\|\||[()!]|"[^"]*"|'[^']*'|[^\s()!=&|]+`)

type conditionParser struct {
	tokens []string
	next   int
	bad    bool
}

func (p *conditionParser) peek() string {
	if p.next < len(p.tokens) {
		return p.tokens[p.next]
	}
	return ""
}

func (p *conditionParser) take() string {
	token := p.peek()
	if token == "" {
		p.bad = true
	}
	p.next++
	return token
}

func (p *conditionParser) or() bool {
	value := p.and()
	for p.peek() == "||" {
		p.take()
		right := p.and()
		value = value || right
	}
	return value
}

func (p *conditionParser) and() bool {
	value := p.not()
	for p.peek() == "&&" {
		p.take()
		right := p.not()
		value = value && right
	}
	return value
}

func (p *conditionParser) not() bool {
	switch p.peek() {
	case "!":
		p.take()
		return !p.not()
	case "(":
		p.take()
		value := p.or()
		p.bad = p.bad || p.take() != ")"
		return value
	}
	return p.comparison()
}

func (p *conditionParser) comparison() bool {
	left := word(p.take())
	switch p.peek() {
	case "==":
		p.take()
		return left == word(p.take())
	case "!=":
		p.take()
		return left != word(p.take())
	case "=~":
		p.take()
		matched, err := regexp.MatchString(word(p.take()), left)
		p.bad = p.bad || err != nil
		return matched
	}
	p.bad = p.bad || left != "true" && left != "false"
	return left == "true"
}

func word(token string) string {
	return strings.Trim(token, `"'`)
}
