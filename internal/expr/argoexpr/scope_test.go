package argoexpr_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// values is a scope by joined paths; maps and artifacts are looked up as a whole or by what is below them. Paths that
// begin with an exclamation mark were skipped.
type values map[string]any

func (v values) Lookup(path []string) (any, expr.Presence) {
	key := ""
	for i, p := range path {
		if i > 0 {
			key += "."
		}
		key += p
	}
	if _, ok := v["!"+key]; ok {
		return nil, expr.Skipped
	}
	if e, ok := v[key]; ok {
		return e, expr.Present
	}
	// What is below the path.
	below := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(v)) {
		if strings.HasPrefix(k, key+".") {
			place(below, k[len(key)+1:], v[k])
		}
	}
	if len(below) > 0 && len(path) > 0 {
		return below, expr.Present
	}
	return nil, expr.Absent
}

func place(m map[string]any, key string, e any) {
	for i := range key {
		if key[i] == '.' {
			inner, ok := m[key[:i]].(map[string]any)
			if m[key[:i]] == nil {
				inner, ok = map[string]any{}, true
				m[key[:i]] = inner
			}
			if !ok {
				// Below a value that is whole already.
				return
			}
			place(inner, key[i+1:], e)
			return
		}
	}
	m[key] = e
}

var (
	created = time.Date(2018, 8, 3, 5, 4, 9, 0, time.UTC)
	now     = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

func env(v values) expr.Env { return expr.Env{Scope: v, Now: now, Seed: 7} }

func sample() values {
	return values{
		"inputs.parameters.message":                     "hello world",
		"inputs.parameters.my-param":                    "dashed",
		"inputs.parameters.empty":                       "",
		"inputs.parameters.json":                        `{"a":[1,2]}`,
		"inputs.parameters.tricky":                      "{{workflow.name}}",
		"inputs.parameters.n":                           "41",
		"inputs.parameters.which":                       "message",
		"inputs.artifacts.data":                         []program.Artifact{dataset},
		"inputs.artifacts.data.path":                    "/tmp/data",
		"outputs.parameters.out.path":                   "/tmp/out",
		"steps.print-a.outputs.parameters.my-param":     "from a",
		"steps.flip.outputs.result":                     "heads",
		"steps.loop.outputs.result":                     []any{"1", `{"a":1}`, "x"},
		"steps.loop.outputs.parameters.p":               []any{`{"a":1}`, `[2]`},
		"steps.loop.outputs.parameters.q":               []any{"1", "b"},
		"tasks.flip.exitCode":                           int64(2),
		"tasks.flip.status":                             "Succeeded",
		"tasks.a.hooks.lineage.run":                     map[string]any{"id": int64(4), "name": "r"},
		"hooks.cache.key":                               "abc",
		"hooks.cache.hit":                               true,
		"!tasks.skipped.outputs.result":                 nil,
		"workflow.name":                                 "wf",
		"workflow.parameters.x":                         "1",
		"workflow.parameters.y":                         "<&>",
		"workflow.labels.app":                           "demo",
		"workflow.labels.a/b.c":                         "dotted",
		"workflow.annotations.note":                     "n",
		"workflow.creationTimestamp":                    created,
		"workflow.status":                               "Failed",
		"workflow.failures":                             `[{"displayName":"a"}]`,
		"workflow.duration":                             12.5,
		"item":                                          map[string]any{"k": "v", "n": int64(3), "list": []any{int64(1), "b"}, "a.b": "dot"},
		"retries":                                       int64(1),
		"lastRetry.exitCode":                            int64(2),
		"lastRetry.status":                              "Failed",
		"pod.name":                                      "wf-print-123",
		"node.name":                                     "wf.a",
		"task.name":                                     "a",
		"request.headers":                               map[string]any{"X": []any{"1"}},
		"response.statusCode":                           int64(200),
		"response.body":                                 "ok",
		"steps.gen.outputs.artifacts.model":             []program.Artifact{dataset},
		"steps.several.outputs.artifacts.models":        []program.Artifact{dataset, dataset},
		"workflow.outputs.parameters.global.with.a.dot": "g",
	}
}

var dataset = program.Artifact{
	Name: "data", URI: "s3://bucket/run/data.tgz", Type: "system.Dataset", Archive: "tar",
	Metadata: map[string]any{"rows": int64(10), "a.b": "c", "deep": map[string]any{"x": "y"}},
	Store:    program.JSON(`{"s3":{"bucket":"bucket","key":"run/data.tgz"}}`),
}
