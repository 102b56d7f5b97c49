package kfpexpr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
)

// structure is IfPresent or Concat: the two ways in which an argument may be more than a text. They nest either way.
type structure struct {
	IfPresent *ifPresent `json:"IfPresent"`
	Concat    []branch   `json:"Concat"`
}

// ifPresent is Then where the input has a value, else Else.
type ifPresent struct {
	InputName string  `json:"InputName"`
	Then      *branch `json:"Then"`
	Else      *branch `json:"Else"`
}

// branch is a text, a structure, or a list of these.
type branch struct {
	text      *string
	structure *structure
	list      []branch
}

// UnmarshalJSON reads any of the three.
func (b *branch) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, &b.text)
	case '[':
		b.list = []branch{}
		return json.Unmarshal(data, &b.list)
	case '{':
		b.structure = &structure{}
		if err := strict(string(data), b.structure); err != nil {
			return err
		}
		if (b.structure.IfPresent == nil) == (b.structure.Concat == nil) {
			return fmt.Errorf("neither IfPresent nor Concat")
		}
		return nil
	case 'n':
		return nil
	}
	return fmt.Errorf("neither a text, a list nor a structure")
}

func strict(s string, to any) error {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.DisallowUnknownFields()
	return dec.Decode(to)
}

// parseStructure recognises an argument that is a structure. One that only looks like it is a text.
func parseStructure(arg string) (*branch, bool) {
	trimmed := strings.TrimSpace(arg)
	if !strings.HasPrefix(trimmed, "{") || !strings.Contains(trimmed, `"IfPresent"`) && !strings.Contains(trimmed, `"Concat"`) {
		return nil, false
	}
	var b branch
	if err := json.Unmarshal([]byte(trimmed), &b); err != nil || b.structure == nil {
		return nil, false
	}
	return &b, true
}

// maxNesting bounds how deep structures nest.
const maxNesting = 100

// expand gives the arguments that a branch becomes.
func (l *language) expand(b *branch, env expr.Env, depth int) ([]string, error) {
	if b == nil {
		return nil, nil
	}
	if depth > maxNesting {
		return nil, fmt.Errorf("placeholders are nested more than %d deep", maxNesting)
	}
	switch {
	case b.text != nil:
		s, err := l.replace(*b.text, env)
		return []string{s}, err
	case b.list != nil:
		return l.expandAll(b.list, env, depth)
	case b.structure == nil:
		return nil, nil
	case b.structure.IfPresent != nil:
		c := b.structure.IfPresent
		if present(env, c.InputName) {
			return l.expand(c.Then, env, depth+1)
		}
		return l.expand(c.Else, env, depth+1)
	}
	parts, err := l.expandAll(b.structure.Concat, env, depth)
	if err != nil {
		return nil, err
	}
	return []string{strings.Join(parts, "")}, nil
}

func (l *language) expandAll(list []branch, env expr.Env, depth int) ([]string, error) {
	var out []string
	for i := range list {
		parts, err := l.expand(&list[i], env, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
	}
	return out, nil
}

// present says whether an input of the task, parameter or artifact, has a value; null is none.
func present(env expr.Env, name string) bool {
	if v, presence := env.Lookup([]string{"inputs", "parameters", name}); presence == expr.Present && v != nil {
		return true
	}
	return len(artifacts(env, "inputs", name)) > 0
}
