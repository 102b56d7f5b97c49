package kfpexpr

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestParameter(t *testing.T) {
	for _, c := range []struct {
		value any
		typ   program.Type
		want  any
	}{
		{"x", program.String, "x"}, {int64(5), program.String, "5"}, {0.5, program.String, "0.5"}, {true, program.String, "true"},
		{[]any{"a"}, program.String, `["a"]`}, {map[string]any{"a": int64(1)}, program.String, `{"a":1}`},
		{int64(5), program.Integer, int64(5)}, {5.0, program.Integer, int64(5)}, {"5", program.Integer, int64(5)}, {" 5\n", program.Integer, int64(5)},
		{int64(5), program.Double, int64(5)}, {0.5, program.Double, 0.5}, {"0.5", program.Double, 0.5}, {"1e3", program.Double, int64(1000)},
		{true, program.Boolean, true}, {"True", program.Boolean, true}, {"false\n", program.Boolean, false},
		{[]any{"a"}, program.List, []any{"a"}}, {`["a", 1]`, program.List, []any{"a", int64(1)}},
		{map[string]any{}, program.Struct, map[string]any{}}, {`{"a": 1}`, program.Struct, map[string]any{"a": int64(1)}},
		{map[string]any{"state": "FAILED"}, program.FinalStatus, map[string]any{"state": "FAILED"}},
		{nil, program.Integer, nil}, {int64(1), program.Any, int64(1)}, {2.0, program.Any, int64(2)},
	} {
		got, err := New().Parameter(c.value, c.typ)
		if err != nil {
			t.Errorf("%v as %s: %v", c.value, c.typ, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v as %s: -want +got:\n%s", c.value, c.typ, diff)
		}
	}
	for _, c := range []struct {
		value any
		typ   program.Type
	}{
		{"x", program.Integer}, {0.5, program.Integer}, {true, program.Integer}, {[]any{}, program.Integer}, {"0.5", program.Integer},
		{"x", program.Double}, {true, program.Double}, {"NaN", program.Double}, {"Infinity", program.Double},
		{"yes", program.Boolean}, {int64(1), program.Boolean},
		{"x", program.List}, {map[string]any{}, program.List}, {"{}", program.List}, {"x", program.Struct}, {[]any{}, program.Struct}, {"[]", program.Struct},
		{"x", program.Type("NONSENSE")},
	} {
		if got, err := New().Parameter(c.value, c.typ); err == nil {
			t.Errorf("%v is taken as %s: %v", c.value, c.typ, got)
		}
	}
}

// A JSON value written as text and read as its type is the same value.
func TestParameterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(i int64) any { return i }),
			rapid.Map(rapid.Bool(), func(b bool) any { return b }),
			rapid.Map(rapid.Float64Range(-1e9, 1e9), func(f float64) any { return normalise(f) }),
		)).Draw(t, "list")
		written, err := New().Parameter(list, program.String)
		if err != nil {
			t.Fatal(err)
		}
		read, err := New().Parameter(written, program.List)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(list, read, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: -want +got:\n%s", written, diff)
		}
	})
}

func TestOutputArtifact(t *testing.T) {
	site := expr.OutputSite{UID: "uid-1", Root: "/artifacts/", Program: "my-pipeline", Task: "train", Path: "run.train", Attempt: 0}
	decl := program.OutputArtifact{Name: "model", Type: "system.Model", Metadata: map[string]any{"a": "b"}}
	a, path, err := New().OutputArtifact(site, decl)
	if err != nil {
		t.Fatal(err)
	}
	if path != a.URI || string(a.Store) != `{"folder":{"path":"`+a.URI+`"}}` {
		t.Errorf("in a folder: path %s, artifact %+v", path, a)
	}
	again, _, err := New().OutputArtifact(site, decl)
	if err != nil || again.URI != a.URI {
		t.Errorf("the same attempt is placed at %s and %s", a.URI, again.URI)
	}
	a.Metadata["a"] = "changed"
	if decl.Metadata["a"] != "b" {
		t.Error("the declaration's metadata is shared")
	}
	site.Attempt = 1
	if other, _, err := New().OutputArtifact(site, decl); err != nil || other.URI == a.URI {
		t.Errorf("two attempts are placed at %s, %v", other.URI, err)
	}
	for _, c := range []struct{ root, uri, path, store string }{
		{"gs://bucket/root", "gs://bucket/root/", "/gcs/bucket/root/", `{"gcs":{"bucket":"bucket","key":"root/`},
		{"s3://bucket?region=eu-west-1", "s3://bucket/", "/s3/bucket/", `{"s3":{"bucket":"bucket","key":"`},
		{"s3://bucket/p?endpoint=127.0.0.1:9000&disableSSL=true&s3ForcePathStyle=true", "s3://bucket/p/", "/s3/bucket/p/",
			`{"s3":{"addressingStyle":"path","bucket":"bucket","endpoint":"127.0.0.1:9000","insecure":true,"key":"p/`},
		{"minio://bucket/p/", "minio://bucket/p/", "/minio/bucket/p/", `{"s3":{"bucket":"bucket","key":"p/`},
	} {
		site.Root = c.root
		a, path, err := New().OutputArtifact(site, decl)
		if err != nil {
			t.Fatal(err)
		}
		for got, want := range map[string]string{a.URI: c.uri, path: c.path, string(a.Store): c.store} {
			if len(got) < len(want) || got[:len(want)] != want {
				t.Errorf("under %s: got %s, want it to begin with %s", c.root, got, want)
			}
		}
	}
	site.Root, site.Task, decl.Name = "/r", "../../x", ".."
	if a, _, err := New().OutputArtifact(site, decl); err != nil || !json.Valid(a.Store) || a.URI[:len("/r/my-pipeline/uid-1/..-..-x/")] != "/r/my-pipeline/uid-1/..-..-x/" {
		t.Errorf("names leave their folder: %s, %v", a.URI, err)
	}
	if _, _, err := New().OutputArtifact(expr.OutputSite{}, decl); err == nil {
		t.Error("an output without a root is placed")
	}
}

