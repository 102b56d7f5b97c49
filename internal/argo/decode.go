package argo

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// decoder fills our types from a tree and reports every field that nothing knows and every value of the wrong type,
// with its path. It goes on with what was probably meant, where that is clear, so that whatever else is wrong can be
// found too: a field that is misspelt, a number where a text belongs, one entry where a list does.
type decoder struct {
	report func(at mark, path, format string, args ...any)
	warn   func(at mark, path, format string, args ...any)
	// dropped and missing are the paths of values that were left out, and of required ones that are not there.
	dropped, missing []string
}

// decode fills the object that into points to with what is right in n.
func (d *decoder) decode(n *node, path string, into any) {
	d.check(n, reflect.TypeOf(into).Elem(), path)
	if n.dropped {
		n.dropped = false // the document itself is always decoded
		return
	}
	if err := json.Unmarshal(n.json(), into); err != nil {
		// The check above is meant to find everything; this is for what it does not know of.
		d.report(n.mark, path, "cannot be read: %v", err)
		d.dropped = append(d.dropped, path)
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// check drops from n what does not fit the type, and reports it.
func (d *decoder) check(n *node, t reflect.Type, path string) {
	if n.kind == nullNode {
		return // a null is a field that is not given
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		d.checkCustom(n, t, path)
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if d.want(n, mapNode, path) {
			d.checkFields(n, t, path)
		}
	case reflect.Map:
		if d.want(n, mapNode, path) {
			for i, k := range n.keys {
				d.check(n.items[i], t.Elem(), join(path, k))
			}
		}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			d.checkCustom(n, t, path)
			return
		}
		d.checkItems(n, t, path)
	case reflect.String:
		d.want(n, stringNode, path)
	case reflect.Bool:
		d.want(n, boolNode, path)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Uint32, reflect.Int16, reflect.Uint16:
		if d.want(n, numberNode, path) {
			d.checkInt(n, t, path)
		}
	case reflect.Float32, reflect.Float64:
		d.want(n, numberNode, path)
	}
}

// want reports a value of the wrong kind. It says whether it is one, or could be made one; else it is dropped.
func (d *decoder) want(n *node, kind nodeKind, path string) bool {
	if n.kind == kind {
		return true
	}
	hint := ""
	switch {
	case kind == stringNode && (n.kind == numberNode || n.kind == boolNode):
		hint = fmt.Sprintf("; write it in quotes: %q", firstOf(n.written, n.text))
	case kind == numberNode && n.kind == stringNode:
		hint = "; write it without quotes"
	case kind == boolNode && n.kind == stringNode:
		hint = "; write true or false, without quotes"
	}
	d.report(n.mark, path, "must be %s, not %s%s", kind, n.kind, hint)
	if n.become(kind) {
		return true
	}
	d.leave(n, path)
	return false
}

// wantList is want for a list. One entry where a list belongs is taken for a list of one.
func (d *decoder) wantList(n *node, t reflect.Type, path string) bool {
	if n.kind == listNode {
		return true
	}
	hint := "; write [...], or one entry a line with a dash"
	if n.kind == mapNode {
		hint = "; begin each entry with a dash"
	}
	d.report(n.mark, path, "must be %s, not %s%s", listNode, n.kind, hint)
	if n.kind != kindOf(t.Elem()) {
		d.leave(n, path)
		return false
	}
	only := *n
	*n = node{kind: listNode, mark: n.mark, items: []*node{&only}}
	return true
}

// become makes a scalar one of another kind, where it is clear how.
func (n *node) become(kind nodeKind) bool {
	switch {
	case kind == stringNode && (n.kind == numberNode || n.kind == boolNode):
		n.text = firstOf(n.written, n.text)
	case kind == numberNode && n.kind == stringNode:
		number, ok := yamlNumber(n.text)
		if !ok {
			return false
		}
		n.text = number
	case kind == boolNode && n.kind == stringNode && (n.text == "true" || n.text == "false"):
	default:
		return false
	}
	n.kind = kind
	return true
}

func (d *decoder) drop(n *node, path, format string, args ...any) {
	d.report(n.mark, path, format, args...)
	d.leave(n, path)
}

// leave leaves out a value that has been reported.
func (d *decoder) leave(n *node, path string) {
	n.dropped = true
	d.dropped = append(d.dropped, path)
}

// checkCustom tries a type that reads its own JSON.
func (d *decoder) checkCustom(n *node, t reflect.Type, path string) {
	err := json.Unmarshal(n.json(), reflect.New(t).Interface())
	if err == nil {
		return
	}
	message := err.Error()
	if t.PkgPath() != reflect.TypeFor[AnyString]().PkgPath() {
		message = fmt.Sprintf("%s is not a valid %s: %v", shorten(n.text), strings.ToLower(t.Name()), err)
	}
	d.drop(n, path, "%s", message)
}

func (d *decoder) checkInt(n *node, t reflect.Type, path string) {
	bits := t.Bits()
	if t.Kind() == reflect.Uint64 || t.Kind() == reflect.Uint32 || t.Kind() == reflect.Uint16 {
		if _, err := strconv.ParseUint(n.text, 10, bits); err != nil {
			d.drop(n, path, "must be a whole number from 0 to %d, not %s", uint64(math.MaxUint64)>>(64-bits), n.text)
		}
		return
	}
	if _, err := strconv.ParseInt(n.text, 10, bits); err != nil {
		d.drop(n, path, "must be a whole number that fits in %d bits, not %s", bits, n.text)
	}
}

func (d *decoder) checkItems(n *node, t reflect.Type, path string) {
	if !d.wantList(n, t, path) {
		return
	}
	for i, item := range n.items {
		if item.kind == nullNode && t.Elem() != reflect.TypeFor[Item]() {
			d.drop(item, index(path, i), "must not be empty; remove the entry or give it a value")
			continue
		}
		d.check(item, t.Elem(), index(path, i))
	}
}

// kindOf is the kind of value that a type is written as; null where that depends.
func kindOf(t reflect.Type) nodeKind {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
	case t.Kind() == reflect.Struct:
		return mapNode
	case t.Kind() == reflect.String:
		return stringNode
	}
	return nullNode
}

