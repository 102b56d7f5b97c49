package argo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// mergeKeys are the lists that are merged entry by entry, with the field that tells entries apart. All other lists
// replace each other as a whole, as in Kubernetes' strategic merge.
var mergeKeys = map[string]string{
	"templates": "name", "parameters": "name", "artifacts": "name", "tasks": "name",
	"volumes": "name", "env": "name", "initContainers": "name", "sidecars": "name", "imagePullSecrets": "name",
	"volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort",
	"tolerations": "key", "hostAliases": "ip",
}

// merge lays over on top of base: over's fields win, base fills in. Entries of over come first in merged lists, so that
// paths into over stay right.
func merge(base, over any, field string) any {
	switch o := over.(type) {
	case map[string]any:
		b, ok := base.(map[string]any)
		if !ok {
			return over
		}
		out := make(map[string]any, len(b)+len(o))
		maps.Copy(out, b)
		for k, v := range o {
			if old, ok := out[k]; ok && field != "hooks" && field != "labelsFrom" {
				v = merge(old, v, k)
			}
			out[k] = v
		}
		return out
	case []any:
		b, ok := base.([]any)
		key := mergeKeys[field]
		if !ok || key == "" {
			return over
		}
		return mergeLists(b, o, field, key)
	}
	if over == nil {
		return base
	}
	return over
}

func mergeLists(base, over []any, field, key string) []any {
	old := map[string]any{}
	id := func(v any) string {
		m, _ := v.(map[string]any)
		return fmt.Sprint(m[key])
	}
	for _, v := range base {
		old[id(v)] = v
	}
	out := make([]any, 0, len(base)+len(over))
	seen := map[string]bool{}
	for _, v := range over {
		seen[id(v)] = true
		if b, ok := old[id(v)]; ok && !replaces(field, b, v) {
			v = merge(b, v, "")
		}
		out = append(out, v)
	}
	for _, v := range base {
		if !seen[id(v)] {
			out = append(out, v)
		}
	}
	return out
}

// replaces says whether an entry stands for itself: a template or volume, a parameter that has a value of its own, an
// artifact that lies in another kind of store.
func replaces(field string, base, over any) bool {
	b, _ := base.(map[string]any)
	o, _ := over.(map[string]any)
	switch field {
	case "templates", "volumes":
		return true
	case "parameters":
		return o["value"] != nil || o["valueFrom"] != nil || o["default"] != nil
	case "artifacts":
		return storeOf(b) != storeOf(o)
	}
	return false
}

func storeOf(artifact map[string]any) string {
	for _, s := range []string{"s3", "git", "http", "artifactory", "hdfs", "raw", "oss", "gcs", "azure", "plugin", "folder"} {
		if artifact[s] != nil {
			return s
		}
	}
	return ""
}

// overlay gives a new T: over with base filled in.
func overlay[T any](base, over *T) (*T, error) {
	b, err := generic(base)
	if err != nil {
		return nil, err
	}
	o, err := generic(over)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(merge(b, o, ""))
	if err != nil {
		return nil, err
	}
	out := new(T)
	return out, json.Unmarshal(data, out)
}

// generic gives a value's JSON as maps and lists.
func generic(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var out any
	return out, dec.Decode(&out)
}

// mergeSpecs gives a workflow's spec with what it takes from the template that it refers to.
func mergeSpecs(template, workflow *WorkflowSpec) (*WorkflowSpec, error) {
	base := *template
	base.Suspend = nil // only the workflow itself says whether it starts suspended
	return overlay(&base, workflow)
}

// withDefaults gives a template with what templateDefaults has for its kind.
func withDefaults(t, defaults *Template) (*Template, error) {
	if defaults == nil {
		return t, nil
	}
	d := *defaults
	d.Name = ""
	kind := t.kind()
	for k, unset := range map[string]func(){
		"container": func() { d.Container = nil }, "containerSet": func() { d.ContainerSet = nil },
		"script": func() { d.Script = nil }, "resource": func() { d.Resource = nil }, "steps": func() { d.Steps = nil },
		"dag": func() { d.DAG = nil }, "suspend": func() { d.Suspend = nil }, "data": func() { d.Data = nil },
		"http": func() { d.HTTP = nil }, "plugin": func() { d.Plugin = nil },
	} {
		if k != kind {
			unset()
		}
	}
	return overlay(&d, t)
}

// kind names what sort of template it is: the first that is set, "" for none.
func (t *Template) kind() string {
	if kinds := t.kinds(); len(kinds) > 0 {
		return kinds[0]
	}
	return ""
}

// kinds names all that are set.
func (t *Template) kinds() []string {
	var out []string
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"container", t.Container != nil}, {"containerSet", t.ContainerSet != nil}, {"script", t.Script != nil},
		{"resource", t.Resource != nil}, {"steps", t.Steps != nil}, {"dag", t.DAG != nil}, {"suspend", t.Suspend != nil},
		{"data", t.Data != nil}, {"http", t.HTTP != nil}, {"plugin", t.Plugin != nil},
	} {
		if k.set {
			out = append(out, k.name)
		}
	}
	return out
}
