// Package build makes the JSON Schemas of the hook protocol.
package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// object is a JSON object that keeps no order: encoding/json sorts its keys, so that the output is the same every time.
type object = map[string]any

// Schemas gives the files by name. folder is where the types' source is, for their comments.
func Schemas(folder string) (map[string][]byte, error) {
	comments, err := ReadComments(folder)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, root := range map[string]struct {
		typ   reflect.Type
		title string
		// unknown allows fields that are not known.
		unknown bool
		change  func(b *builder, schema object)
	}{
		"review-request.json":       {reflect.TypeFor[v1alpha1.TaskReview](), "A task review as Sluice sends it", true, onlyField("request", "response")},
		"review-response.json":      {reflect.TypeFor[v1alpha1.TaskReview](), "A task review as a plugin answers it", false, onlyField("response", "")},
		"review-list-request.json":  {reflect.TypeFor[v1alpha1.TaskReviewList](), "Several task reviews as Sluice sends them", true, listItems("request", "response", "failure")},
		"review-list-response.json": {reflect.TypeFor[v1alpha1.TaskReviewList](), "Several task reviews as a plugin answers them", false, listItems("", "", "")},
		"taskhook.json":             {reflect.TypeFor[v1alpha1.TaskHook](), "A TaskHook or ClusterTaskHook", false, hookKinds},
	} {
		b := &builder{comments: comments, unknown: root.unknown, defs: object{}}
		schema := b.fields(root.typ)
		root.change(b, schema)
		schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
		schema["$id"] = "https://sluice.dev/schema/v1alpha1/" + name
		schema["title"] = root.title
		schema["$defs"] = b.defs
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(schema); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = out.Bytes()
	}
	return files, nil
}

// in gives the object inside an object; an empty one where there is none.
func in(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}

// onlyField makes one half of a review needed, and takes the other away; without other it stays, unread.
func onlyField(needed, other string) func(*builder, object) {
	return func(_ *builder, schema object) {
		schema["required"] = []string{"apiVersion", "kind", needed}
		in(schema, "properties")["kind"] = object{"const": v1alpha1.KindTaskReview}
		delete(in(schema, "properties"), other)
	}
}

func listItems(needed string, others ...string) func(*builder, object) {
	return func(b *builder, schema object) {
		in(schema, "properties")["kind"] = object{"const": v1alpha1.KindTaskReviewList}
		item := in(b.defs, "TaskReviewItem")
		for _, other := range others {
			delete(in(item, "properties"), other)
			delete(b.defs, map[string]string{"response": "TaskReviewResponse", "failure": "TaskReviewFailure"}[other])
		}
		if needed != "" {
			item["required"] = []string{needed}
			return
		}
		item["oneOf"] = []object{{"required": []string{"response"}}, {"required": []string{"failure"}}}
	}
}

func hookKinds(_ *builder, schema object) {
	in(schema, "properties")["kind"] = object{"enum": []string{v1alpha1.KindTaskHook, v1alpha1.KindClusterTaskHook}}
}

// builder turns Go types into schemas.
type builder struct {
	comments Comments
	unknown  bool
	defs     object
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	timeType   = reflect.TypeFor[time.Time]()
	bundleType = reflect.TypeFor[v1alpha1.CABundle]()
)

// schema gives the schema for values of a type.
func (b *builder) schema(t reflect.Type) object {
	switch {
	case t == rawType:
		return object{}
	case t == timeType:
		return object{"type": "string", "format": "date-time"}
	case t == bundleType:
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.Interface:
		return object{}
	case reflect.String:
		s := object{"type": "string"}
		if values := enums[t.Name()]; values != nil {
			s["enum"] = values
		}
		return s
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": b.schema(t.Elem())}
	case reflect.Map:
		s := object{"type": "object"}
		if of := b.schema(t.Elem()); len(of) > 0 {
			s["additionalProperties"] = of
		}
		return s
	case reflect.Struct:
		if _, made := b.defs[t.Name()]; !made {
			b.defs[t.Name()] = object{} // it may refer to itself
			b.defs[t.Name()] = b.fields(t)
		}
		return object{"$ref": "#/$defs/" + t.Name()}
	}
	return object{"type": "integer"}
}

// fields gives the schema of a struct's object.
func (b *builder) fields(t reflect.Type) object {
	properties, required := object{}, []string{}
	b.collect(t, properties, &required)
	s := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	if !b.unknown {
		s["additionalProperties"] = false
	}
	if text := b.comments.types[t.Name()]; text != "" {
		s["description"] = text
	}
	if change := rules[t.Name()]; change != nil {
		change(s)
	}
	return s
}

func (b *builder) collect(t reflect.Type, properties object, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			b.collect(f.Type, properties, required)
			continue
		}
		s := b.schema(f.Type)
		if text := b.comments.fields[t.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		maps.Copy(s, limits[t.Name()+"."+f.Name])
		properties[name] = s
		if !strings.Contains(options, "omitempty") {
			*required = append(*required, name)
		}
	}
}
