package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
)

// UnknownFields says what to do with fields that this version does not know.
type UnknownFields int

const (
	// RefuseUnknown makes them an error: answers and registrations.
	RefuseUnknown UnknownFields = iota
	// IgnoreUnknown passes over them: requests, so that an older plugin understands a newer Sluice.
	IgnoreUnknown
)

// decodeStrict reads one JSON value into v (a pointer), exactly: names of fields as they are written in the tags, no
// field twice, nothing after the value. It reports everything that does not fit, each with its path under root.
// Numbers in untyped places become int64 where they are whole and fit, else float64.
func decodeStrict(data []byte, v any, root string, unknown UnknownFields) error {
	var check json.RawMessage
	if err := json.Unmarshal(data, &check); err != nil {
		return Problems{{Path: root, Message: syntaxMessage(data, err)}}
	}
	c := checker{unknown: unknown}
	c.value(check, reflect.TypeOf(v).Elem(), root)
	if err := c.problems.Err(); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return Problems{{Path: root, Message: strings.TrimPrefix(err.Error(), "json: ")}}
	}
	normalize(reflect.ValueOf(v))
	return nil
}

// syntaxMessage explains why data is no JSON, with its beginning.
func syntaxMessage(data []byte, err error) string {
	text := strings.TrimSpace(string(data[:min(len(data), 60)]))
	if text == "" {
		return "is empty; a JSON object is expected"
	}
	return fmt.Sprintf("is not JSON (%v); it begins with %q", err, text)
}

// checker compares JSON with a Go type and collects what does not fit.
type checker struct {
	unknown  UnknownFields
	problems Problems
}

var (
	rawType         = reflect.TypeFor[json.RawMessage]()
	timeType        = reflect.TypeFor[time.Time]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// value checks that data, which is valid JSON, can be a t.
func (c *checker) value(data json.RawMessage, t reflect.Type, path string) {
	if len(c.problems) >= 20 {
		return // enough to work on
	}
	if string(data) == "null" {
		return // the same as absent
	}
	switch {
	case t == rawType || t.Kind() == reflect.Interface:
		return
	case t == timeType:
		var at time.Time
		if json.Unmarshal(data, &at) != nil {
			c.problems.add(path, `must be a time such as "2026-01-31T12:00:00Z"`)
		}
		return
	case reflect.PointerTo(t).Implements(unmarshalerType):
		if err := json.Unmarshal(data, reflect.New(t).Interface()); err != nil {
			c.problems.add(path, err.Error())
		}
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		c.value(data, t.Elem(), path)
	case reflect.Struct:
		c.object(data, path, fieldsOf(t))
	case reflect.Map:
		c.members(data, path, func(key string, value json.RawMessage) {
			c.value(value, t.Elem(), path+"."+key)
		})
	case reflect.Slice:
		c.list(data, t.Elem(), path)
	default:
		c.scalar(data, t, path)
	}
}

// object checks an object against a struct's fields.
func (c *checker) object(data json.RawMessage, path string, fields map[string]reflect.Type) {
	c.members(data, path, func(key string, value json.RawMessage) {
		at := joinPath(path, key)
		t, known := fields[key]
		switch {
		case known:
			c.value(value, t, at)
		case c.unknown == RefuseUnknown:
			names := make([]string, 0, len(fields))
			for name := range fields {
				names = append(names, name)
			}
			message := "unknown field"
			if near := nearest(key, names); near != "" {
				message = fmt.Sprintf("unknown field, did you mean %q?", near)
			}
			c.problems.add(at, message)
		}
	})
}

// members calls f for each member of an object, in order.
func (c *checker) members(data json.RawMessage, path string, f func(key string, value json.RawMessage)) {
	if len(data) == 0 || data[0] != '{' {
		c.problems.add(path, "must be an object, not "+kindOf(data))
		return
	}
	seen := map[string]bool{}
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		c.problems.add(path, err.Error())
		return
	}
	for dec.More() {
		token, err := dec.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || dec.Decode(&value) != nil {
			c.problems.add(path, "cannot be read")
			return
		}
		if seen[key] {
			c.problems.add(joinPath(path, key), "is there twice")
		}
		seen[key] = true
		f(key, value)
	}
}

// list checks an array's items.
func (c *checker) list(data json.RawMessage, item reflect.Type, path string) {
	if data[0] != '[' {
		c.problems.add(path, "must be a list, not "+kindOf(data))
		return
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		c.problems.add(path, err.Error())
		return
	}
	for i, value := range items {
		c.value(value, item, path+"["+strconv.Itoa(i)+"]")
	}
}

// scalar checks a text, number or boolean.
func (c *checker) scalar(data json.RawMessage, t reflect.Type, path string) {
	if json.Unmarshal(data, reflect.New(t).Interface()) == nil {
		return
	}
	want := map[reflect.Kind]string{reflect.String: "a text", reflect.Bool: "true or false", reflect.Float64: "a number"}[t.Kind()]
	if want == "" {
		want = "a whole number"
	}
	c.problems.add(path, "must be "+want+", not "+kindOf(data))
}

// fieldsOf gives the types of a struct's fields by their JSON names, embedded structs included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	cached, _ := fieldCache.Load(t)
	if fields, ok := cached.(map[string]reflect.Type); ok {
		return fields
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(fields, fieldsOf(f.Type))
		case name != "-" && name != "":
			fields[name] = f.Type
		}
	}
	fieldCache.Store(t, fields)
	return fields
}

// fieldCache remembers fieldsOf by type; it holds nothing but facts about types.
var fieldCache sync.Map

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// kindOf names what sort of JSON value data is, with the value itself where it is short.
func kindOf(data json.RawMessage) string {
	if len(data) == 0 {
		return "nothing"
	}
	switch data[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	}
	if len(data) > 40 {
		return string(data[:40]) + "…"
	}
	return string(data)
}
