package schema_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema"
	"github.com/sluice-ml/sluice/api/v1alpha1/schema/generate/build"
	"github.com/sluice-ml/sluice/pkg/taskhook/hooktest"
)

// The files are what the types say now.
func TestFilesAreUpToDate(t *testing.T) {
	want, err := build.Schemas("..")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(schema.Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(want) {
		t.Errorf("there are %v", names)
	}
	for name, data := range want {
		got, err := schema.Files.ReadFile(name)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s is not what the types say: run go generate ./api/... (%v)", name, err)
		}
	}
}

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	data, err := schema.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fits(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestSampleRequestsFit(t *testing.T) {
	single, list := compile(t, "review-request.json"), compile(t, "review-list-request.json")
	for _, point := range []v1alpha1.Point{v1alpha1.Pre, v1alpha1.Post} {
		request := hooktest.Sample("lineage", point, "uid-1")
		meta := v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview}
		data, err := json.Marshal(v1alpha1.TaskReview{TypeMeta: meta, Request: request})
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(t, single, data); err != nil {
			t.Errorf("%s: %v", point, err)
		}
		if _, err := v1alpha1.DecodeReview(data, v1alpha1.RefuseUnknown); err != nil {
			t.Errorf("%s: %v", point, err)
		}
		meta.Kind = v1alpha1.KindTaskReviewList
		data, err = json.Marshal(v1alpha1.TaskReviewList{TypeMeta: meta, Items: []v1alpha1.TaskReviewItem{{Request: request}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := fits(t, list, data); err != nil {
			t.Errorf("%s in a list: %v", point, err)
		}
	}
}

// Schema and decoder agree on what is an answer: both take the first ones, and neither takes the others.
func TestAnswersFitAsTheyDecode(t *testing.T) {
	s := compile(t, "review-response.json")
	for point, answers := range map[v1alpha1.Point]map[bool][]string{
		v1alpha1.Pre: {
			true: {
				`{"uid":"u","decision":"Run"}`,
				`{"uid":"u","decision":"Run","placeholders":{"a_b-1":[1,{"x":null}]},"inputs":{"parameters":{"p":1}},"labels":{"a":"b"},"podPatch":{},"state":5}`,
				`{"uid":"u","decision":"Reuse","outputs":{"artifacts":{"m":[{"uri":"s3://b/k"}]}},"template":"ByDigest"}`,
				`{"uid":"u","decision":"Skip","message":"m"}`,
				`{"uid":"u","decision":"Fail"}`,
				`{"uid":"u","pending":{"retryAfterSeconds":0.5},"message":"m"}`,
				`{"uid":"u","template":"Send"}`,
			},
			false: {
				`{"decision":"Run"}`,
				`{"uid":"u"}`,
				`{"uid":"u","decision":"run"}`,
				`{"uid":"u","decision":"Run","outputs":{}}`,
				`{"uid":"u","decision":"Reuse","inputs":{}}`,
				`{"uid":"u","decision":"Skip","podPatch":{}}`,
				`{"uid":"u","decision":"Run","pending":{"retryAfterSeconds":1}}`,
				`{"uid":"u","pending":{"retryAfterSeconds":0}}`,
				`{"uid":"u","pending":{"retryAfterSeconds":100000}}`,
				`{"uid":"u","decision":"Run","template":"Send"}`,
				`{"uid":"u","decision":"Run","placeholders":{"a.b":1}}`,
				`{"uid":"u","decision":"Run","placeholders":[1]}`,
				`{"uid":"u","decision":"Run","podPatch":[]}`,
				`{"uid":"u","decision":"Run","inputs":{"artifacts":{"m":{"uri":"x"}}}}`,
				`{"uid":"u","decision":"Run","extra":1}`,
				`{"uid":7,"decision":"Run"}`,
			},
		},
		v1alpha1.Post: {
			true: {
				`{"uid":"u","decision":"Done","outputs":{"parameters":{"a":"b"},"result":"r"}}`,
				`{"uid":"u","decision":"Fail","message":"too bad"}`,
				`{"uid":"u","decision":"Retry"}`,
			},
			false: {
				`{"uid":"u","decision":"Retry","outputs":{}}`,
				`{"uid":"u","decision":"Done","placeholders":{"a":1}}`,
				`{"uid":"u","decision":"Done","state":{}}`,
			},
		},
	} {
		for want, texts := range answers {
			for _, text := range texts {
				data := []byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":` + text + `}`)
				bySchema := fits(t, s, data)
				_, byDecoder := v1alpha1.DecodeResponse(data, point, "u")
				if diff := cmp.Diff([]bool{want, want}, []bool{bySchema == nil, byDecoder == nil}); diff != "" {
					t.Errorf("%s %s: schema says %v, decoder %v", point, text, bySchema, byDecoder)
				}
			}
		}
	}
}
