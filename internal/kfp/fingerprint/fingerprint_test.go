package fingerprint

import (
	"encoding/json"
	"maps"
	"testing"
)

const (
	modelSchema = "title: kfp.Model\ntype: object\nproperties:\n  framework:\n    type: string\n  framework_version:\n    type: string\n"
)

// The sums are those of upstream's own tests (backend/src/v2/cacheutils/cache_test.go).
func TestKnownSums(t *testing.T) {
	full := Key{
		InputArtifactNames:   map[string][]string{"dataset_one": {"1"}, "dataset_two": {"2"}},
		InputParameterValues: map[string]any{"message": "Some string value", "num_steps": int64(5)},
		OutputArtifactsSpec: map[string]Artifact{
			"model":   {Name: "model", InstanceSchema: modelSchema, Metadata: map[string]any{"name": "model"}},
			"metrics": {Name: "metrics", SchemaTitle: "kfp.Metrics", Metadata: map[string]any{"name": "metrics"}},
		},
		OutputParametersSpec: map[string]string{"output_parameter_one": "STRING", "output_parameter_two": "INT"},
		Image:                "python:3.11", CmdArgs: []string{"sh", "ec", "test"},
	}
	small := Key{
		InputArtifactNames:   map[string][]string{"dataset": {"10"}},
		OutputParametersSpec: map[string]string{"output_parameter": "DOUBLE"},
		Image:                "python:3.11", CmdArgs: []string{"sh", "ec", "run"},
	}
	for _, c := range []struct {
		name string
		key  Key
		want string
	}{
		{"full", full, "b498530c9016917298999ec0b01f364a180f8a3862bea0fa672a383ca3f22e4e"},
		{"small", small, "3d9a2a778fa3174c6cfc6e639c507c265b5f21ef6e5b1dd70b236462cc6da464"},
	} {
		got, err := c.key.Sum()
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

func TestCustomKeyIgnoresAllElse(t *testing.T) {
	call := json.RawMessage(`{"componentRef":{"name":"comp-a"},"cachingOptions":{"enableCache":true,"cacheKey":"k"}}`)
	one, err := Of(Task{Call: call, Parameters: map[string]any{"x": 1}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Of(Task{Call: call, Parameters: map[string]any{"x": 2}})
	if err != nil {
		t.Fatal(err)
	}
	// sha256 of "comp-a", a zero byte and "k".
	if want := Custom("comp-a", "k"); one != want || two != want {
		t.Errorf("got %s and %s, want %s", one, two, want)
	}
	if Custom("comp-a", "k") == Custom("comp-b", "k") {
		t.Error("two components with the same key meet")
	}
}

func TestWhatCounts(t *testing.T) {
	const template = `{"component":{"executorLabel":"e","outputDefinitions":{"parameters":{"Output":{"parameterType":"STRING"}},
		"artifacts":{"m":{"artifactType":{"schemaTitle":"system.Model","schemaVersion":"0.0.1"}}}}},
		"executor":{"container":{"image":"python:3.11","command":["sh"],"args":["{{$}}"],"env":[{"name":"A","value":"1"}]}},
		"kubernetes":{"pvcMount":[{"constant":"b"},{"pvcNameParameter":{"componentInputParameter":"p"}},{"constant":"b"}]}}`
	base := Task{
		Template: json.RawMessage(template), Call: json.RawMessage(`{"componentRef":{"name":"c"},"cachingOptions":{"enableCache":true}}`),
		Parameters: map[string]any{"x": int64(1), "d": "default", "sluice--pvcMount-1": "a", "none": nil},
		Defaulted:  []string{"d"}, Artifacts: map[string][]string{"in": {"/artifacts/1"}},
	}
	sum := func(change func(*Task)) string {
		t.Helper()
		task := base
		task.Parameters = map[string]any{}
		maps.Copy(task.Parameters, base.Parameters)
		change(&task)
		got, err := Of(task)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := sum(func(*Task) {})
	for name, change := range map[string]func(*Task){
		"a default":            func(t *Task) { t.Parameters["d"] = "other" },
		"the environment":      func(t *Task) { t.Template = replace(template, `"value":"1"`, `"value":"2"`) },
		"a whole double":       func(t *Task) { t.Parameters["x"] = 1.0 },
		"snake case":           func(t *Task) { t.Template = replace(template, "outputDefinitions", "output_definitions") },
		"an input without any": func(t *Task) { delete(t.Parameters, "none") },
	} {
		if sum(change) != same {
			t.Errorf("%s counts", name)
		}
	}
	for name, change := range map[string]func(*Task){
		"a parameter":    func(t *Task) { t.Parameters["x"] = int64(2) },
		"an artifact":    func(t *Task) { t.Artifacts = map[string][]string{"in": {"/artifacts/2"}} },
		"the image":      func(t *Task) { t.Template = replace(template, "python:3.11", "python:3.12") },
		"an argument":    func(t *Task) { t.Template = replace(template, `"{{$}}"`, `"{{$}}","x"`) },
		"an output type": func(t *Task) { t.Template = replace(template, `"STRING"`, `"LIST"`) },
		"a claim":        func(t *Task) { t.Parameters["sluice--pvcMount-1"] = "z" },
		"a given default": func(t *Task) {
			t.Defaulted = nil
		},
	} {
		if sum(change) == same {
			t.Errorf("%s does not count", name)
		}
	}
}

func replace(s, old, with string) json.RawMessage {
	out := []byte(s)
	for i := 0; i+len(old) <= len(out); i++ {
		if string(out[i:i+len(old)]) == old {
			return append(append(append([]byte{}, out[:i]...), with...), out[i+len(old):]...)
		}
	}
	return out
}

func TestOnlyContainers(t *testing.T) {
	got, err := Of(Task{Template: json.RawMessage(`{"executor":{"importer":{}}}`)})
	if err != nil || got != "" {
		t.Errorf("got %q, %v for an importer, want none", got, err)
	}
	if _, err := Of(Task{Template: json.RawMessage(`[`)}); err == nil {
		t.Error("a broken template is accepted")
	}
}