func TestInputPath(t *testing.T) {
	for _, c := range []struct {
		a    program.Artifact
		want string
	}{
		{program.Artifact{URI: "/a/b"}, "/a/b"},
		{program.Artifact{URI: "gs://b/k"}, "/gcs/b/k"},
		{program.Artifact{URI: "s3://b/k"}, "/s3/b/k"},
		{program.Artifact{URI: "minio://b/k"}, "/minio/b/k"},
		{program.Artifact{URI: "oci://registry/a/b:v1"}, "/oci/registry_a_b:v1/models"},
		{program.Artifact{URI: "file:///a/b"}, "/a/b"},
		{program.Artifact{URI: "s3://b/k", CustomPath: "/tmp/x"}, "/tmp/x"},
		{program.Artifact{URI: "s3://b/k", Metadata: map[string]any{"_kfp_workspace": true}}, "/kfp-workspace/.artifacts/s3/b/k"},
	} {
		if got := New().InputPath(c.a); got != c.want {
			t.Errorf("%+v: got %s, want %s", c.a, got, c.want)
		}
	}
	one, two := New().InputPath(program.Artifact{URI: "https://h/a/f.txt"}), New().InputPath(program.Artifact{URI: "https://h/b/f.txt"})
	if one == two || one[len(one)-6:] != "/f.txt" {
		t.Errorf("got %s and %s", one, two)
	}
}

func TestArtifactJSON(t *testing.T) {
	a := program.Artifact{
		Name: "m", URI: "s3://b/k", Type: "system.Model", TypeVersion: "0.0.1", Metadata: map[string]any{"n": int64(1)},
		Store: program.JSON(`{"s3":{"bucket":"b","key":"k"}}`), CustomPath: "/tmp/m",
	}
	encoded, err := New().EncodeArtifact(a)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := New().DecodeArtifact(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, decoded); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	ours, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for name, src := range map[string]string{
		"ours": string(ours), "list": `{"artifacts":[` + encoded + `]}`,
		"snake": `{"name":"m","uri":"s3://b/k","type":{"schema_title":"system.Model","schema_version":"0.0.1"},"metadata":{"n":1},"custom_path":"/tmp/m"}`,
	} {
		got, err := New().DecodeArtifact(src)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(a, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	schema := program.Artifact{Name: "x", URI: "/x", Type: "title: kfp.X\ntype: object\n"}
	encoded, err = New().EncodeArtifact(schema)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := New().DecodeArtifact(encoded); err != nil || got.Type != schema.Type {
		t.Errorf("an instance schema becomes %+v, %v", got, err)
	}
	for _, src := range []string{"", "x", "[]", "{}", `{"name":"x"}`, `{"uri":"/x","type":5}`} {
		if got, err := New().DecodeArtifact(src); err == nil {
			t.Errorf("%q is taken for the artifact %+v", src, got)
		}
	}
}

func TestItemName(t *testing.T) {
	for _, c := range []struct {
		item any
		want string
	}{{"a", "a"}, {int64(5), "5"}, {0.5, "0.5"}, {true, "true"}, {nil, ""}, {[]any{"a"}, ""}, {map[string]any{}, ""}} {
		if got := New().ItemName(c.item); got != c.want {
			t.Errorf("%v: got %q, want %q", c.item, got, c.want)
		}
	}
}

func TestNormalise(t *testing.T) {
	if got := normalise(map[string]any{"a": []any{1.0, json.Number("2"), 0.5, float64(1 << 54)}}); !cmp.Equal(got, map[string]any{"a": []any{int64(1), int64(2), 0.5, float64(1 << 54)}}) {
		t.Errorf("got %#v", got)
	}
	if got := normalise(math.Inf(1)); got != math.Inf(1) {
		t.Errorf("got %v", got)
	}
}
