package v1alpha1

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func answer(response string) string {
	return `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","response":` + response + `}`
}

func TestDecodeResponse(t *testing.T) {
	got, err := DecodeResponse([]byte(answer(`{"uid":"u","decision":"Run","placeholders":{"whole":7,"point":1.0,"half":0.5,"large":9007199254740993,
		"huge":1e300,"list":[1,[2]],"map":{"a":{"b":3}},"none":null,"text":"x"},"inputs":{"parameters":{"p":2},"artifacts":{"a":[{"uri":"u","metadata":{"n":4}}]}},
		"state":{"any": [1, "thing"]}}`)), Pre, "u")
	if err != nil {
		t.Fatal(err)
	}
	want := &TaskReviewResponse{
		UID: "u", Decision: Run,
		Placeholders: map[string]any{
			"whole": int64(7), "point": int64(1), "half": 0.5, "large": int64(9007199254740993), "huge": 1e300,
			"list": []any{int64(1), []any{int64(2)}}, "map": map[string]any{"a": map[string]any{"b": int64(3)}}, "none": nil, "text": "x",
		},
		Inputs: &Inputs{
			Parameters: map[string]any{"p": int64(2)},
			Artifacts:  map[string][]Artifact{"a": {{URI: "u", Metadata: map[string]any{"n": int64(4)}}}},
		},
		State: json.RawMessage(`{"any": [1, "thing"]}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnswersMayRepeatTheRequest(t *testing.T) {
	text := strings.Replace(answer(`{"uid":"u","decision":"Done"}`), `"response"`, `"request":{"uid":"u"},"response"`, 1)
	if _, err := DecodeResponse([]byte(text), Post, "u"); err != nil {
		t.Error(err)
	}
}

// Every fault is named with its place, and all at once.
func TestFaultsOfAnswers(t *testing.T) {
	for text, want := range map[string][]string{
		"":             {"is empty; a JSON object is expected"},
		"hello":        {"is not JSON", `"hello"`},
		"[]":           {"must be an object, not a list"},
		"null":         {"apiVersion: must be", "response: is missing"},
		"{} {}":        {"is not JSON"},
		`{"kind":"X"}`: {`apiVersion: must be "sluice.dev/v1alpha1", not ""`, `kind: must be "TaskReview", not "X"`, "response: is missing"},
		answer(`{"uid":"u","Decision":"Run","desicion":"Run","decision":"Run","x":1}`): {
			`response.Decision: unknown field, did you mean "decision"?`, `response.desicion: unknown field, did you mean "decision"?`, "response.x: unknown field",
		},
		answer(`{"uid":"u","decision":"Run","decision":"Skip"}`): {"response.decision: is there twice"},
		answer(`{"uid":1,"decision":true,"labels":{"a":1},"inputs":[],"pending":{"retryAfterSeconds":"soon"}}`): {
			"response.uid: must be a text, not 1", "response.decision: must be a text, not true", "response.labels.a: must be a text, not 1",
			"response.inputs: must be an object, not a list", `response.pending.retryAfterSeconds: must be a number, not "soon"`,
		},
		answer(`{"uid":"u","decision":"Reuse","outputs":{"artifacts":{"m":{"uri":"x"}}}}`):    {"response.outputs.artifacts.m: must be a list, not an object"},
		answer(`{"uid":"u","decision":"Reuse","outputs":{"artifacts":{"m":[{"name":"x"}]}}}`): {"response.outputs.artifacts.m[0]: has neither uri nor store"},
		answer(`{"uid":"u","decision":"Reuse","outputs":{"artifacts":{"m":[{"uri":"x","sise":1}]}}}`): {
			`response.outputs.artifacts.m[0].sise: unknown field, did you mean "size"?`,
		},
		answer(`{"uid":"u"}`):                                                                       {"response.decision: is missing; at Pre it is one of [Run Reuse Skip Fail], or the answer has pending"},
		answer(`{"uid":"u","decision":"Retry"}`):                                                    {`response.decision: must be one of [Run Reuse Skip Fail] at Pre, not "Retry"`},
		answer(`{"uid":"u","decision":"Skip","outputs":{}}`):                                        {"response.outputs: is not allowed with decision Skip at Pre"},
		answer(`{"uid":"u","pending":{"retryAfterSeconds":5},"decision":"Run"}`):                    {"response.decision: may not stand beside pending"},
		answer(`{"uid":"u","pending":{"retryAfterSeconds":-1}}`):                                    {"response.pending.retryAfterSeconds: must be above 0 and at most 86400, not -1"},
		answer(`{"uid":"u","pending":{"retryAfterSeconds":1},"template":"Send"}`):                   {"exclude each other"},
		answer(`{"uid":"u","decision":"Run","template":"Maybe"}`):                                   {"response.template: must be ByDigest or Send"},
		answer(`{"uid":"u","decision":"Run","placeholders":{"a.b":1,"":2}}`):                        {"response.placeholders.a.b: is no name of a placeholder", "response.placeholders.: is no name"},
		answer(`{"uid":"u","decision":"Run","podPatch":"x"}`):                                       {`response.podPatch: must be an object, not "x"`},
		answer(`{"uid":"u","decision":"Run","state":"` + strings.Repeat("x", MaxStateBytes) + `"}`): {"response.state: has 16386 bytes, more than the 16384 (16 KiB)"},
		answer(`{"uid":"u","decision":"Run","placeholders":{"a":"` + strings.Repeat("x", MaxPlaceholderBytes) + `"}}`): {
			"response.placeholders: have", "more than the 65536 (64 KiB)",
		},
		strings.Repeat(" ", MaxAnswerBytes) + answer(`{}`): {"is larger than 1048576 bytes"},
	} {
		_, err := DecodeResponse([]byte(text), Pre, "u")
		if _, ok := errors.AsType[Problems](err); !ok {
			t.Errorf("%.80s: error is %v", text, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.80s: error is %q, which lacks %q", text, err, part)
			}
		}
	}
}

func TestLimitsAreInclusive(t *testing.T) {
	state := strings.Repeat("x", MaxStateBytes-2)
	if _, err := DecodeResponse([]byte(answer(`{"uid":"u","decision":"Run","state":"`+state+`"}`)), Pre, "u"); err != nil {
		t.Error(err)
	}
	values := strings.Repeat("x", MaxPlaceholderBytes-len(`{"a":""}`))
	if _, err := DecodeResponse([]byte(answer(`{"uid":"u","decision":"Run","placeholders":{"a":"`+values+`"}}`)), Pre, "u"); err != nil {
		t.Error(err)
	}
}

func TestRequestsOfANewerSluice(t *testing.T) {
	text := `{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","new":1,"request":{"uid":"u","hook":"h","point":"Pre","scope":"Task",
		"asked":"2026-01-31T12:00:00Z","workflow":{"name":"w","uid":"wu","new":2},"task":{"id":"1","path":"w.t","name":"t","attempt":0,"final":false,"inputs":{}}}}`
	if _, err := DecodeReview([]byte(text), IgnoreUnknown); err != nil {
		t.Error(err)
	}
	_, err := DecodeReview([]byte(text), RefuseUnknown)
	if err == nil || !strings.Contains(err.Error(), "request.workflow.new: unknown field") {
		t.Errorf("strictly: %v", err)
	}
	_, err = DecodeReview([]byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","request":{"point":"Post","asked":"noon"}}`), IgnoreUnknown)
	if err == nil || !strings.Contains(err.Error(), "request.asked: must be a time") {
		t.Errorf("a bad time: %v", err)
	}
	_, err = DecodeReview([]byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","request":{"point":"Post"}}`), IgnoreUnknown)
	for _, part := range []string{"request.uid: is missing", "request.task.id: is missing", "request.scope", "request.result: is missing"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("an empty request: %v, lacks %q", err, part)
		}
	}
}

