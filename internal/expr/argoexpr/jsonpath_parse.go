package argoexpr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// parseJSONPath reads a path; its first character is $ or @.
func parseJSONPath(path string) (*jsonSteps, error) {
	p := &jsonSteps{}
	for i := 1; i < len(path); {
		deep := false
		if strings.HasPrefix(path[i:], "..") {
			deep = true
			if i += 2; i == len(path) {
				return nil, errors.New(`it ends after ".."`)
			}
		} else if path[i] == '.' {
			if i++; i == len(path) {
				return nil, errors.New(`it ends after "."`)
			}
		} else if path[i] != '[' {
			return nil, fmt.Errorf("%q is not expected at character %d", path[i:i+1], i+1)
		}
		if path[i] == '[' {
			end := closingBracket(path, i)
			if end < 0 {
				return nil, fmt.Errorf("the [ at character %d has no closing ]", i+1)
			}
			step, err := parseSubscript(strings.TrimSpace(path[i+1 : end]))
			if err != nil {
				return nil, err
			}
			step.deep = deep
			p.steps = append(p.steps, step)
			i = end + 1
			continue
		}
		end := i
		for end < len(path) && path[end] != '.' && path[end] != '[' {
			end++
		}
		step := jsonStep{name: path[i:end], deep: deep}
		if step.name == "*" {
			step.kind = wildStep
		}
		p.steps = append(p.steps, step)
		i = end
	}
	return p, nil
}

// parseSubscript reads what stands between brackets.
func parseSubscript(s string) (jsonStep, error) {
	switch {
	case s == "":
		return jsonStep{}, errors.New("brackets are empty")
	case s == "*":
		return jsonStep{kind: wildStep}, nil
	case strings.HasPrefix(s, "?"):
		test, err := parseComparison(s[1:], true)
		if err != nil {
			return jsonStep{}, fmt.Errorf("the filter %q: %w", shorten(s), err)
		}
		return jsonStep{kind: filterStep, test: test}, nil
	case strings.HasPrefix(s, "("):
		script, err := parseComparison(s, true)
		if err != nil {
			return jsonStep{}, fmt.Errorf("the script %q: %w", shorten(s), err)
		}
		return jsonStep{kind: scriptStep, test: script}, nil
	}
	parts, err := splitOutsideQuotes(s, ',')
	if err != nil {
		return jsonStep{}, err
	}
	if len(parts) > 1 {
		union := jsonStep{kind: unionStep}
		for _, part := range parts {
			step, err := parseSubscript(strings.TrimSpace(part))
			if err != nil {
				return jsonStep{}, err
			}
			union.union = append(union.union, step)
		}
		return union, nil
	}
	if quote := s[0]; quote == '\'' || quote == '"' {
		l := lexer{src: s}
		t, err := l.quoted(quote)
		if err != nil {
			return jsonStep{}, err
		}
		if l.pos != len(s) {
			return jsonStep{}, fmt.Errorf("%q is not expected behind a name", shorten(s[l.pos:]))
		}
		return jsonStep{name: t.text}, nil
	}
	if strings.Contains(s, ":") {
		return parseRange(s)
	}
	if n, err := strconv.Atoi(s); err == nil {
		return jsonStep{kind: indexStep, index: n}, nil
	}
	return jsonStep{}, fmt.Errorf("[%s] is neither a number nor a name in quotes", shorten(s))
}

func parseRange(s string) (jsonStep, error) {
	step := jsonStep{kind: rangeStep}
	parts := strings.Split(s, ":")
	if len(parts) > 3 {
		return jsonStep{}, fmt.Errorf("the range [%s] has more than three parts", shorten(s))
	}
	for i, part := range parts {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return jsonStep{}, fmt.Errorf("the range [%s]: %q is no number", shorten(s), shorten(part))
		}
		switch i {
		case 0:
			step.from = &n
		case 1:
			step.to = &n
		case 2:
			if n == 0 {
				return jsonStep{}, fmt.Errorf("the range [%s] has a step of 0", shorten(s))
			}
			step.step = &n
		}
	}
	return step, nil
}

func splitOutsideQuotes(s string, sep byte) ([]string, error) {
	var parts []string
	start, depth := 0, 0
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			switch c {
			case '\\':
				i++
			case quote:
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == sep && depth == 0:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote in [%s] is not closed", shorten(s))
	}
	return append(parts, s[start:]), nil
}
