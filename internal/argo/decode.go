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
// with its path.
type decoder struct {
	report func(line int, path, format string, args ...any)
	warn   func(line int, path, format string, args ...any)
}

// decode fills the object that into points to with what is right in n. It says whether all of it was.
func (d *decoder) decode(n *node, path string, into any) bool {
	ok := d.check(n, reflect.TypeOf(into).Elem(), path)
	if n.dropped {
		n.dropped = false // the document itself is always decoded
		return false
	}
	if err := json.Unmarshal(n.json(), into); err != nil {
		// The check above is meant to find everything; this is for what it does not know of.
		d.report(n.line, path, "cannot be read: %v", err)
		return false
	}
	return ok
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// check drops from n what does not fit the type, and reports it. It says whether everything fitted.
func (d *decoder) check(n *node, t reflect.Type, path string) bool {
	if n.kind == nullNode {
		return true // a null is a field that is not given
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return d.checkCustom(n, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return d.want(n, mapNode, path) && d.checkFields(n, t, path)
	case reflect.Map:
		if !d.want(n, mapNode, path) {
			return false
		}
		ok := true
		for i, k := range n.keys {
			ok = d.check(n.items[i], t.Elem(), join(path, k)) && ok
		}
		return ok
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return d.checkCustom(n, t, path)
		}
		return d.checkItems(n, t, path)
	case reflect.String:
		return d.want(n, stringNode, path)
	case reflect.Bool:
		return d.want(n, boolNode, path)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Uint32, reflect.Int16, reflect.Uint16:
		return d.want(n, numberNode, path) && d.checkInt(n, t, path)
	case reflect.Float32, reflect.Float64:
		return d.want(n, numberNode, path)
	}
	return true
}

// want reports a value of the wrong kind and drops it.
func (d *decoder) want(n *node, kind nodeKind, path string) bool {
	if n.kind == kind {
		return true
	}
	hint := ""
	switch {
	case kind == stringNode && (n.kind == numberNode || n.kind == boolNode):
		hint = fmt.Sprintf("; write it in quotes: %q", firstOf(n.written, n.text))
	case kind == listNode && n.kind == mapNode:
		hint = "; begin each entry with a dash"
	case kind == listNode:
		hint = "; write [...], or one entry a line with a dash"
	case kind == numberNode && n.kind == stringNode:
		hint = "; write it without quotes"
	case kind == boolNode && n.kind == stringNode:
		hint = "; write true or false, without quotes"
	}
	d.drop(n, path, "must be %s, not %s%s", kind, n.kind, hint)
	return false
}

func (d *decoder) drop(n *node, path, format string, args ...any) {
	n.dropped = true
	d.report(n.line, path, format, args...)
}

// checkCustom tries a type that reads its own JSON.
func (d *decoder) checkCustom(n *node, t reflect.Type, path string) bool {
	err := json.Unmarshal(n.json(), reflect.New(t).Interface())
	if err == nil {
		return true
	}
	message := err.Error()
	if t.PkgPath() != reflect.TypeFor[AnyString]().PkgPath() {
		message = fmt.Sprintf("%s is not a valid %s: %v", shorten(n.text), strings.ToLower(t.Name()), err)
	}
	d.drop(n, path, "%s", message)
	return false
}

func (d *decoder) checkInt(n *node, t reflect.Type, path string) bool {
	bits := t.Bits()
	unsigned := t.Kind() == reflect.Uint64 || t.Kind() == reflect.Uint32 || t.Kind() == reflect.Uint16
	if unsigned {
		if _, err := strconv.ParseUint(n.text, 10, bits); err != nil {
			d.drop(n, path, "must be a whole number from 0 to %d, not %s", uint64(math.MaxUint64)>>(64-bits), n.text)
			return false
		}
		return true
	}
	if _, err := strconv.ParseInt(n.text, 10, bits); err != nil {
		d.drop(n, path, "must be a whole number that fits in %d bits, not %s", bits, n.text)
		return false
	}
	return true
}

func (d *decoder) checkItems(n *node, t reflect.Type, path string) bool {
	if !d.want(n, listNode, path) {
		return false
	}
	ok := true
	for i, item := range n.items {
		if item.kind == nullNode && t.Elem() != reflect.TypeFor[Item]() {
			d.drop(item, index(path, i), "must not be empty; remove the entry or give it a value")
			ok = false
			continue
		}
		ok = d.check(item, t.Elem(), index(path, i)) && ok
	}
	return ok
}

func (d *decoder) checkFields(n *node, t reflect.Type, path string) bool {
	known := fieldsOf(t)
	ok := d.checkRequired(n, t, path)
	for i, key := range n.keys {
		if n.items[i].dropped {
			continue
		}
		ft, found := known[key]
		if !found {
			n.items[i].dropped = true
			ok = d.unknown(n.items[i].line, t, known, path, key) && ok
			continue
		}
		ok = d.check(n.items[i], ft, join(path, key)) && ok
	}
	return ok
}

// unknown reports a field that the type does not have. Fields that Argo had once and that its version 4 leaves out
// with a warning are warned of here too; it says whether that is all.
func (d *decoder) unknown(line int, t reflect.Type, known map[string]reflect.Type, path, key string) bool {
	if hint, ok := legacyFields[legacyField{t, key}]; ok {
		if hint.warning {
			d.warn(line, join(path, key), "is a field of older versions and has no effect; %s", hint.text)
			return true
		}
		d.report(line, join(path, key), "is a field of older versions; %s", hint.text)
		return false
	}
	var hint string
	if best := nearest(key, known); best != "" {
		hint = fmt.Sprintf("; did you mean %s?", best)
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
	d.report(line, join(path, key), "is not a known field%s", hint)
	return false
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
