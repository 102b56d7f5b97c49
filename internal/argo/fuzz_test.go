package argo

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzParse reads arbitrary text as a manifest, checks it and compiles it. Nothing may panic; what compiles can be saved;
// every error names the file.
func FuzzParse(f *testing.F) {
	f.Add(everything(f))
	for _, s := range []string{
		head + "spec: {entrypoint: a, templates: [{name: a, container: {image: x}}]}",
		head + "spec:\n  entrypoint: a\n  templates:\n  - name: a\n    dag:\n      tasks:\n      - {name: b, template: a, depends: '!b'}\n",
		"apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: x}\nspec: {schedules: ['@daily'], workflowSpec: {workflowTemplateRef: {name: t}}}\n---\napiVersion: argoproj.io/v1alpha1\nkind: WorkflowTemplate\nmetadata: {name: t}\nspec: {entrypoint: a, templates: [{name: a, steps: [[{name: b, templateRef: {name: t, template: '{{workflow.name}}'}}]]}]}",
		`{"apiVersion": "argoproj.io/v1alpha1", "kind": "List", "items": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "a"}, "spec": {}}]}`,
		"a: &a [*a]", "<<: *x", "? {}: 1", "\t", "---\n---\n", "%YAML 1.1\n---\n", "a: !!binary x", "{{x}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		IsArgo(data)
		b, err := Load(Source{Name: "fuzz.yaml", Data: data}, nil)
		if err != nil {
			if !strings.Contains(err.Error(), "fuzz.yaml") {
				t.Errorf("no file in %v", err)
			}
			return
		}
		_ = b.Lint(Options{})
		p, err := b.Compile(Options{})
		if err != nil {
			if !strings.Contains(err.Error(), "fuzz.yaml") {
				t.Errorf("no file in %v", err)
			}
			return
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("the program cannot be saved: %v", err)
		}
		if _, err := b.Workflow(Options{}); err != nil {
			t.Errorf("what compiles has no workflow: %v", err)
		}
	})
}
