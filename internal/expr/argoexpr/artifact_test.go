package argoexpr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestDecodeArtifact(t *testing.T) {
	s3 := program.JSON(`{"s3":{"bucket":"b","key":"k"}}`)
	tests := map[string]program.Artifact{
		`{"name":"x","s3":{"bucket":"b","key":"k"}}`: {Name: "x", URI: "s3://b/k", Store: s3},
		`{"name":"x","path":"/tmp/x","optional":true,"mode":420,"s3":{"endpoint":"e","bucket":"b","key":"k","insecure":true,"accessKeySecret":{"name":"s","key":"a"}},"archive":{"none":{}}}`: {
			Name: "x", URI: "s3://b/k", Archive: "none",
			Store: program.JSON(`{"s3":{"endpoint":"e","bucket":"b","key":"k","insecure":true,"accessKeySecret":{"name":"s","key":"a"}}}`),
		},
		`{"name":"x","bucket":"b","key":"k"}`: {Name: "x", URI: "s3://b/k", Store: s3},
		`{"name":"x","key":"k"}`:              {Name: "x", URI: "s3://k", Store: program.JSON(`{"s3":{"key":"k"}}`)},
		`{"uri":"gs://b/m","type":"system.Model","metadata":{"a":1,"b":1.5}}`: {
			URI: "gs://b/m", Type: "system.Model", Metadata: map[string]any{"a": int64(1), "b": 1.5},
		},
		`{"name":"x","uri":"s3://b/k","store":{"s3":{"bucket":"b","key":"k"}},"archive":"tar","size":3,"digest":"sha256:0"}`: {
			Name: "x", URI: "s3://b/k", Store: s3, Archive: "tar", Size: 3, Digest: "sha256:0",
		},
		`{"folder":{"path":"/a/b"}}`:                                {URI: "/a/b", Store: program.JSON(`{"folder":{"path":"/a/b"}}`)},
		`{"raw":{"data":"x"}}`:                                      {Store: program.JSON(`{"raw":{"data":"x"}}`)},
		`{"http":{"url":"http://x/y"}}`:                             {URI: "http://x/y", Store: program.JSON(`{"http":{"url":"http://x/y"}}`)},
		`{"key":"k","s3":{"bucket":"b","key":"k"},"metadata":null}`: {URI: "s3://b/k", Store: s3},
	}
	l := argoexpr.New()
	for src, want := range tests {
		t.Run(src, func(t *testing.T) {
			got, err := l.DecodeArtifact(src)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeArtifactErrors(t *testing.T) {
	tests := map[string]string{
		``:                                     "it is empty",
		`null`:                                 "it is null",
		`[1]`:                                  "it is no JSON object",
		`{`:                                    "it is no JSON object",
		`{}`:                                   `a "uri", a store block such as "s3", or a "key" is needed`,
		`{"name":"x","colour":"red"}`:          "unknown fields: colour",
		`{"s3":{"key":"k"},"gcs":{"key":"k"}}`: "it names several stores: s3, gcs",
		`{"s3":"k"}`:                           `"s3" must be an object`,
		`{"bucket":"b"}`:                       `"key" is missing beside "bucket"`,
		`{"uri":1}`:                            `"uri": json: cannot unmarshal number`,
		`{"uri":"x","archive":"rar"}`:          "must be one of tar, zip and none",
		`{"uri":"x","metadata":[1]}`:           `"metadata": json: cannot unmarshal array`,
		`{"store":{"s3":{},"gcs":{}}}`:         `"store" must be an object with one key`,
		`{"store":{"ftp":{}}}`:                 `"ftp" is no kind of store`,
	}
	l := argoexpr.New()
	for src, want := range tests {
		if got, err := l.DecodeArtifact(src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want an error that holds %q", src, got, err, want)
		}
	}
}

// What is encoded is decoded to the same artifact, by both ways: as JSON and as what expressions see.
func TestArtifactRoundTrip(t *testing.T) {
	l := argoexpr.New()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`)
		a := program.Artifact{
			Name: name.Draw(t, "name"), URI: "s3://b/" + name.Draw(t, "uri"), Type: rapid.SampledFrom([]string{"", "system.Model"}).Draw(t, "type"),
			Archive: rapid.SampledFrom([]string{"", "tar", "zip", "none"}).Draw(t, "archive"),
			SubPath: rapid.SampledFrom([]string{"", "a/b"}).Draw(t, "sub"), Size: rapid.Int64Range(0, 1<<40).Draw(t, "size"),
		}
		if rapid.Bool().Draw(t, "has metadata") {
			a.Metadata = map[string]any{name.Draw(t, "key"): rapid.Int64().Draw(t, "value"), "t": rapid.String().Draw(t, "text")}
		}
		if rapid.Bool().Draw(t, "has store") {
			a.Store = program.JSON(`{"` + rapid.SampledFrom([]string{"s3", "gcs", "oss", "plugin"}).Draw(t, "kind") + `":{"bucket":"b","key":"` + name.Draw(t, "k") + `"}}`)
		}
		text, err := l.EncodeArtifact(a)
		if err != nil {
			t.Fatal(err)
		}
		back, err := l.DecodeArtifact(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if diff := cmp.Diff(a, back); diff != "" {
			t.Fatal(diff)
		}
		seen, err := l.Value("inputs.artifacts.a", env(values{"inputs.artifacts.a": []program.Artifact{a}, "inputs.artifacts.a.path": "/p"}))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(seen)
		if err != nil {
			t.Fatal(err)
		}
		if back, err = l.DecodeArtifact(string(data)); err != nil {
			t.Fatal(string(data), err)
		}
		if diff := cmp.Diff(a, back); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestOutputArtifact(t *testing.T) {
	folder := func(path string) program.Artifact {
		return program.Artifact{Name: "out", URI: path, Archive: "tar", Store: program.JSON(`{"folder":{"path":"` + path + `"}}`)}
	}
	none := folder("/store/wf/wf-print-1/out")
	none.Archive = "none"
	zip := folder("/store/wf/wf-print-1/out.zip")
	zip.Archive = "zip"
	tests := map[string]struct {
		root string
		decl program.OutputArtifact
		want program.Artifact
	}{
		"default": {"/store", program.OutputArtifact{Name: "out", Path: "/tmp/out"}, folder("/store/wf/wf-print-1/out.tgz")},
		"none":    {"/store", program.OutputArtifact{Name: "out", Archive: "none"}, none},
		"zip":     {"/store", program.OutputArtifact{Name: "out", Archive: "zip"}, zip},
		"file":    {"file:///store", program.OutputArtifact{Name: "out"}, folder("/store/wf/wf-print-1/out.tgz")},
		"key only": {
			"/store", program.OutputArtifact{Name: "out", Location: program.JSON(`{"s3":{"key":"my/key.tgz"}}`)},
			folder("/store/my/key.tgz"),
		},
		"location": {
			"/store", program.OutputArtifact{Name: "out", Location: program.JSON(`{"s3":{"bucket":"b","key":"k"}}`)},
			program.Artifact{Name: "out", URI: "s3://b/k", Archive: "tar", Store: program.JSON(`{"s3":{"bucket":"b","key":"k"}}`)},
		},
		"s3 root": {
			"s3://bucket/prefix/", program.OutputArtifact{Name: "out", Type: "system.Model"},
			program.Artifact{
				Name: "out", Type: "system.Model", URI: "s3://bucket/prefix/wf/wf-print-1/out.tgz", Archive: "tar",
				Store: program.JSON(`{"s3":{"bucket":"bucket","key":"prefix/wf/wf-print-1/out.tgz"}}`),
			},
		},
		"gs root": {
			"gs://bucket", program.OutputArtifact{Name: "out"},
			program.Artifact{
				Name: "out", URI: "gs://bucket/wf/wf-print-1/out.tgz", Archive: "tar",
				Store: program.JSON(`{"gcs":{"bucket":"bucket","key":"wf/wf-print-1/out.tgz"}}`),
			},
		},
		"log setting only": {"/store", program.OutputArtifact{Name: "out", Location: program.JSON(`{"archiveLogs":true}`)}, folder("/store/wf/wf-print-1/out.tgz")},
	}
	l := argoexpr.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, path, err := l.OutputArtifact(expr.OutputSite{Run: "wf", Pod: "wf-print-1", Root: tt.root}, tt.decl)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if path != tt.decl.Path {
				t.Error(path)
			}
		})
	}
	for name, tt := range map[string]struct {
		root, location, want string
	}{
		"outside":  {"/store", `{"s3":{"key":"../../etc/passwd"}}`, "leads outside the artifact root"},
		"relative": {"root", ``, "neither an absolute path nor a URI"},
		"scheme":   {"ftp://x/y", ``, "has a scheme that is not supported"},
		"bucket":   {"s3:///y", ``, "names no bucket"},
		"several":  {"/store", `{"s3":{"key":"a"},"gcs":{"key":"a"}}`, "names several stores"},
		"list":     {"/store", `[]`, "is no JSON object"},
	} {
		_, _, err := l.OutputArtifact(expr.OutputSite{Run: "wf", Pod: "p", Root: tt.root}, program.OutputArtifact{Name: "out", Location: program.JSON(tt.location)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `"out"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An artifact repository gives the store, and the key by its format unless the author declared one.
func TestOutputArtifactInARepository(t *testing.T) {
	l := argoexpr.New()
	for name, tt := range map[string]struct {
		repository, location, want, uri string
	}{
		"default key": {`{"s3":{"bucket":"b","endpoint":"e"}}`, ``, `{"s3":{"bucket":"b","endpoint":"e","key":"wf/p/out.tgz"}}`, "s3://b/wf/p/out.tgz"},
		"format":      {`{"archiveLogs":true,"s3":{"bucket":"b","keyFormat":"a/x"}}`, ``, `{"s3":{"bucket":"b","key":"a/x/out.tgz"}}`, "s3://b/a/x/out.tgz"},
		"prefix":      {`{"s3":{"bucket":"b","keyPrefix":"pre"}}`, ``, `{"s3":{"bucket":"b","key":"pre/wf/p/out.tgz"}}`, "s3://b/pre/wf/p/out.tgz"},
		"key only":    {`{"s3":{"bucket":"b","keyFormat":"a"}}`, `{"s3":{"key":"mine"}}`, `{"s3":{"bucket":"b","key":"mine"}}`, "s3://b/mine"},
		"azure":       {`{"azure":{"container":"c","endpoint":"https://e","blobNameFormat":"f"}}`, ``, `{"azure":{"blob":"f/out.tgz","container":"c","endpoint":"https://e"}}`, "https://e/c/f/out.tgz"},
		"own":         {`{"s3":{"bucket":"b"}}`, `{"s3":{"bucket":"other","key":"k"}}`, `{"s3":{"bucket":"other","key":"k"}}`, "s3://other/k"},
	} {
		a, _, err := l.OutputArtifact(expr.OutputSite{Run: "wf", Pod: "p", Repository: program.JSON(tt.repository)}, program.OutputArtifact{Name: "out", Location: program.JSON(tt.location)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(a.Store) != tt.want || a.URI != tt.uri {
			t.Errorf("%s: %s at %s, want %s at %s", name, a.Store, a.URI, tt.want, tt.uri)
		}
	}
	for _, repository := range []string{`[]`, `{}`, `{"s3":{},"gcs":{}}`, `{"s3":1}`} {
		_, _, err := l.OutputArtifact(expr.OutputSite{Run: "wf", Pod: "p", Repository: program.JSON(repository)}, program.OutputArtifact{Name: "out"})
		if err == nil || !strings.Contains(err.Error(), "artifact repository") {
			t.Errorf("%s: %v", repository, err)
		}
	}
}

func TestInputPath(t *testing.T) {
	l := argoexpr.New()
	for name, want := range map[string]string{"data": "/tmp/data", "../../x": "/tmp/x", "": "/tmp/artifact"} {
		if got := l.InputPath(program.Artifact{Name: name}); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestParameter(t *testing.T) {
	l := argoexpr.New()
	for _, tt := range []struct{ in, want any }{
		{nil, nil},
		{"a", "a"},
		{int64(3), "3"},
		{1.5, "1.5"},
		{1e6, "1000000"},
		{true, "true"},
		{[]any{int64(1), "a"}, `[1,"a"]`},
		{map[string]any{"b": nil, "a": "<"}, `{"a":"\u003c","b":null}`},
	} {
		got, err := l.Parameter(tt.in, program.Integer)
		if err != nil || got != tt.want {
			t.Errorf("%v: %v, %v", tt.in, got, err)
		}
	}
}

func TestItemName(t *testing.T) {
	l := argoexpr.New()
	for _, tt := range []struct {
		item any
		want string
	}{
		{"string", "string"},
		{"alpha\nbeta", `alpha\nbeta`},
		{"a (b) <c>", "a b <c>"},
		{int64(42), "42"},
		{1.5, "1.5"},
		{true, "true"},
		{
			map[string]any{"number": int64(2), "string": "foo", "list": []any{int64(0), "1"}, "json": map[string]any{"number": int64(2), "string": "foo"}},
			`json:{"number":2,"string":"foo"},list:[0,"1"],number:2,string:foo`,
		},
		{[]any{int64(1), "two", int64(3)}, "[1 two 3]"},
		{map[string]any{"command": "ONE-A", "tag": "TEST-ONE-A"}, "command:ONE-A,tag:TEST-ONE-A"},
		{nil, "null"},
	} {
		if got := l.ItemName(tt.item); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.item, got, tt.want)
		}
	}
}
