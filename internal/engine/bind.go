package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// value resolves a binding of a parameter. ok is false where there is no value and no default stands in; that is no
// error by itself, since an input may be optional.
func (x *step) value(b *program.Binding, sc *scope) (v any, ok bool, err error) {
	v, ok, err = x.bare(b, sc)
	if err != nil && !(isAbsent(err) && b.Default != nil) {
		return nil, false, err
	}
	if ok && b.Select != "" {
		if v, err = x.m.lang.Select(b.Select, v); err != nil {
			return nil, false, err
		}
	}
	if !ok && b.Default != nil {
		return x.value(b.Default, sc)
	}
	return v, ok, nil
}

func (x *step) bare(b *program.Binding, sc *scope) (any, bool, error) {
	switch {
	case b.Text != nil:
		if !hasTag(*b.Text) {
			return *b.Text, true, nil
		}
		t, err := x.m.lang.Text(*b.Text, x.env(sc))
		if err != nil {
			return nil, false, skippedIsNone(err)
		}
		return t, true, nil
	case b.Const != nil:
		var v any
		if err := decode(b.Const, &v); err != nil {
			return nil, false, fmt.Errorf("constant: %w", err)
		}
		return normal(v), true, nil
	case b.Ref != "":
		return x.ref(b.Ref, sc)
	case b.Expr != "":
		v, err := x.m.lang.Value(b.Expr, x.env(sc))
		if err != nil {
			return nil, false, skippedIsNone(err)
		}
		return normal(v), true, nil
	case len(b.OneOf) > 0:
		for i := range b.OneOf {
			v, ok, err := x.value(&b.OneOf[i], sc)
			if err != nil {
				return nil, false, err
			}
			if ok {
				return v, true, nil
			}
		}
		return nil, false, nil
	case b.ConfigMap != nil:
		return x.configMap(b, sc)
	}
	return nil, false, nil
}

// absent marks that a binding has no value because its producer was skipped; its text says which.
type absentError struct{ err *expr.UnresolvedError }

func (e *absentError) Error() string { return e.err.Error() }

// skippedIsNone keeps the cause: callers that have a default drop it, others report it.
func skippedIsNone(err error) error {
	var u *expr.UnresolvedError
	if errors.As(err, &u) && u.Skipped {
		return &absentError{u}
	}
	return err
}

// isAbsent says whether an error only means that there is no value.
func isAbsent(err error) bool {
	var a *absentError
	return errors.As(err, &a)
}

func (x *step) ref(src string, sc *scope) (any, bool, error) {
	if hasTag(src) {
		t, err := x.m.lang.Text(src, x.env(sc))
		if err != nil {
			return nil, false, skippedIsNone(err)
		}
		src = t
	}
	path, ok := x.m.paths[src]
	if !ok {
		path = strings.Split(src, ".")
		x.m.paths[src] = path
	}
	v, p := sc.Lookup(path)
	switch p {
	case expr.Present:
		return v, true, nil
	case expr.Skipped:
		return nil, false, nil
	}
	return nil, false, &expr.UnresolvedError{Tag: src}
}

