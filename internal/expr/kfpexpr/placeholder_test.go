package kfpexpr

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/expr"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"plain", "plain"},
		{"{{$.inputs.parameters['s']}}", "text"},
		{`a-{{$.inputs.parameters["s"]}}-b`, "a-text-b"},
		{"{{$.inputs.parameters[''s'']}}", "text"},
		{"{{$.inputs.parameters.s}}", "text"},
		{"{{$.inputs.parameters['has.dot']}}", "dot"},
		{"{{$.inputs.parameters['i']}} {{$.inputs.parameters['f']}} {{$.inputs.parameters['big']}}", "5 0.25 1000000000000000000000"},
		{"{{$.inputs.parameters['b']}}", "true"},
		{"{{$.inputs.parameters['l']}}", `["a",1]`},
		{"{{$.inputs.parameters['m']}}", `{"k":"<v>"}`},
		// One pass: a value that looks like a placeholder stays.
		{"{{$.inputs.parameters['tricky']}}", "{{$.inputs.parameters['s']}}"},
		{"{{$.inputs.artifacts['data'].uri}}", "/store/data"},
		{"{{$.inputs.artifacts['data'].path}}", "/store/data"},
		{"{{$.inputs.artifacts['data'].name}} {{$.inputs.artifacts['data'].type}}", "data system.Dataset"},
		{"{{$.inputs.artifacts['data'].metadata['rows']}}", "3"},
		{"{{$.inputs.artifacts['data'].metadata['deep']['k']}}", "v"},
		{"{{$.inputs.artifacts['s3'].path}}", "/s3/bucket/a/b"},
		{"{{$.inputs.artifacts['s3'].key}}", "a/b"},
		{"{{$.inputs.artifacts['data'].key}}", "/store/data"},
		{"{{$.inputs.artifacts['s3']}}", `{"artifacts":[{"metadata":{},"name":"s3","uri":"s3://bucket/a/b"}]}`},
		{"{{$.outputs.parameters['o'].output_file}}", "/tmp/kfp/outputs/o"},
		{"{{$.outputs.artifacts['model'].uri}}", "gs://bucket/p/run/task/id/model"},
		{"{{$.outputs.artifacts['model'].path}}", "/gcs/bucket/p/run/task/id/model"},
		{"{{$.outputs.artifacts['model'].metadata}}", `{"a":"b"}`},
		{"{{$.outputs.output_file}}", "/gcs/bucket/p/run/task/id/output_metadata.json"},
		{"{{$.output_metadata_uri}}", "/gcs/bucket/p/run/task/id/output_metadata.json"},
		{"{{$.pipeline_root}}", "/artifacts"},
		{"{{$.pipeline_job_name}}", "My run"},
		{"{{$.pipeline_job_resource_name}}", "run-1"},
		{"{{$.pipeline_job_uuid}}", "uid-1"},
		{"{{$.pipeline_task_name}}", "train"},
		{"{{$.pipeline_task_uuid}}", "uid-1/run-1.train"},
		{"{{$.pipeline_job_create_time_utc}}", "2026-01-02T03:04:05Z"},
		{"{{$.pipeline_job_schedule_time_utc}}", "2026-01-02T03:04:05Z"},
		{"{{$.workspace_path}}/x", "/kfp-workspace/x"},
		{"{{$.hooks['h']['k']}} {{$.hooks['h']['list']}}", "v [1]"},
		{"{{$.tasks['a'].hooks['h']['k']}}", "v1"},
		{"{{$.scope['tasks']['a']['outputs']['parameters']['x']}}", "<x>"},
		{"{{$.const['%7B%22a%22%3A1%7D']}}", `{"a":1}`},
		{"{{$.select['parseJson%28string_value%29.k'].scope['inputs']['parameters']['m']}}", "<v>"},
		{"{{$.call_uid['b']}}", "uid-1/run-1.b"},
		{"[{{$.optional['null']}}{{$.optional['nowhere']}}{{$.optional['s']}}]", "[text]"},
		// What is no placeholder stays.
		{"{{$.pipeline_google_cloud_location}}", "{{$.pipeline_google_cloud_location}}"},
		{"{{$.inputs.parameters['s'].json_escape[1]}}", "{{$.inputs.parameters['s'].json_escape[1]}}"},
		{"{{ $.inputs.parameters['s'] }} {{$ {{$.", "{{ $.inputs.parameters['s'] }} {{$ {{$."},
		{"{{$.inputs.parameters['s'", "{{$.inputs.parameters['s'"},
		{"{{inputs.parameters.s}} {{workflow.name}}", "{{inputs.parameters.s}} {{workflow.name}}"},
		{"{{$.a{{$.inputs.parameters['s']}}", "{{$.atext"},
	} {
		got, err := New().Text(c.src, leaf())
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.src, got, err, c.want)
		}
	}
}

