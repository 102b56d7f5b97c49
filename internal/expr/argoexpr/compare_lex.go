package argoexpr

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The comparison language is what "when" and the filters of JSON paths are written in. Argo hands "when" to govaluate
// and turns every variable into a text, so that {{x}} == heads needs no quotes. Here a bare word may also hold dashes,
// dots, slashes and colons between its letters, where govaluate sees arithmetic on texts and gives up.

type tokenKind int

const (
	endToken tokenKind = iota
	textToken
	wordToken
	numberToken
	boolToken
	operatorToken
	pathToken
)

type token struct {
	kind   tokenKind
	text   string
	number float64
	pos    int
}

func (t token) String() string {
	if t.kind == endToken {
		return "the end"
	}
	return strconv.Quote(shorten(t.text))
}

// lexer cuts a source into tokens. With paths set, "@" and "$" begin a path into JSON.
type lexer struct {
	src   string
	pos   int
	paths bool
	last  token
}

// operators, the longer ones first.
var operators = []string{
	"&&", "||", "==", "!=", "<=", ">=", "=~", "!~", "**", "<<", ">>", "??",
	"<", ">", "!", "+", "-", "*", "/", "%", "?", ":", "(", ")", ",", "&", "|", "^", "~",
}

// date is a bare date, which is no subtraction.
var date = regexp.MustCompile(`^\d{4}-\d\d-\d\d([T:].*)?$`)

// operand says whether a value may stand here, and not an operator between two.
func (l *lexer) operand() bool {
	switch l.last.kind {
	case operatorToken:
		return l.last.text != ")"
	case endToken:
		return true
	}
	return false
}

func (l *lexer) next() (token, error) {
	t, err := l.read()
	l.last = t
	return t, err
}

func (l *lexer) read() (token, error) {
	for l.pos < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.pos:])
		if !unicode.IsSpace(r) {
			break
		}
		l.pos += n
	}
	start := l.pos
	if start >= len(l.src) {
		return token{kind: endToken, pos: start}, nil
	}
	switch c := l.src[start]; {
	case c == '\'' || c == '"':
		return l.quoted(c)
	case c == '[':
		return l.bracketed()
	case l.paths && (c == '@' || c == '$'):
		return l.path()
	case l.operand() && l.wordStart():
		return l.word()
	}
	for _, op := range operators {
		if strings.HasPrefix(l.src[start:], op) {
			l.pos += len(op)
			return token{kind: operatorToken, text: op, pos: start}, nil
		}
	}
	if l.wordStart() {
		return l.word()
	}
	if l.src[start] == '=' {
		return token{}, fmt.Errorf("a single = at character %d: equality is ==", start+1)
	}
	if strings.HasPrefix(l.src[start:], "{{") {
		return token{}, fmt.Errorf("%s at character %d was not substituted: there is no such variable here", shorten(l.src[start:]), start+1)
	}
	r, _ := utf8.DecodeRuneInString(l.src[start:])
	return token{}, fmt.Errorf("invalid token %q at character %d (hint: put texts with special characters in quotes)", string(r), start+1)
}

// quoted reads a text up to the same quote; a backslash takes the next character as it is.
func (l *lexer) quoted(quote byte) (token, error) {
	start := l.pos
	var b strings.Builder
	for i := start + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\\' && i+1 < len(l.src):
			i++
			b.WriteByte(l.src[i])
		case c == quote:
			l.pos = i + 1
			return token{kind: textToken, text: b.String(), pos: start}, nil
		default:
			b.WriteByte(c)
		}
	}
	return token{}, fmt.Errorf("the text that begins with %s at character %d has no closing quote", shorten(l.src[start:]), start+1)
}

// bracketed reads [a name with any characters], which govaluate takes as a variable and Argo as a text.
func (l *lexer) bracketed() (token, error) {
	start := l.pos
	end := strings.IndexByte(l.src[start:], ']')
	if end < 0 {
		return token{}, fmt.Errorf("the [ at character %d has no closing ]", start+1)
	}
	l.pos = start + end + 1
	return token{kind: textToken, text: l.src[start+1 : start+end], pos: start}, nil
}