// configMap gives a key's text. Where a default stands in it need not be there.
func (x *step) configMap(b *program.Binding, sc *scope) (any, bool, error) {
	k := b.ConfigMap
	optional := k.Optional || b.Default != nil
	name, err := x.m.lang.Text(k.Name, x.env(sc))
	if err != nil {
		return nil, false, err
	}
	key, err := x.m.lang.Text(k.Key, x.env(sc))
	if err != nil {
		return nil, false, err
	}
	data, ok := x.m.program.ConfigMaps[name]
	if !ok {
		if optional {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("config map %q not found: give it with -f FILE", name)
	}
	v, ok := data[key]
	if !ok {
		if optional {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("config map %q has no key %q", name, key)
	}
	return v, true, nil
}

// artifacts resolves a binding of an artifact.
func (x *step) artifacts(b *program.Binding, sc *scope) ([]program.Artifact, bool, error) {
	list, ok, err := x.bareArtifacts(b, sc)
	if err != nil && !(isAbsent(err) && b.Default != nil) {
		return nil, false, err
	}
	if (!ok || err != nil) && b.Default != nil {
		return x.artifacts(b.Default, sc)
	}
	if ok && b.SubPath != "" {
		sub, err := x.m.lang.Text(b.SubPath, x.env(sc))
		if err != nil {
			return nil, false, fmt.Errorf("subPath: %w", err)
		}
		narrowed := make([]program.Artifact, len(list))
		for i, a := range list {
			a.SubPath = strings.Trim(a.SubPath+"/"+sub, "/")
			narrowed[i] = a
		}
		list = narrowed
	}
	return list, ok, nil
}

func (x *step) bareArtifacts(b *program.Binding, sc *scope) ([]program.Artifact, bool, error) {
	switch {
	case b.Metadata != nil:
		t, err := x.m.lang.Text(*b.Metadata, x.env(sc))
		if err != nil {
			return nil, false, skippedIsNone(err)
		}
		a, err := x.m.lang.DecodeArtifact(t)
		if err != nil {
			return nil, false, fmt.Errorf("fromMetadata: %w", err)
		}
		return []program.Artifact{a}, true, nil
	case len(b.Location) > 0:
		store, err := program.ResolveJSON(b.Location, func(s string) (string, error) { return x.m.lang.Text(s, x.env(sc)) })
		if err != nil {
			return nil, false, err
		}
		a, err := x.located(store)
		if err != nil {
			return nil, false, err
		}
		return []program.Artifact{a}, true, nil
	case len(b.OneOf) > 0:
		for i := range b.OneOf {
			list, ok, err := x.artifacts(&b.OneOf[i], sc)
			if err != nil {
				return nil, false, err
			}
			if ok {
				return list, true, nil
			}
		}
		return nil, false, nil
	}
	v, ok, err := x.bare(b, sc)
	if err != nil || !ok {
		return nil, false, err
	}
	return x.toArtifacts(v)
}

// located is the artifact at a place that a manifest names. One that is only a key lies where an output with that key does.
func (x *step) located(store program.JSON) (program.Artifact, error) {
	a := program.Artifact{Store: store, URI: storeURI(store)}
	run := &x.s.Run
	if run.ArtifactRoot == "" && len(run.Repository) == 0 {
		return a, nil
	}
	site := expr.OutputSite{Run: run.Name, UID: run.UID, Namespace: run.Namespace, Root: run.ArtifactRoot, Repository: run.Repository, Program: x.m.program.Name}
	placed, _, err := x.m.lang.OutputArtifact(site, program.OutputArtifact{Location: store})
	if err != nil {
		return a, err
	}
	a.Store, a.URI = placed.Store, or(placed.URI, a.URI)
	return a, nil
}

// toArtifacts takes what an expression may yield for an artifact.
func (x *step) toArtifacts(v any) ([]program.Artifact, bool, error) {
	switch v := v.(type) {
	case nil:
		return nil, false, nil
	case []program.Artifact:
		return v, true, nil
	case program.Artifact:
		return []program.Artifact{v}, true, nil
	case map[string]any:
		data, err := json.Marshal(v)
		if err != nil {
			return nil, false, err
		}
		a, err := x.m.lang.DecodeArtifact(string(data))
		return []program.Artifact{a}, err == nil, err
	case string:
		a, err := x.m.lang.DecodeArtifact(v)
		return []program.Artifact{a}, err == nil, err
	case []any:
		var list []program.Artifact
		for _, e := range v {
			some, ok, err := x.toArtifacts(e)
			if err != nil {
				return nil, false, err
			}
			if ok {
				list = append(list, some...)
			}
		}
		return list, true, nil
	}
	return nil, false, fmt.Errorf("a %T is no artifact", v)
}

func (x *step) artifactJSON(list []program.Artifact) (any, expr.Presence) {
	if len(list) == 0 {
		return nil, expr.Skipped
	}
	t, err := x.m.lang.EncodeArtifact(list[0])
	if err != nil {
		return nil, expr.Absent
	}
	return t, expr.Present
}

// artifactField reads a field of the first artifact of a list.
func artifactField(list []program.Artifact, path []string) (any, expr.Presence) {
	if len(path) == 0 {
		return list, expr.Present
	}
	if len(list) == 0 {
		return nil, expr.Skipped
	}
	a := &list[0]
	switch path[0] {
	case "uri":
		return a.URI, expr.Present
	case "key":
		return storeKey(a), expr.Present
	case "name":
		return a.Name, expr.Present
	case "type":
		return a.Type, expr.Present
	case "path":
		if a.CustomPath != "" {
			return a.CustomPath, expr.Present
		}
		return nil, expr.Absent
	case "metadata":
		return descend(orEmpty(a.Metadata), path[1:])
	case "bucket":
		var block map[string]struct {
			Bucket string `json:"bucket"`
		}
		if json.Unmarshal(a.Store, &block) == nil {
			for _, l := range block {
				return l.Bucket, expr.Present
			}
		}
	case "json":
		data, err := json.Marshal(a)
		if err == nil {
			return string(data), expr.Present
		}
	}
	return nil, expr.Absent
}

// storeKey is the key of an artifact in its store; a folder's is its path.
func storeKey(a *program.Artifact) string {
	var block map[string]struct {
		Key  string `json:"key"`
		Path string `json:"path"`
		URL  string `json:"url"`
		Repo string `json:"repo"`
	}
	if json.Unmarshal(a.Store, &block) == nil {
		for _, l := range block {
			return or(l.Key, or(l.Path, or(l.URL, l.Repo)))
		}
	}
	return a.URI
}

// storeURI gives a store block a URI for people.
func storeURI(store program.JSON) string {
	var block map[string]struct {
		Bucket string `json:"bucket"`
		Key    string `json:"key"`
		Path   string `json:"path"`
		URL    string `json:"url"`
		Repo   string `json:"repo"`
	}
	if json.Unmarshal(store, &block) != nil {
		return ""
	}
	for kind, l := range block {
		switch {
		case l.URL != "":
			return l.URL
		case l.Repo != "":
			return l.Repo
		case l.Path != "":
			return l.Path
		case kind == "raw":
			return ""
		case kind == "gcs":
			return "gs://" + l.Bucket + "/" + l.Key
		case l.Key != "":
			return kind + "://" + l.Bucket + "/" + l.Key
		}
	}
	return ""
}

// normal brings a decoded JSON value into the form that all values have here: whole numbers are int64.
func normal(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return normal(f)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
		return v
	case float32:
		return normal(float64(v))
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
		return float64(v)
	case []any:
		for i := range v {
			if n := normal(v[i]); !same(n, v[i]) {
				out := make([]any, len(v))
				for k := range v {
					out[k] = normal(v[k])
				}
				return out
			}
		}
		return v
	case map[string]any:
		for k := range v {
			if n := normal(v[k]); !same(n, v[k]) {
				out := make(map[string]any, len(v))
				for k := range v {
					out[k] = normal(v[k])
				}
				return out
			}
		}
		return v
	}
	return v
}

// same says whether normal gave a value back as it was.
func same(a, b any) bool {
	ra, rb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !ra.IsValid() || !rb.IsValid() {
		return ra.IsValid() == rb.IsValid()
	}
	if ra.Type() != rb.Type() {
		return false
	}
	switch ra.Kind() {
	case reflect.Map, reflect.Slice:
		return ra.Pointer() == rb.Pointer()
	}
	return a == b
}