func TestUnresolved(t *testing.T) {
	for _, c := range []struct {
		src     string
		skipped bool
	}{
		{"{{$.inputs.parameters['nowhere']}}", false},
		{"{{$.inputs.parameters['null']}}", false},
		{"{{$.inputs.parameters['skipped']}}", true},
		{"{{$.inputs.artifacts['nowhere'].uri}}", false},
		{"{{$.inputs.artifacts['empty'].path}}", false},
		{"{{$.inputs.artifacts['empty']}}", false},
		{"{{$.inputs.artifacts['skipped'].uri}}", true},
		{"{{$.inputs.artifacts['data'].metadata['nothing']}}", false},
		{"{{$.outputs.parameters['nowhere'].output_file}}", false},
		{"{{$.hooks['h']['nothing']}}", false},
		{"{{$.scope['tasks']['skipped']['outputs']['parameters']['x']}}", true},
		{"{{$.final_status['skipped']}}", true},
	} {
		_, err := New().Text(c.src, leaf())
		if u, ok := errors.AsType[*expr.UnresolvedError](err); !ok {
			t.Errorf("%s: got %v, want an unresolved placeholder", c.src, err)
		} else if u.Skipped != c.skipped || "{{"+u.Tag+"}}" != c.src {
			t.Errorf("%s: got %+v, want skipped %v", c.src, u, c.skipped)
		}
	}
}

func TestExecutorInput(t *testing.T) {
	got, err := New().Text("{{$}}", leaf())
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(got), &doc); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	want := map[string]any{
		"inputs": map[string]any{
			"parameterValues": map[string]any{
				"s": "text", "i": 5.0, "f": 0.25, "big": 1e21, "b": true, "l": []any{"a", 1.0}, "m": map[string]any{"k": "<v>"},
				"tricky": "{{$.inputs.parameters['s']}}", "has.dot": "dot",
			},
			"artifacts": map[string]any{
				"data": map[string]any{"artifacts": []any{
					map[string]any{"name": "data", "uri": "/store/data", "type": map[string]any{"schemaTitle": "system.Dataset", "schemaVersion": "0.0.1"},
						"metadata": map[string]any{"rows": 3.0, "deep": map[string]any{"k": "v"}}},
					map[string]any{"name": "more", "uri": "s3://b/more", "metadata": map[string]any{}},
				}},
				"s3": map[string]any{"artifacts": []any{map[string]any{"name": "s3", "uri": "s3://bucket/a/b", "metadata": map[string]any{}}}},
			},
		},
		"outputs": map[string]any{
			"parameters": map[string]any{"o": map[string]any{"outputFile": "/tmp/kfp/outputs/o"}},
			"artifacts": map[string]any{"model": map[string]any{"artifacts": []any{map[string]any{
				"name": "model", "uri": "gs://bucket/p/run/task/id/model", "type": map[string]any{"schemaTitle": "system.Model"}, "metadata": map[string]any{"a": "b"},
			}}}},
			"outputFile": "/gcs/bucket/p/run/task/id/output_metadata.json",
		},
	}
	if diff := cmp.Diff(want, doc); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if strings.Contains(got, `\u003c`) {
		t.Errorf("it is escaped for HTML: %s", got)
	}
}

