package argoexpr

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// JSON paths as the function jsonpath takes them: $.a.b, $['a'], $[0], $[-1], $[1:3], $[0,2], $.*, $..name, filters
// [?(@.age > 42 && @.name == 'x')], scripts [(@.length-1)] and .length. A path without wildcard, range, union, filter
// or ".." gives the one value, and it is an error when that does not exist; any other gives a list of what there is.

// jsonSteps is a parsed path.
type jsonSteps struct{ steps []jsonStep }

type stepKind int

const (
	childStep stepKind = iota
	indexStep
	unionStep
	rangeStep
	wildStep
	filterStep
	scriptStep
)

type jsonStep struct {
	kind stepKind
	// deep steps apply to everything below ("..").
	deep  bool
	name  string
	index int
	// union holds names and indices.
	union []jsonStep
	// from, to and step of a range; nil where they are not written.
	from, to, step *int
	test           *node
}

// many says whether a step can give more than one value.
func (s *jsonStep) many() bool {
	return s.deep || s.kind == unionStep || s.kind == rangeStep || s.kind == wildStep || s.kind == filterStep
}

func jsonPath(path string, value any) (any, error) {
	if len(path) > maxExpressionSource {
		return nil, fmt.Errorf("a path of %d bytes is longer than the limit of %d", len(path), maxExpressionSource)
	}
	path = strings.TrimSpace(path)
	if !strings.HasPrefix(path, "$") {
		return nil, fmt.Errorf("the path %q does not begin with $", shorten(path))
	}
	steps, err := parseJSONPath(path)
	if err != nil {
		return nil, fmt.Errorf("the path %q: %w", shorten(path), err)
	}
	v, err := steps.query(value, value)
	if err != nil {
		return nil, fmt.Errorf("the path %q: %w", shorten(path), err)
	}
	return v, nil
}

// budget bounds how many values a query looks at: every ".." walks over all that is below.
type budget struct{ left int }

func (b *budget) take(n int) error {
	if b.left -= n; b.left < 0 {
		return errors.New("it looks at too many values")
	}
	return nil
}

// query follows a path from a value.
func (p *jsonSteps) query(from, root any) (any, error) {
	b := &budget{left: maxSteps}
	values, many := []any{from}, false
	for i := range p.steps {
		step := &p.steps[i]
		var next []any
		for _, v := range values {
			found, err := step.apply(v, root, b)
			if err != nil {
				if many || step.many() {
					// What has no such part is left out.
					if b.left < 0 {
						return nil, err
					}
					continue
				}
				return nil, err
			}
			next = append(next, found...)
		}
		many = many || step.many()
		values = next
	}
	if many {
		if values == nil {
			values = []any{}
		}
		return values, nil
	}
	return values[0], nil
}

func (s *jsonStep) apply(v, root any, b *budget) ([]any, error) {
	if err := b.take(1); err != nil {
		return nil, err
	}
	if !s.deep {
		return s.direct(v, root, b)
	}
	var found []any
	var walk func(v any, depth int) error
	walk = func(v any, depth int) error {
		if err := b.take(1); err != nil {
			return err
		}
		if depth > maxDepth {
			return fmt.Errorf("the value is nested deeper than %d levels", maxDepth)
		}
		if here, err := s.direct(v, root, b); err == nil {
			if err := b.take(len(here)); err != nil {
				return err
			}
			found = append(found, here...)
		}
		for _, e := range elements(v) {
			if err := walk(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return found, walk(v, 0)
}

// elements gives the values of a list, or of a map in the order of its keys.
func elements(v any) []any {
	switch t := v.(type) {
	case []any:
		return t
	case map[string]any:
		keys := make([]string, 0, len(t))
		for k := range t {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		list := make([]any, len(keys))
		for i, k := range keys {
			list[i] = t[k]
		}
		return list
	}
	return nil
}

// direct applies a step to one value.
func (s *jsonStep) direct(v, root any, b *budget) ([]any, error) {
	switch s.kind {
	case childStep:
		return child(v, s.name)
	case indexStep:
		return element(v, s.index)
	case wildStep:
		list := elements(v)
		if list == nil {
			return nil, fmt.Errorf("%s has no elements", kindOf(v))
		}
		return list, b.take(len(list))
	case unionStep:
		var found []any
		for i := range s.union {
			if part, err := s.union[i].direct(v, root, b); err == nil {
				found = append(found, part...)
			}
		}
		return found, b.take(len(found))
	case rangeStep:
		return s.slice(v, b)
	case filterStep:
		var found []any
		for _, e := range elements(v) {
			if err := b.take(1); err != nil {
				return nil, err
			}
			// A test that cannot be applied to an element does not hold for it.
			if result, err := s.test.eval(&here{element: e, root: root}); err == nil && truthy(result) {
				found = append(found, e)
			}
		}
		return found, nil
	case scriptStep:
		key, err := s.test.eval(&here{element: v, root: root})
		if err != nil {
			return nil, err
		}
		switch k := key.(type) {
		case string:
			return child(v, k)
		case float64:
			return element(v, int(k))
		}
		return nil, fmt.Errorf("a script gave %s, which is no index and no name", kindOf(key))
	}
	return nil, errors.New("unknown step")
}

func child(v any, name string) ([]any, error) {
	switch t := v.(type) {
	case map[string]any:
		if e, ok := t[name]; ok {
			return []any{e}, nil
		}
		if name == "length" {
			return []any{float64(len(t))}, nil
		}
	case []any:
		if name == "length" {
			return []any{float64(len(t))}, nil
		}
	case string:
		if name == "length" {
			return []any{float64(utf8.RuneCountInString(t))}, nil
		}
	}
	return nil, fmt.Errorf("there is no %q in %s", shorten(name), kindOf(v))
}

func element(v any, i int) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s has no element %d", kindOf(v), i)
	}
	at := i
	if at < 0 {
		at += len(list)
	}
	if at < 0 || at >= len(list) {
		return nil, fmt.Errorf("there is no element %d in a list of %d", i, len(list))
	}
	return []any{list[at]}, nil
}

func (s *jsonStep) slice(v any, b *budget) ([]any, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, fmt.Errorf("%s has no elements by number", kindOf(v))
	}
	bound := func(p *int, absent int) int {
		if p == nil {
			return absent
		}
		n := *p
		if n < 0 {
			n += len(list)
		}
		return min(max(n, 0), len(list))
	}
	from, to := bound(s.from, 0), bound(s.to, len(list))
	step := 1
	if s.step != nil {
		step = *s.step
	}
	var found []any
	if step > 0 {
		for i := from; i < to; i += min(step, len(list)) {
			found = append(found, list[i])
		}
	} else {
		// A negative step walks the same range from its end.
		for i := to - 1; i >= from; i -= min(-step, len(list)) {
			found = append(found, list[i])
		}
	}
	return found, b.take(len(found))
}

// truthy says whether a filter's result counts: everything but false, null and the empty text.
func truthy(v any) bool {
	switch t := v.(type) {
	case nil:
		return false
	case bool:
		return t
	case string:
		return t != ""
	}
	return true
}
