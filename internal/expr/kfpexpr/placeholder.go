package kfpexpr

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
)

// placeholder is a parsed placeholder: its steps, none for "{{$}}", and its text without braces for messages.
type placeholder struct {
	tag   string
	steps []string
}

const opening, closing = "{{$", "}}"

// parsePlaceholder reads a placeholder at the start of s, which begins with [opening]. It returns how long it is.
func parsePlaceholder(s string) (placeholder, int, bool) {
	i := len(opening)
	var steps []string
	for {
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, closing):
			return placeholder{tag: s[2:i], steps: steps}, i + len(closing), true
		case strings.HasPrefix(rest, "."):
			n := 1
			for n < len(rest) && isNameByte(rest[n]) {
				n++
			}
			if n == 1 {
				return placeholder{}, 0, false
			}
			steps = append(steps, rest[1:n])
			i += n
		case strings.HasPrefix(rest, "["):
			step, n, ok := parseQuoted(rest)
			if !ok {
				return placeholder{}, 0, false
			}
			steps = append(steps, step)
			i += n
		default:
			return placeholder{}, 0, false
		}
	}
}

// parseQuoted reads "['x']", "[”x”]" or "[\"x\"]".
func parseQuoted(s string) (string, int, bool) {
	for _, q := range []string{"''", "'", `"`} {
		if !strings.HasPrefix(s[1:], q) {
			continue
		}
		start := 1 + len(q)
		end := strings.Index(s[start:], q+"]")
		if end < 0 {
			return "", 0, false
		}
		return s[start : start+end], start + end + len(q) + 1, true
	}
	return "", 0, false
}

func isNameByte(b byte) bool {
	return b == '_' || b == '-' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// wholePlaceholder says whether s is nothing but one placeholder.
func wholePlaceholder(s string) (placeholder, bool) {
	if !strings.HasPrefix(s, opening) {
		return placeholder{}, false
	}
	p, n, ok := parsePlaceholder(s)
	return p, ok && n == len(s)
}

// replace puts values in the place of placeholders, in one pass. Braces that are no placeholder of ours stay.
func (l *language) replace(src string, env expr.Env) (string, error) {
	start := strings.Index(src, opening)
	if start < 0 {
		return src, nil
	}
	var b strings.Builder
	for start >= 0 {
		b.WriteString(src[:start])
		src = src[start:]
		p, n, ok := parsePlaceholder(src)
		if ok {
			v, known, err := l.resolve(p, env)
			if err != nil {
				return "", err
			}
			if known {
				if v == nil {
					return "", &expr.UnresolvedError{Tag: p.tag}
				}
				b.WriteString(text(v))
				src = src[n:]
				start = strings.Index(src, opening)
				continue
			}
		}
		b.WriteString(opening)
		src = src[len(opening):]
		start = strings.Index(src, opening)
	}
	b.WriteString(src)
	return b.String(), nil
}

// Placeholders gives the steps of all placeholders in src, in order: what a front end needs to find references.
func Placeholders(src string) [][]string {
	var out [][]string
	for {
		i := strings.Index(src, opening)
		if i < 0 {
			return out
		}
		src = src[i:]
		if p, n, ok := parsePlaceholder(src); ok {
			out = append(out, p.steps)
			src = src[n:]
			continue
		}
		src = src[len(opening):]
	}
}

// Rewrite replaces placeholders in src by what replacement returns for their steps; false leaves one as it is.
func Rewrite(src string, replacement func(steps []string) (string, bool)) string {
	var b strings.Builder
	for {
		i := strings.Index(src, opening)
		if i < 0 {
			b.WriteString(src)
			return b.String()
		}
		b.WriteString(src[:i])
		src = src[i:]
		n := len(opening)
		put := opening
		if p, length, ok := parsePlaceholder(src); ok {
			n, put = length, src[:length]
			if r, replaced := replacement(p.steps); replaced {
				put = r
			}
		}
		b.WriteString(put)
		src = src[n:]
	}
}
