package kfpoutput

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/program"
)

func TestParseExecutorOutput(t *testing.T) {
	parameters, artifacts, err := ParseExecutorOutput([]byte(`{
		"parameterValues": {"Output": 11, "f": 0.5, "whole": 2.0, "s": "x", "l": [1, {"k": 2}], "none": null, "b": true},
		"artifacts": {
			"m": {"artifacts": [{"name": "projects/x/m", "uri": "/store/m", "type": {"schemaTitle": "system.Model", "schemaVersion": "0.0.1"},
				"metadata": {"acc": 0.9, "n": 3}, "customPath": "/tmp/m"}]},
			"two": {"artifacts": [{"uri": "a"}, {"uri": "b", "type": {"instanceSchema": "title: x\n"}}]},
			"empty": {"artifacts": []}
		},
		"newField": 1
	}`))
	if err != nil {
		t.Fatal(err)
	}
	wantParameters := map[string]any{
		"Output": int64(11), "f": 0.5, "whole": int64(2), "s": "x", "l": []any{int64(1), map[string]any{"k": int64(2)}}, "b": true,
	}
	if diff := cmp.Diff(wantParameters, parameters); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	wantArtifacts := map[string][]program.Artifact{
		"m": {{
			Name: "projects/x/m", URI: "/store/m", Type: "system.Model", TypeVersion: "0.0.1", CustomPath: "/tmp/m",
			Metadata: map[string]any{"acc": 0.9, "n": int64(3)},
		}},
		"two": {{Name: "two", URI: "a"}, {Name: "two", URI: "b", Type: "title: x\n"}},
	}
	if diff := cmp.Diff(wantArtifacts, artifacts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOldForms(t *testing.T) {
	parameters, artifacts, err := ParseExecutorOutput([]byte(`{
		"parameters": {"i": {"intValue": "5"}, "s": {"stringValue": "x"}}, "parameter_values": {"n": 1},
		"artifacts": {"a": {"artifacts": [{"uri": "u", "type": {"schema_title": "t"}, "custom_path": "/c", "properties": {"p": {"doubleValue": 0.5}}}]}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"i": int64(5), "s": "x", "n": int64(1)}, parameters); diff != "" {
		t.Error(diff)
	}
	want := map[string][]program.Artifact{"a": {{Name: "a", URI: "u", Type: "t", CustomPath: "/c", Metadata: map[string]any{"p": 0.5}}}}
	if diff := cmp.Diff(want, artifacts); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenOutput(t *testing.T) {
	for _, s := range []string{"{", "[]", `"x"`, `{"parameterValues": []}`, `{"artifacts": {"a": [1]}}`, `{"artifacts": {"a": {"artefacts": []}}}`, `{} {}`} {
		if p, a, err := ParseExecutorOutput([]byte(s)); err == nil {
			t.Errorf("%s gives %v and %v", s, p, a)
		}
	}
	for _, s := range []string{"", " \n", "{}"} {
		if p, a, err := ParseExecutorOutput([]byte(s)); err != nil || len(p)+len(a) > 0 {
			t.Errorf("%q gives %v, %v, %v", s, p, a, err)
		}
	}
}

func TestTaskPath(t *testing.T) {
	for uri, want := range map[string]string{
		"/a/b": "/a/b", "gs://b/k": "/gcs/b/k", "s3://b/k": "/s3/b/k", "minio://b/k": "/minio/b/k", "https://h/x": "", "a/b": "", "oci://r/x": "", "": "",
	} {
		if got := TaskPath(uri); got != want {
			t.Errorf("%q: got %q, want %q", uri, got, want)
		}
	}
}

func FuzzParseExecutorOutput(f *testing.F) {
	f.Add([]byte(`{"parameterValues": {"a": 1}, "artifacts": {"m": {"artifacts": [{"uri": "x"}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _ = ParseExecutorOutput(data)
	})
}