func TestDecodeResponseList(t *testing.T) {
	points := map[string]Point{"a": Pre, "b": Post, "c": Pre, "d": Pre, "e": Pre}
	got, err := DecodeResponseList([]byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReviewList","items":[
		{"response":{"uid":"b","decision":"Done"}},{"response":{"uid":"a","decision":"Run"}},{"response":{"uid":"c","decision":"Done"}},
		{"failure":{"uid":"d","message":"no disk"}},{"response":{"uid":"stranger","decision":"Run"}},7]}`), points)
	if err != nil {
		t.Fatal(err)
	}
	if got["a"].Err != nil || got["a"].Response.Decision != Run || got["b"].Err != nil {
		t.Errorf("a: %+v, b: %+v", got["a"], got["b"])
	}
	for uid, want := range map[string]string{"c": "items[2].response.decision", "d": "the plugin failed: no disk", "e": `no answer for uid "e"`} {
		if got[uid].Err == nil || !strings.Contains(got[uid].Err.Error(), want) {
			t.Errorf("%s: %v, want %q", uid, got[uid].Err, want)
		}
	}
	if len(got) != len(points) {
		t.Errorf("%d answers", len(got))
	}
	if _, err := DecodeResponseList([]byte(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReview","items":[]}`), points); err == nil {
		t.Error("a single review's kind is taken for a list")
	}
}

// Whatever comes in, decoding gives an answer that may be used, or an error; never a panic.
func FuzzDecodeResponse(f *testing.F) {
	f.Add(answer(`{"uid":"u","decision":"Run","placeholders":{"a":1e400,"b":[{"c":-0.0}]},"state":{}}`))
	f.Add(answer(`{"uid":"u","decision":"Reuse","outputs":{"artifacts":{"m":[{"uri":"x","metadata":{"n":1}}]},"result":null}}`))
	f.Add(answer(`{"uid":"u","pending":{"retryAfterSeconds":1e-9}}`))
	f.Add(`{"apiVersion":"sluice.dev/v1alpha1","kind":"TaskReviewList","items":[{"response":{"uid":"u","decision":"Run"}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, point := range []Point{Pre, Post} {
			if got, err := DecodeResponse([]byte(text), point, "u"); err == nil {
				checkUsable(t, got, point)
			}
			list, err := DecodeResponseList([]byte(text), map[string]Point{"u": point})
			if err != nil {
				continue
			}
			if a, there := list["u"]; !there || (a.Err == nil) == (a.Response == nil) {
				t.Errorf("list gives %+v", list)
			} else if a.Err == nil {
				checkUsable(t, a.Response, point)
			}
		}
	})
}

func checkUsable(t *testing.T, r *TaskReviewResponse, point Point) {
	t.Helper()
	if r.UID != "u" || (r.Decision == "") == (r.Pending == nil && r.Template != TemplateSend) {
		t.Errorf("at %s %+v was let through", point, r)
	}
	// It can be written, and read again to the same.
	data, err := json.Marshal(TaskReview{TypeMeta: TypeMeta{APIVersion: APIVersion, Kind: KindTaskReview}, Response: r})
	if err != nil {
		t.Fatalf("%+v cannot be written: %v", r, err)
	}
	again, err := DecodeResponse(data, point, "u")
	if err != nil {
		t.Fatalf("%s cannot be read again: %v", data, err)
	}
	before, _ := json.Marshal(r)
	after, _ := json.Marshal(again)
	if string(before) != string(after) {
		t.Errorf("%s became %s", before, after)
	}
}
