package kfp

import (
	"errors"
	"strings"
	"testing"
)

// What cannot be read hides nothing else that is wrong, and everything has its place in the file.
func TestAllErrorsAtOnceWithTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes []string
		want    string
	}{
		{"unknown field", []string{"    executorLabel: exec-echo\n", "    executorLabel: exec-none\n    colour: red\n", "producerSubtask: second", "producerSubtask: third"},
			`p.yaml:4:5: components.comp-echo.executorLabel: there is no executor "exec-none"; name one of deploymentSpec.executors, or add it there
p.yaml:5:5: components.comp-echo.colour: unknown field "colour"; remove it, or check its spelling
p.yaml:40:11: root.dag.outputs.parameters.Output.valueFromParameter: there is no task "third"; name a task of the same dag`},
		{"wrong scalar", []string{"image: alpine", "image: 5", "schemaVersion: 2.1.0", "schemaVersion: 1.0.0"},
			`p.yaml:19:9: deploymentSpec.executors.exec-echo.container.image: got the number 5 where a text is needed; write a text
p.yaml:54:1: schemaVersion: version 1.0.0 is not supported, only 2.1.0; compile the pipeline with the kfp SDK 2`},
		{"wrong list", []string{"command: [echo]", "command: echo", "schemaVersion: 2.1.0", "schemaVersion: 1.0.0"},
			`p.yaml:20:9: deploymentSpec.executors.exec-echo.container.command: got the text "echo" where a list is needed; write a list
p.yaml:54:1: schemaVersion: version 1.0.0 is not supported, only 2.1.0; compile the pipeline with the kfp SDK 2`},
		{"nothing follows from what cannot be used", []string{"        componentRef: {name: comp-echo}\n        inputs:\n          parameters:\n            text: {componentInputParameter: message}\n        taskInfo: {name: first}", "        componentRef: {name: 3}"},
			`p.yaml:42:24: root.dag.tasks.first.componentRef.name: got the number 3 where a text is needed; write a text`},
		{"missing", []string{"pipelineInfo: {name: hello}\n", ""}, `p.yaml: pipelineInfo.name: nothing is no name for a pipeline; name the pipeline with lower-case letters, digits and hyphens`},
	} {
		_, err := Load(Source{Name: "p.yaml", Data: []byte(change(t, hello, c.changes...))})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestPlacesOfWrappedPipelines(t *testing.T) {
	broken := change(t, hello, "executorLabel: exec-echo", "executor_label: exec-none")
	wrapped := "pipeline_spec:\n" + strings.TrimRight("  "+strings.ReplaceAll(strings.TrimSpace(broken), "\n", "\n  "), " ")
	_, err := Load(Source{Name: "p.yaml", Data: []byte(wrapped)})
	var invalid *InvalidError
	if !errors.As(err, &invalid) || len(invalid.Problems) != 1 {
		t.Fatalf("got %v", err)
	}
	if p := invalid.Problems[0]; p.Line != 4 || p.Column != 7 {
		t.Errorf("got line %d, column %d of %v, want 4, 7", p.Line, p.Column, p)
	}
	_, err = Load(Source{Name: "p.json", Data: []byte("{\"pipelineInfo\": {\"name\": \"x\"},\n \"root\": {\"dag\": {\"tasks\": {\"a.b\": {\"componentRef\": {\"name\": \"none\"}}}}}}")})
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v", err)
	}
	for _, p := range invalid.Problems {
		if p.Path == "root.dag.tasks.a.b.componentRef.name" && (p.Line != 2 || p.Column != 54) {
			t.Errorf("got line %d, column %d of %v, want 2, 54", p.Line, p.Column, p)
		}
	}
	_, err = Load(Source{Name: "p.yaml", Data: []byte("a: 1\nb: [\n")})
	if !errors.As(err, &invalid) || invalid.Problems[0].Line == 0 {
		t.Errorf("a mistake of YAML has no line: %v", err)
	}
}
