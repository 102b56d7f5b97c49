package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/jsonpath"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// conditions say when a resource template has succeeded or failed. They are written as label selectors whose keys are
// paths in the object.
type conditions struct{ success, failure labels.Requirements }

func parseConditions(success, failure string) (conditions, error) {
	var c conditions
	for _, one := range []struct {
		name, text string
		into       *labels.Requirements
	}{{"success", success, &c.success}, {"fail", failure, &c.failure}} {
		if one.text == "" {
			continue
		}
		s, err := labels.Parse(one.text)
		if err != nil {
			return c, fmt.Errorf("%s condition '%s' failed to parse: %w", one.name, one.text, err)
		}
		*one.into, _ = s.Requirements()
	}
	return c, nil
}

func (c conditions) any() bool { return len(c.success)+len(c.failure) > 0 }

// met says whether the object has succeeded; an error says that it has failed. One failure condition is enough, and all of
// success are needed. Without any of success an object counts that has not failed: Argo's rule.
func (c conditions) met(object map[string]any) (bool, error) {
	for _, r := range c.failure {
		if r.Matches(pathLabels(object)) {
			return false, fmt.Errorf("failure condition '%s' evaluated true", r.String())
		}
	}
	for _, r := range c.success {
		if !r.Matches(pathLabels(object)) {
			return false, nil
		}
	}
	return true, nil
}

// pathLabels is an object whose values are looked up by their paths: "status.conditions.0.type".
type pathLabels map[string]any

// Lookup gives the value at a path as a text: what is no text as JSON.
func (o pathLabels) Lookup(path string) (string, bool) {
	v, ok := walk(map[string]any(o), strings.Split(path, "."))
	if !ok {
		return "", false
	}
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	}
	data, err := json.Marshal(v)
	return string(data), err == nil
}

// walk goes down names and indexes. A name may hold dots itself, as many of Kubernetes' labels do: the longest is tried first.
func walk(v any, parts []string) (any, bool) {
	if len(parts) == 0 {
		return v, true
	}
	switch in := v.(type) {
	case map[string]any:
		for n := len(parts); n > 0; n-- {
			if next, ok := in[strings.Join(parts[:n], ".")]; ok {
				return walk(next, parts[n:])
			}
		}
	case []any:
		if i, err := strconv.Atoi(parts[0]); err == nil && i >= 0 && i < len(in) {
			return walk(in[i], parts[1:])
		}
	}
	return nil, false
}

// Has says whether there is something at a path.
func (o pathLabels) Has(path string) bool {
	_, ok := o.Lookup(path)
	return ok
}

// Get gives the value at a path, "" where there is none.
func (o pathLabels) Get(path string) string {
	v, _ := o.Lookup(path)
	return v
}

// objectOutputs takes a resource template's outputs from its object. Without an object they have their defaults.
func (b *Backend) objectOutputs(ctx context.Context, cmd engine.StartTask, o *unstructured.Unstructured) (engine.Outputs, error) {
	var out engine.Outputs
	for _, p := range cmd.Outputs.Parameters {
		value, ok, err := b.objectOutput(ctx, p, o)
		if err != nil {
			return out, fmt.Errorf("output parameter %s: %w", p.Name, err)
		}
		if ok {
			if out.Parameters == nil {
				out.Parameters = map[string]any{}
			}
			out.Parameters[p.Name] = value
		}
	}
	if cmd.Body.Result && o != nil {
		text, err := asJSON(o)
		if err != nil {
			return out, fmt.Errorf("outputs.result: %w", err)
		}
		out.Result = &text
	}
	return out, nil
}

func (b *Backend) objectOutput(ctx context.Context, p program.Output, o *unstructured.Unstructured) (value string, ok bool, err error) {
	switch {
	case p.JSONPath == "" && p.JQFilter == "":
		return "", false, nil
	case o == nil:
		if p.Default == nil {
			return "", true, nil
		}
		if p.Default.Text == nil {
			return "", false, nil // the engine's to find
		}
		return *p.Default.Text, true, nil
	case p.JSONPath != "":
		path := jsonpath.New(p.Name).AllowMissingKeys(true)
		if err := path.Parse(p.JSONPath); err != nil {
			return "", false, err
		}
		var buf bytes.Buffer
		if err := path.Execute(&buf, o.Object); err != nil {
			return "", false, err
		}
		return buf.String(), true, nil
	}
	value, err = jq(ctx, p.JQFilter, o.Object)
	return value, err == nil, err
}
