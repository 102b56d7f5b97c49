package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// maxItems bounds a loop, so that a slip in a count does not take the machine's memory.
const maxItems = 1_000_000

// loopItems gives the items of a loop.
func (x *step) loopItems(l *program.Loop, sc *scope) ([]any, error) {
	switch {
	case l.Sequence != nil:
		return x.sequence(l.Sequence, sc)
	case l.Param != nil && l.Artifacts:
		list, ok, err := x.artifacts(l.Param, sc)
		if err != nil {
			return nil, fmt.Errorf("loop over artifacts: %w", err)
		}
		if !ok {
			return nil, nil
		}
		items := make([]any, len(list))
		for i := range list {
			items[i] = []program.Artifact{list[i]}
		}
		return items, nil
	case l.Param != nil:
		v, ok, err := x.value(l.Param, sc)
		if err != nil {
			return nil, fmt.Errorf("loop items: %w", err)
		}
		if !ok {
			return nil, fmt.Errorf("loop items have no value")
		}
		return asList(v)
	}
	items := make([]any, len(l.Items))
	for i, item := range l.Items {
		v, err := x.resolveTree(normal(item), sc)
		if err != nil {
			return nil, fmt.Errorf("loop item %d: %w", i, err)
		}
		items[i] = v
	}
	return items, nil
}

// asList takes a list, or a text that is one in JSON.
func asList(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case string:
		var list []any
		if err := decode([]byte(v), &list); err != nil {
			return nil, fmt.Errorf("loop items must be a JSON list, got %s", brief(v))
		}
		for i := range list {
			list[i] = normal(list[i])
		}
		return list, nil
	case nil:
		return nil, nil
	}
	return nil, fmt.Errorf("loop items must be a JSON list, got %T", v)
}

// brief shortens a text for a message.
func brief(s string) string {
	if len(s) > 80 {
		s = s[:77] + "..."
	}
	return strconv.Quote(s)
}

// sequence counts as Argo's withSequence does: items are formatted numbers.
func (x *step) sequence(q *program.Sequence, sc *scope) ([]any, error) {
	number := func(name, src string, fallback int64) (int64, error) {
		if src == "" {
			return fallback, nil
		}
		t, err := x.m.lang.Text(src, x.env(sc))
		if err != nil {
			return 0, fmt.Errorf("withSequence.%s: %w", name, err)
		}
		v, err := strconv.ParseInt(strings.TrimSpace(t), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("withSequence.%s: %s is no whole number", name, brief(t))
		}
		return v, nil
	}
	start, err := number("start", q.Start, 0)
	if err != nil {
		return nil, err
	}
	var size uint64 // items after the first
	down := false
	if q.Count != "" {
		count, err := number("count", q.Count, 0)
		if err != nil {
			return nil, err
		}
		if count <= 0 {
			return nil, nil
		}
		size = uint64(count) - 1
		if start > math.MaxInt64-int64(min(size, maxItems)) {
			return nil, fmt.Errorf("withSequence.start: %d is too large", start)
		}
	} else {
		end, err := number("end", q.End, 0)
		if err != nil {
			return nil, err
		}
		if down = end < start; down {
			size = uint64(start) - uint64(end)
		} else {
			size = uint64(end) - uint64(start)
		}
	}
	if size >= maxItems {
		return nil, fmt.Errorf("withSequence: more than %d items", maxItems)
	}
	format := q.Format
	if format == "" {
		format = "%d"
	}
	items := make([]any, 0, size+1)
	for k := range int64(size) + 1 {
		if down {
			k = -k
		}
		items = append(items, fmt.Sprintf(format, start+k))
	}
	return items, nil
}

// resolveTree resolves the placeholders in every text of a JSON value.
func (x *step) resolveTree(v any, sc *scope) (any, error) {
	switch v := v.(type) {
	case string:
		if !hasTag(v) {
			return v, nil
		}
		return x.m.lang.Text(v, x.env(sc))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			r, err := x.resolveTree(v[i], sc)
			if err != nil {
				return nil, err
			}
			out[i] = r
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // in one order, since each evaluation draws a seed
			r, err := x.resolveTree(v[k], sc)
			if err != nil {
				return nil, err
			}
			out[k] = r
		}
		return out, nil
	}
	return v, nil
}

// loopChild counts an item that is done.
func (x *step) loopChild(n, c *Node) {
	switch {
	case c.Phase == ErrorPhase:
		n.work.Errored++
	case c.Phase == FailedPhase:
		n.work.Failed++
	case c.Phase == SucceededPhase:
		n.work.Succeeded++
	}
	if c.Phase.Bad() {
		x.failedChild(n, c)
		x.unbegun(n, c)
	}
	n.work.Open--
	if n.work.Open > 0 || n.Stage != StageRun {
		return
	}
	n.Phase = SucceededPhase
	switch {
	case n.work.Errored > 0 && n.work.Failed > 0: // it is as the last of the bad items, as with Argo
		for _, id := range n.Children {
			if c := x.s.Node(id); !c.Hooked && c.Phase.Bad() {
				n.Phase = c.Phase
			}
		}
	case n.work.Errored > 0:
		n.Phase = ErrorPhase
	case n.work.Failed > 0:
		n.Phase = FailedPhase
	}
	x.watch(n, string(n.Phase))
	if n.work.Calls > 0 {
		n.Stage = StageCalls
		x.s.touch(n)
		return
	}
	x.done(n)
}

func decode(data []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}