func (d *decoder) checkFields(n *node, t reflect.Type, path string) {
	known := fieldsOf(t)
	for i, key := range n.keys {
		if _, ok := known[key]; !ok && !n.items[i].dropped {
			d.unknown(n, i, t, known, path)
		}
	}
	d.checkRequired(n, t, path)
	for i, key := range n.keys {
		if !n.items[i].dropped {
			d.check(n.items[i], known[key], join(path, key))
		}
	}
}

// unknown reports a field that the type does not have, and takes it for the one that was probably meant, or leaves it
// out. Fields that Argo had once and that its version 4 leaves out with a warning are warned of here too.
func (d *decoder) unknown(n *node, i int, t reflect.Type, known map[string]reflect.Type, path string) {
	key, at := n.keys[i], n.marks[i]
	v := n.items[i]
	v.dropped = true
	if hint, ok := legacyFields[legacyField{t, key}]; ok {
		if hint.warning {
			d.warn(at, join(path, key), "is a field of older versions and has no effect; %s", hint.text)
			return
		}
		d.report(at, join(path, key), "is a field of older versions; %s", hint.text)
		return
	}
	var hint string
	if best := nearest(key, known); best != "" {
		hint = fmt.Sprintf("; did you mean %s?", best)
		if n.get(best) == nil {
			n.keys[i], v.dropped = best, false
		}
	} else if len(known) <= 12 {
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		sort.Strings(names)
		hint = "; known here: " + strings.Join(names, ", ")
	} else {
		hint = "; remove it, or move it to where it belongs"
	}
	d.report(at, join(path, key), "is not a known field%s", hint)
}

type legacyField struct {
	t   reflect.Type
	key string
}

var legacyFields = map[legacyField]struct {
	text    string
	warning bool
}{
	{reflect.TypeFor[Synchronization](), "mutex"}:                {"write mutexes: with a list", true},
	{reflect.TypeFor[Synchronization](), "semaphore"}:            {"write semaphores: with a list", true},
	{reflect.TypeFor[CronWorkflowSpec](), "schedule"}:            {"write schedules: with a list", false},
	{reflect.TypeFor[WorkflowSpec](), "ttlSecondsAfterFinished"}: {"write ttlStrategy.secondsAfterCompletion", false},
	{reflect.TypeFor[WorkflowSpec](), "podPriority"}:             {"write podPriorityClassName", false},
}

// fieldsOf gives the types of a struct's fields by their JSON names, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case name == "" && f.Anonymous:
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			for k, v := range fieldsOf(ft) {
				if _, ok := out[k]; !ok {
					out[k] = v
				}
			}
		case name == "":
			out[f.Name] = f.Type
		default:
			out[name] = f.Type
		}
	}
	return out
}

// nearest gives the known name that key is probably meant to be, or "".
func nearest[T any](key string, known map[string]T) string {
	best, bestDistance := "", 1+len(key)/4
	if len(key) > 64 || len(known) > 2000 {
		return ""
	}
	for name := range known {
		if strings.EqualFold(name, key) {
			return name
		}
		if dist := distance(strings.ToLower(name), strings.ToLower(key)); dist < bestDistance || dist == bestDistance && (best == "" || name < best) {
			best, bestDistance = name, dist
		}
	}
	return best
}

// distance is the number of letters to add, remove or change to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// shorten quotes a text for a message.
func shorten(text string) string {
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return strconv.Quote(text)
}