func TestArgs(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"plain", []string{"a", "{{$.inputs.parameters['i']}}"}, []string{"a", "5"}},
		{"present", []string{`{"IfPresent": {"InputName": "s", "Then": ["--s", "{{$.inputs.parameters['s']}}"], "Else": ["no"]}}`}, []string{"--s", "text"}},
		{"present text", []string{`{"IfPresent": {"InputName": "s", "Then": "yes"}}`}, []string{"yes"}},
		{"absent", []string{"x", `{"IfPresent": {"InputName": "nowhere", "Then": ["a"]}}`, "y"}, []string{"x", "y"}},
		{"else", []string{`{"IfPresent": {"InputName": "null", "Then": ["{{$.inputs.parameters['null']}}"], "Else": ["a", "b"]}}`}, []string{"a", "b"}},
		{"artifact", []string{`{"IfPresent": {"InputName": "data", "Then": ["{{$.inputs.artifacts['data'].uri}}"], "Else": []}}`}, []string{"/store/data"}},
		{"artifact absent", []string{`{"IfPresent": {"InputName": "empty", "Then": ["x"], "Else": "none"}}`}, []string{"none"}},
		{"concat", []string{`{"Concat": ["p-", "{{$.inputs.parameters['s']}}", "-{{$.inputs.parameters['i']}}"]}`}, []string{"p-text-5"}},
		{"concat of ifpresent", []string{`{"Concat": ["a", {"IfPresent": {"InputName": "s", "Then": ["b", "c"], "Else": "d"}}, {"IfPresent": {"InputName": "no", "Then": "x"}}]}`}, []string{"abc"}},
		{"ifpresent of concat", []string{`{"IfPresent": {"InputName": "s", "Then": ["--x", {"Concat": ["1", {"Concat": ["2", "3"]}]}]}}`}, []string{"--x", "123"}},
		{"ifpresent of ifpresent", []string{`{"IfPresent": {"InputName": "s", "Then": {"IfPresent": {"InputName": "no", "Then": "x", "Else": "y"}}}}`}, []string{"y"}},
		{"else null", []string{`{"IfPresent": {"InputName": "no", "Then": "x", "Else": null}}`}, []string{}},
		// Look-alikes are texts.
		{"other json", []string{`{"IfPresent": 1}`, `{"Concat": "x"}`, `{"IfPresent": {"InputName":"s","Then":"x","More":1}}`, `{"x": "Concat"}`},
			[]string{`{"IfPresent": 1}`, `{"Concat": "x"}`, `{"IfPresent": {"InputName":"s","Then":"x","More":1}}`, `{"x": "Concat"}`}},
	} {
		got, err := New().Args(c.args, leaf())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
	if _, err := New().Args([]string{"a", "{{$.inputs.parameters['nowhere']}}"}, leaf()); err == nil || !strings.Contains(err.Error(), "argument 1") {
		t.Errorf("got %v, want an error that names the argument", err)
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		src  string
		want any
	}{
		{`"{{$.inputs.parameters['i']}}"`, int64(5)},
		{`"{{$.inputs.parameters['l']}}"`, []any{"a", int64(1)}},
		{`"n={{$.inputs.parameters['i']}}"`, "n=5"},
		{`[{"a": "{{$.inputs.parameters['i']}}", "{{$.inputs.parameters['s']}}": 1.0}]`, []any{map[string]any{"a": "5", "text": int64(1)}}},
		{`"{{$.inputs.parameters['null']}}"`, nil},
		{`"{{$.final_status['a']}}"`, map[string]any{"state": "SUCCEEDED", "error": map[string]any{}, "pipelineTaskName": "a", "pipelineJobResourceName": "run-1"}},
		{`"{{$.final_status['bad']}}"`, map[string]any{
			"state": "FAILED", "error": map[string]any{"code": int64(2), "message": "exit code 1"}, "pipelineTaskName": "bad", "pipelineJobResourceName": "run-1",
		}},
		{`"{{$.final_status['late']}}"`, map[string]any{"state": "SKIPPED", "error": map[string]any{}, "pipelineTaskName": "late", "pipelineJobResourceName": "run-1"}},
	} {
		got, err := New().Value(c.src, leaf())
		if err != nil {
			t.Errorf("%s: %v", c.src, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.src, diff)
		}
	}
	if _, err := New().Value("not json", leaf()); err == nil {
		t.Error("an expression that is no JSON is accepted")
	}
}

func TestPodPatch(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"values", `{"a":{"$parameter":"m"},"b":"{{$.inputs.parameters['s']}}","n":1}`, `{"a":{"k":"<v>"},"b":"text","n":1}`},
		{"absent field", `{"a":{"$parameter":"nowhere"},"b":1}`, `{"b":1}`},
		{"required", `{"list":[{"$require":"null","name":"x"},{"$require":"s","name":"y"}]}`, `{"list":[{"name":"y"}]}`},
		{"spread", `{"t":[{"$parameter":"l","$list":true},{"$parameter":"s","$list":true}]}`, `{"t":["a",1,"text"]}`},
		{"nothing left", `{"t":[{"$parameter":"null","$list":true}]}`, ""},
		{"empty stays", `{"emptyDir":{},"l":[]}`, `{"emptyDir":{},"l":[]}`},
	} {
		got, err := New().Text(PatchMarker+c.src, leaf())
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
	if _, err := New().Text(PatchMarker+"{", leaf()); err == nil {
		t.Error("a broken patch is accepted")
	}
}

func TestRewrite(t *testing.T) {
	got := Rewrite("a {{$.x}} {{$.y['z']}} {{$ b", func(steps []string) (string, bool) {
		return "<" + strings.Join(steps, "/") + ">", steps[0] == "y"
	})
	if want := "a {{$.x}} <y/z> {{$ b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if diff := cmp.Diff([][]string{{"x"}, {"y", "z"}}, Placeholders("a {{$.x}} {{$.y['z']}} {{$ b")); diff != "" {
		t.Error(diff)
	}
}

func FuzzPlaceholders(f *testing.F) {
	for _, s := range []string{
		"{{$}}", "{{$.inputs.parameters['s']}}", "{{$.outputs.artifacts[\"model\"].path}}", "{{$.select['x'].scope['inputs']}}",
		`{"Concat": ["a", {"IfPresent": {"InputName": "s", "Then": "b"}}]}`, PatchMarker + `{"a":[{"$parameter":"l","$list":true}]}`,
		"{{$.const['%7B']}}", "{{$.a{{$.b}}", "{{$['''']}}", "\"{{$.final_status['a']}}\"",
	} {
		f.Add(s)
	}
	l := New()
	f.Fuzz(func(t *testing.T, src string) {
		env := leaf()
		// None may panic; without an opening a text is itself.
		got, err := l.Text(src, env)
		if err == nil && !strings.Contains(src, opening) && got != src {
			if _, structured := parseStructure(src); !structured {
				t.Errorf("%q became %q", src, got)
			}
		}
		if _, err := l.Args([]string{src, "x"}, env); err == nil {
			_ = Placeholders(src)
		}
		_, _ = l.Value(src, env)
		if same := Rewrite(src, func([]string) (string, bool) { return "", false }); same != src {
			t.Errorf("a rewrite of nothing made %q of %q", same, src)
		}
	})
}
