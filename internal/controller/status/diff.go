package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// merge gives the merge patch (RFC 7396) that leads from one JSON object to another; nil where they are the same.
func merge(from, to map[string]any) map[string]any {
	var patch map[string]any
	set := func(k string, v any) {
		if patch == nil {
			patch = map[string]any{}
		}
		patch[k] = v
	}
	for k := range from {
		if _, stays := to[k]; !stays {
			set(k, nil)
		}
	}
	for k, v := range to {
		old, there := from[k]
		if there && same(old, v) {
			continue
		}
		oldMap, wasMap := old.(map[string]any)
		newMap, isMap := v.(map[string]any)
		if wasMap && isMap {
			if inner := merge(oldMap, newMap); inner != nil {
				set(k, inner)
			}
			continue
		}
		set(k, v)
	}
	return patch
}

// same compares JSON values: numbers by their text, whatever Go type they came in.
func same(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// nodesPatch gives the merge patch for the nodes that differ; nil where none does.
func nodesPatch(from, to map[string]json.RawMessage) (map[string]any, error) {
	patch := map[string]any{}
	for id := range from {
		if _, stays := to[id]; !stays {
			patch[id] = nil
		}
	}
	for id, data := range to {
		old, there := from[id]
		if there && bytes.Equal(old, data) {
			continue
		}
		if !there {
			patch[id] = data
			continue
		}
		before, err := object(old)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", id, err)
		}
		after, err := object(data)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", id, err)
		}
		if p := merge(before, after); p != nil {
			patch[id] = p
		}
	}
	if len(patch) == 0 {
		return nil, nil
	}
	return patch, nil
}

// keepWaiting leaves suspend nodes that wait as they lie in the cluster: a person may have put outputs into them.
func keepWaiting(there, now map[string]json.RawMessage) {
	for id, data := range now {
		old, is := there[id]
		if is && !bytes.Equal(old, data) && waits(old) && waits(data) {
			now[id] = old
		}
	}
}

func waits(node json.RawMessage) bool {
	if !bytes.Contains(node, []byte(`"Suspend"`)) {
		return false // most nodes, without a closer look
	}
	var n struct{ Type, Phase string }
	return json.Unmarshal(node, &n) == nil && n.Type == "Suspend" && n.Phase == "Running"
}

// ours gives the part of a patch of labels or annotations that concerns the new ones: what others put there stays.
// Of what was ours before, only what follows the state is taken away.
func ours(from, to map[string]string) map[string]any {
	patch := map[string]any{}
	for k, v := range to {
		if old, there := from[k]; !there || old != v {
			patch[k] = v
		}
	}
	for _, k := range []string{LabelPhase, LabelCompleted} {
		_, was := from[k]
		if _, is := to[k]; was && !is {
			patch[k] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// with gives a copy of a map with another entry.
func with(m map[string]any, k string, v any) map[string]any {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]any{}
	}
	out[k] = v
	return out
}
