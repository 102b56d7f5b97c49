package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// nodeTerm is one condition of a node field selector.
type nodeTerm struct {
	field, value string
	not          bool
}

// parseNodeSelector reads "displayName=a,phase!=Failed": fields are displayName, name, templateName, phase, id and
// inputs.parameters.NAME.value; all terms must hold.
func parseNodeSelector(text string) ([]nodeTerm, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var out []nodeTerm
	for part := range strings.SplitSeq(text, ",") {
		field, value, ok := strings.Cut(part, "=")
		t := nodeTerm{field: strings.TrimSpace(field), value: strings.TrimSpace(strings.TrimPrefix(value, "="))}
		if f, not := strings.CutSuffix(t.field, "!"); not {
			t.field, t.not = strings.TrimSpace(f), true
		}
		known := t.field == "displayName" || t.field == "name" || t.field == "templateName" || t.field == "phase" || t.field == "id" ||
			(strings.HasPrefix(t.field, "inputs.parameters.") && strings.HasSuffix(t.field, ".value"))
		if !ok || !known {
			return nil, usage("node field selector %q: write field=value or field!=value, with fields displayName, name, templateName, phase, id, inputs.parameters.NAME.value", part)
		}
		out = append(out, t)
	}
	return out, nil
}

func (t nodeTerm) matches(n *engine.Node) bool {
	var have string
	switch t.field {
	case "displayName":
		have = n.Name
	case "name":
		have = n.Path
	case "id":
		have = strconv.Itoa(int(n.ID))
	case "phase":
		have = string(n.Phase)
	case "templateName":
		if tmpl := n.Template(); tmpl != nil {
			have = tmpl.Name
		}
	default:
		name := strings.TrimSuffix(strings.TrimPrefix(t.field, "inputs.parameters."), ".value")
		v, ok := n.Inputs.Parameters[name]
		if !ok {
			return t.not
		}
		have = valueText(v)
	}
	return (have == t.value) != t.not
}

// selectNodes gives the nodes that a selector matches; none for an empty one.
func selectNodes(s *engine.State, text string) ([]*engine.Node, error) {
	terms, err := parseNodeSelector(text)
	if err != nil || len(terms) == 0 {
		return nil, err
	}
	var out []*engine.Node
	for n := range s.Nodes() {
		all := true
		for _, t := range terms {
			all = all && t.matches(n)
		}
		if all {
			out = append(out, n)
		}
	}
	return out, nil
}

// parseLabelSelector reads "a=b,c!=d,e,!f".
func parseLabelSelector(text string) ([]store.LabelTerm, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var out []store.LabelTerm
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		key, value, ok := strings.Cut(part, "=")
		t := store.LabelTerm{Key: strings.TrimSpace(key), Value: strings.TrimSpace(strings.TrimPrefix(value, "=")), Exists: !ok}
		if ok {
			t.Key, t.Not = strings.CutSuffix(t.Key, "!")
		} else {
			t.Key, t.Not = strings.CutPrefix(t.Key, "!")
		}
		t.Key = strings.TrimSpace(t.Key)
		if t.Key == "" || strings.ContainsAny(t.Key, " ()") {
			return nil, fmt.Errorf("label selector %q: write key=value, key!=value, key or !key", part)
		}
		out = append(out, t)
	}
	return out, nil
}
