package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Resolve gives the body with every text put through text, and command lines through args. Bodies without placeholders
// are given back without a copy of their parts.
func (b Body) Resolve(text func(string) (string, error), args func([]string) ([]string, error)) (Body, error) {
	r := resolver{text: text, args: args}
	b.Script = r.str("source", b.Script)
	b.ExecutorOutput = r.str("executorOutput", b.ExecutorOutput)
	b.Patch = r.str("podSpecPatch", b.Patch)
	b.Data = r.json("data", b.Data)
	b.Plugin = r.json("plugin", b.Plugin)
	b.Resource = r.json("resource", b.Resource)
	b.Pod = r.json("pod", b.Pod)
	b.PythonCommand = r.list("command", b.PythonCommand)
	if len(b.Containers) > 0 {
		b.Containers = slices.Clone(b.Containers)
	}
	for i := range b.Containers {
		b.Containers[i] = r.container(b.Containers[i])
	}
	if len(b.Volumes) > 0 {
		b.Volumes = slices.Clone(b.Volumes)
	}
	for i := range b.Volumes {
		b.Volumes[i].Source = r.str("volumes", b.Volumes[i].Source)
	}
	if b.Request != nil {
		q := *b.Request
		q.Method, q.URL, q.Body = r.str("http.method", q.Method), r.str("http.url", q.URL), r.str("http.body", q.Body)
		q.Headers = r.env("http.headers", q.Headers)
		b.Request = &q
	}
	if b.Import != nil {
		m := *b.Import
		m.Metadata = r.metadata(m.Metadata)
		b.Import = &m
	}
	return b, r.err
}

// WithoutPod leaves out what only a cluster needs.
func (b Body) WithoutPod() Body {
	b.Pod, b.Patch = nil, ""
	if slices.ContainsFunc(b.Containers, func(c Container) bool { return len(c.Raw) > 0 }) {
		b.Containers = slices.Clone(b.Containers)
		for i := range b.Containers {
			b.Containers[i].Raw = nil
		}
	}
	return b
}

// resolver keeps the first error, which names the field.
type resolver struct {
	text func(string) (string, error)
	args func([]string) ([]string, error)
	err  error
}

func (r *resolver) str(field, s string) string {
	if r.err != nil || s == "" {
		return s
	}
	t, err := r.text(s)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", field, err)
		return s
	}
	return t
}

func (r *resolver) list(field string, l []string) []string {
	if r.err != nil || len(l) == 0 {
		return l
	}
	out, err := r.args(l)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", field, err)
		return l
	}
	return out
}

func (r *resolver) json(field string, j JSON) JSON {
	if r.err != nil {
		return j
	}
	out, err := ResolveJSON(j, r.text)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", field, err)
		return j
	}
	return out
}

func (r *resolver) env(field string, vars []EnvVar) []EnvVar {
	if len(vars) == 0 {
		return vars
	}
	vars = slices.Clone(vars)
	for i := range vars {
		v := &vars[i]
		v.Value = r.str(field+"."+v.Name, v.Value)
		v.Secret, v.ConfigMap, v.Key = r.str(field, v.Secret), r.str(field, v.ConfigMap), r.str(field, v.Key)
	}
	return vars
}

func (r *resolver) container(c Container) Container {
	c.Image, c.WorkingDir = r.str("image", c.Image), r.str("workingDir", c.WorkingDir)
	c.Command, c.Args = r.list("command", c.Command), r.list("args", c.Args)
	c.CPULimit, c.MemoryLimit = r.str("resources", c.CPULimit), r.str("resources", c.MemoryLimit)
	c.Retries, c.RetryDelay = r.str("retryStrategy", c.Retries), r.str("retryStrategy", c.RetryDelay)
	c.Env = r.env("env", c.Env)
	c.Raw = r.json("container", c.Raw)
	if len(c.Mounts) > 0 {
		c.Mounts = slices.Clone(c.Mounts)
		for i := range c.Mounts {
			c.Mounts[i].Path = r.str("volumeMounts", c.Mounts[i].Path)
			c.Mounts[i].SubPath = r.str("volumeMounts", c.Mounts[i].SubPath)
		}
	}
	return c
}

func (r *resolver) metadata(m map[string]any) map[string]any {
	if r.err != nil || len(m) == 0 {
		return m
	}
	v, err := resolveValue(m, r.text)
	if err == nil {
		v, err = resolveKeys(v, r.text)
	}
	if err != nil {
		r.err = fmt.Errorf("metadata: %w", err)
		return m
	}
	resolved, ok := v.(map[string]any)
	if !ok {
		return m
	}
	return resolved
}

// resolveKeys puts every key inside a JSON value through text.
func resolveKeys(v any, text func(string) (string, error)) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			r, err := resolveKeys(v[i], text)
			if err != nil {
				return nil, err
			}
			v[i] = r
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // in one order, since texts may draw random values
			key, err := text(k)
			if err != nil {
				return nil, err
			}
			if out[key], err = resolveKeys(v[k], text); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// ResolveJSON puts every text inside a piece of JSON through text, keys included: a resource or label may be named by a
// parameter.
func ResolveJSON(j JSON, text func(string) (string, error)) (JSON, error) {
	if !bytes.Contains(j, []byte("{{")) {
		return j, nil
	}
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	v, err := resolveValue(v, text)
	if err == nil {
		v, err = resolveKeys(v, text)
	}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

func resolveValue(v any, text func(string) (string, error)) (any, error) {
	switch v := v.(type) {
	case string:
		return text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			r, err := resolveValue(v[i], text)
			if err != nil {
				return nil, err
			}
			out[i] = r
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // in one order, since texts may draw random values
			r, err := resolveValue(v[k], text)
			if err != nil {
				return nil, err
			}
			out[k] = r
		}
		return out, nil
	}
	return v, nil
}
