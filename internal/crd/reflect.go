package crd

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema/generate/build"
	"github.com/sluice-ml/sluice/internal/argo"
)

// builder turns Go types into structural schemas: every object says which fields it has, nothing refers to anything.
type builder struct {
	comments map[string]build.Comments
	within   []reflect.Type // structs around the present one
}

// maxDescribed is how deep things are described: what is below repeats itself in many places.
const maxDescribed = 6

// module is where our own types are.
const module = "github.com/sluice-ml/sluice/"

// apiPackage is where the fields that are always written are those that must be there.
var apiPackage = reflect.TypeFor[v1alpha1.TaskHook]().PkgPath()

// anything is a schema that takes every value and keeps it.
func anything() object { return object{"x-kubernetes-preserve-unknown-fields": true} }

// open is an object whose fields are kept, whatever they are.
func open() object { return object{"type": "object", "x-kubernetes-preserve-unknown-fields": true} }

func intOrString() object {
	return object{"x-kubernetes-int-or-string": true, "anyOf": []any{object{"type": "integer"}, object{"type": "string"}}}
}

// known are the types whose JSON is not what their Go form suggests.
func known(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[argo.AnyString](), reflect.TypeFor[argo.Item](), reflect.TypeFor[argo.Any](), reflect.TypeFor[json.RawMessage]():
		return anything()
	case reflect.TypeFor[argo.IntOrString](), reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[resource.Quantity]():
		return intOrString()
	case reflect.TypeFor[argo.Amount]():
		return object{"type": "number"}
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time", "nullable": true}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "format": "byte"}
	case reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[argo.WorkflowStatus]():
		return open()
	}
	return nil
}

// root is the schema of a kind.
func (b *builder) root(t reflect.Type) object {
	s := b.schema(t)
	properties := in(s, "properties")
	properties["apiVersion"], properties["kind"] = object{"type": "string"}, object{"type": "string"}
	properties["metadata"] = object{"type": "object"} // the API server knows it
	if _, has := properties["status"]; has {
		properties["status"] = open()
	}
	s["required"] = slices.DeleteFunc(required(s), func(name string) bool { return name == "apiVersion" || name == "kind" || name == "metadata" })
	return s
}

func (b *builder) schema(t reflect.Type) object {
	if s := known(t); s != nil {
		return s
	}
	switch t.Kind() {
	case reflect.Pointer:
		return b.schema(t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int32:
		return object{"type": "integer", "format": "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Uint32:
		return object{"type": "integer", "format": "int64"}
	case reflect.Slice:
		return object{"type": "array", "items": b.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.schema(t.Elem())}
	case reflect.Struct:
		return b.structure(t)
	}
	return anything()
}

// structure is the schema of a struct. A template inside of a template (inline) is not looked into, since a structural schema
// cannot recur; nor is what lies deeper in Kubernetes' own types: the API server checks the pods that are made of them, and knows
// fields that this program does not. The stores of artifacts, of which a workflow has a dozen in each of several dozen places, are
// looked into one level deep, too, so that a definition stays well below what etcd takes.
func (b *builder) structure(t reflect.Type) object {
	foreign := !ours(t)
	if slices.Contains(b.within, t) || slices.ContainsFunc(b.within, shallow) {
		return open()
	}
	b.within = append(b.within, t)
	defer func() { b.within = b.within[:len(b.within)-1] }()
	s := object{"type": "object"}
	properties := object{}
	kept := foreign
	must := b.collect(t, properties, &kept)
	if t.PkgPath() != apiPackage {
		must = slices.Clone(argo.RequiredFields(t))
	}
	if t == reflect.TypeFor[argo.WorkflowSpec]() {
		sluice := open()
		sluice["description"] = "What Sluice adds to Argo's fields: a Kubeflow pipeline and its runtime configuration, for one."
		properties["sluice"] = sluice
	}
	if len(properties) > 0 {
		s["properties"] = properties
	}
	if len(must) > 0 {
		slices.Sort(must)
		s["required"] = must
	}
	if kept {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
	b.describe(s, t)
	return s
}

func (b *builder) describe(s object, t reflect.Type) {
	if text := b.commentsOf(t).Type(t.Name()); text != "" && len(b.within) < maxDescribed {
		s["description"] = text
	}
}

func (b *builder) commentsOf(t reflect.Type) build.Comments {
	return b.comments[strings.TrimPrefix(t.PkgPath(), module)]
}

// collect adds a struct's fields, and gives those that are always written. kept is set where an embedded struct is one of
// Kubernetes' own.
func (b *builder) collect(t reflect.Type, properties object, kept *bool) (always []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			*kept = *kept || !ours(f.Type)
			b.within = append(b.within, f.Type)
			always = append(always, b.collect(f.Type, properties, kept)...)
			b.within = b.within[:len(b.within)-1]
			continue
		}
		s := maps.Clone(b.schema(f.Type))
		if text := b.commentsOf(t).Field(t.Name(), f.Name); text != "" && len(b.within) < maxDescribed {
			s["description"] = text
		}
		properties[name] = s
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			always = append(always, name)
		}
	}
	return always
}

// shallow says whether what lies inside a type is not looked into.
func shallow(t reflect.Type) bool {
	return !ours(t) || strings.HasSuffix(t.Name(), "Artifact") && t != reflect.TypeFor[argo.Artifact]()
}

func ours(t reflect.Type) bool {
	return t.PkgPath() == "" || strings.HasPrefix(t.PkgPath()+"/", module)
}

// in gives the object inside an object.
func in(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}

func required(s object) []string {
	list, _ := s["required"].([]string)
	return list
}
