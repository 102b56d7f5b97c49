package kfpexpr

import (
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// scope is a scope for tests: a tree of maps. Names in skipped are declared without a value.
type scope struct {
	tree    map[string]any
	skipped map[string]bool
}

func (s scope) Lookup(path []string) (any, expr.Presence) {
	key := ""
	var v any = s.tree
	for _, step := range path {
		key += "." + step
		if s.skipped[key[1:]] {
			return nil, expr.Skipped
		}
		m, ok := v.(map[string]any)
		if !ok {
			return nil, expr.Absent
		}
		if v, ok = m[step]; !ok {
			return nil, expr.Absent
		}
	}
	return v, expr.Present
}

// leaf is the scope of a task with one of everything.
func leaf() expr.Env {
	return expr.Env{Scope: scope{
		tree: map[string]any{
			"inputs": map[string]any{
				"parameters": map[string]any{
					"s": "text", "i": int64(5), "f": 0.25, "big": 1e21, "b": true, "l": []any{"a", int64(1)}, "m": map[string]any{"k": "<v>"},
					"null": nil, "tricky": "{{$.inputs.parameters['s']}}", "sluice--hidden": "h", "has.dot": "dot",
				},
				"artifacts": map[string]any{
					"data": []program.Artifact{
						{Name: "data", URI: "/store/data", Type: "system.Dataset", TypeVersion: "0.0.1", Metadata: map[string]any{"rows": int64(3), "deep": map[string]any{"k": "v"}}},
						{Name: "more", URI: "s3://b/more"},
					},
					"s3":    []program.Artifact{{Name: "s3", URI: "s3://bucket/a/b", Store: program.JSON(`{"s3":{"bucket":"bucket","key":"a/b"}}`)}},
					"empty": []program.Artifact{},
				},
			},
			"outputs": map[string]any{
				"parameters": map[string]any{"o": map[string]any{"path": "/tmp/kfp/outputs/o"}},
				"artifacts": map[string]any{"model": []program.Artifact{{
					Name: "model", URI: "gs://bucket/p/run/task/id/model", Type: "system.Model", Metadata: map[string]any{"a": "b"},
				}}},
			},
			"workflow": map[string]any{
				"name": "run-1", "title": "My run", "uid": "uid-1", "artifactRoot": "/artifacts",
				"creationTimestamp": time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			},
			"task": map[string]any{"name": "train", "uid": "uid-1/run-1.train"},
			"node": map[string]any{"name": "run-1"},
			"tasks": map[string]any{
				"a":    map[string]any{"outputs": map[string]any{"parameters": map[string]any{"x": "<x>"}}, "hooks": map[string]any{"h": map[string]any{"k": "v1"}}, "status": "Succeeded"},
				"bad":  map[string]any{"status": "Failed", "message": "exit code 1"},
				"late": map[string]any{"status": "Omitted"},
			},
			"hooks": map[string]any{"h": map[string]any{"k": "v", "list": []any{int64(1)}}},
		},
		skipped: map[string]bool{"inputs.parameters.skipped": true, "tasks.skipped": true, "inputs.artifacts.skipped": true},
	}}
}