// wordStart says whether a word or a number begins here.
func (l *lexer) wordStart() bool {
	r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
	if wordRune(r) {
		return true
	}
	// A path like /tmp/x: where a value is expected, a slash divides nothing.
	return l.operand() && (r == '/' && !l.paths || r == '#')
}

func wordRune(r rune) bool {
	switch r {
	case '_', '.', '@', '$', '\\':
		return true
	case utf8.RuneError:
		return false
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// word reads a bare word or a number.
func (l *lexer) word() (token, error) {
	start := l.pos
	var b strings.Builder
	i := start
	for i < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[i:])
		switch {
		case r == '\\' && i+n < len(l.src):
			_, m := utf8.DecodeRuneInString(l.src[i+n:])
			b.WriteString(l.src[i+n : i+n+m])
			i += n + m
			continue
		case wordRune(r):
		case l.paths:
			n = 0
		case i == start:
		case separator(r):
			// Part of a word only between its letters, and a slash behind them.
			rest := strings.TrimLeft(l.src[i:], "-/:#")
			if next, _ := utf8.DecodeRuneInString(rest); !wordRune(next) && !(r == '/' && ends(l.src[i+n:])) {
				n = 0
			}
		default:
			n = 0
		}
		if n == 0 {
			break
		}
		b.WriteString(l.src[i : i+n])
		i += n
	}
	text := b.String()
	l.pos = i
	if text == "" {
		return token{}, fmt.Errorf("invalid token %q at character %d", l.src[start:start+1], start+1)
	}
	if c := text[0]; c >= '0' && c <= '9' || c == '.' {
		if number, ok := parseNumber(text); ok {
			return token{kind: numberToken, text: text, number: number, pos: start}, nil
		}
		// 5-3 and 4/2 are arithmetic; anything else that begins with a digit is a word: 2024-01-31, 1.2.3, 5f3a-9c.
		if cut := strings.IndexAny(text, "-/"); cut > 0 && !date.MatchString(text) && strings.Trim(text, "0123456789.-/") == "" {
			if number, ok := parseNumber(text[:cut]); ok {
				l.pos = start + cut
				return token{kind: numberToken, text: text[:cut], number: number, pos: start}, nil
			}
		}
	}
	switch text {
	case "true", "false":
		return token{kind: boolToken, text: text, pos: start}, nil
	}
	return token{kind: wordToken, text: text, pos: start}, nil
}

func separator(r rune) bool { return r == '-' || r == '/' || r == ':' || r == '#' }

// ends says whether a word may end here, as in "/tmp/ == x" or "(a/, b)".
func ends(rest string) bool {
	return rest == "" || strings.ContainsAny(rest[:1], " \t\r\n),")
}

func parseNumber(text string) (float64, bool) {
	if hex, ok := strings.CutPrefix(text, "0x"); ok {
		n, err := strconv.ParseUint(hex, 16, 64)
		return float64(n), err == nil
	}
	if strings.ContainsAny(text, "_xXpPiInN") {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// path reads a path into JSON inside a filter: @.name, @['name'], $.a[0], and so on.
func (l *lexer) path() (token, error) {
	start := l.pos
	i := start + 1
	for i < len(l.src) {
		c := l.src[i]
		if c == '[' {
			end := closingBracket(l.src, i)
			if end < 0 {
				return token{}, fmt.Errorf("the [ at character %d has no closing ]", i+1)
			}
			i = end + 1
			continue
		}
		r, n := utf8.DecodeRuneInString(l.src[i:])
		if c == '*' && l.src[i-1] == '.' || c == '.' || c == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) && r != utf8.RuneError {
			i += n
			continue
		}
		break
	}
	l.pos = i
	return token{kind: pathToken, text: l.src[start:i], pos: start}, nil
}

// closingBracket finds the bracket that closes the one at i, minding quotes.
func closingBracket(src string, i int) int {
	depth := 0
	var quote byte
	for ; i < len(src); i++ {
		c := src[i]
		switch {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '[' || c == '(':
			depth++
		case c == ']' || c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
