package status

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Limit is how large an object may become before its nodes are compressed, as in Argo.
const Limit = 1 << 20

// form is how nodes were written.
type form int

const (
	plain form = iota
	packed
	omitted
)

// Page is what was written last, and gives the patches that lead on from it.
type Page struct {
	last Content
	form form
	// base is the size of the object without its status; limit the size that it may have.
	base, limit int
}

// NewPage starts from what lies in the cluster. base is the size of the object without its status; limit 0 is [Limit].
func NewPage(there Content, compressed bool, base, limit int) *Page {
	if limit == 0 {
		limit = Limit
	}
	p := &Page{last: there, base: base, limit: limit}
	if compressed {
		p.form = packed
	}
	return p
}

// Rebase starts over from what lies in the cluster now: somebody else has written.
func (p *Page) Rebase(there Content, compressed bool) {
	p.last, p.form = there, plain
	if compressed {
		p.form = packed
	}
}

// Shrink has less written into the object from now on: the API server found it too large. It is false where it is small
// already.
func (p *Page) Shrink() bool {
	const least = 64 << 10
	if p.limit /= 2; p.limit < least {
		return false
	}
	return true
}

// Packed says whether nodes are written compressed, so that each write has all of them.
func (p *Page) Packed() bool { return p.form != plain }

// NodesOmitted is the type of the condition of an object whose nodes do not fit into it.
const NodesOmitted = "NodesOmitted"

// Next gives the merge patch that shows a content, nil where there is nothing to write, and what to do once it was
// written.
func (p *Page) Next(c Content) (patch map[string]any, written func(), err error) {
	keepWaiting(p.last.Nodes, c.Nodes)
	next := plain
	var text string
	if p.base+c.Size > p.limit {
		if text, err = packNodes(c.Nodes); err != nil {
			return nil, nil, err
		}
		next = packed
		if p.base+len(text) > p.limit {
			next = omitted
		}
	}
	rest := c.Rest
	if next == omitted {
		conditions, _ := rest["conditions"].([]any)
		rest = with(rest, "conditions", append(conditions[:len(conditions):len(conditions)], map[string]any{
			"type": NodesOmitted, "status": "True",
			"message": fmt.Sprintf("%d nodes do not fit into the object; the API serves them", len(c.Nodes)),
		}))
	}
	status := merge(p.last.Rest, rest)
	put := func(k string, v any) { status = with(status, k, v) }
	switch {
	case next == plain && p.form == plain:
		nodes, err := nodesPatch(p.last.Nodes, c.Nodes)
		if err != nil {
			return nil, nil, err
		}
		if nodes != nil {
			put("nodes", nodes)
		}
	case next == plain:
		put("compressedNodes", nil)
		put("nodes", c.Nodes)
	default:
		changed := next != p.form || !maps.EqualFunc(p.last.Nodes, c.Nodes, func(a, b json.RawMessage) bool { return string(a) == string(b) })
		if changed && next == packed {
			put("compressedNodes", text)
		}
		if changed && p.form == plain {
			put("nodes", nil)
		}
		if changed && next == omitted && p.form == packed {
			put("compressedNodes", nil)
		}
	}
	meta := map[string]any{}
	if l := ours(p.last.Labels, c.Labels); l != nil {
		meta["labels"] = l
	}
	if a := ours(p.last.Annotations, c.Annotations); a != nil {
		meta["annotations"] = a
	}
	patch = map[string]any{}
	if len(status) > 0 {
		patch["status"] = status
	}
	if len(meta) > 0 {
		patch["metadata"] = meta
	}
	if len(patch) == 0 {
		return nil, func() {}, nil
	}
	return patch, func() {
		p.last, p.form = c, next
		p.last.Rest = rest
	}, nil
}

// packNodes writes the nodes as one compressed JSON object.
func packNodes(nodes map[string]json.RawMessage) (string, error) {
	data, err := json.Marshal(nodes)
	if err != nil {
		return "", fmt.Errorf("write nodes: %w", err)
	}
	return Pack(data)
}
