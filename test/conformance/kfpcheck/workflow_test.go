package kfpcheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const finished = `{
  "metadata": {"name": "p-x", "uid": "u"},
  "status": {"phase": "Failed", "message": "it failed", "nodes": {
    "p-x": {"id": "p-x", "name": "p-x", "displayName": "p-x", "type": "DAG", "phase": "Failed", "templateRef": {"template": "root"},
      "outputs": {"parameters": [{"name": "n", "value": "3"}, {"name": "s", "value": "text"}]}},
    "1": {"id": "1", "name": "p-x.a", "displayName": "The a", "type": "Retry", "phase": "Succeeded", "templateRef": {"template": "comp-a"}},
    "2": {"id": "2", "name": "p-x.a(0)", "displayName": "a(0)", "type": "Pod", "phase": "Error", "templateName": "comp-a"},
    "3": {"id": "3", "name": "p-x.a(1)", "displayName": "a(1)", "type": "Pod", "phase": "Succeeded", "templateName": "comp-a"},
    "4": {"id": "4", "name": "p-x.loop", "displayName": "loop", "type": "TaskGroup", "phase": "Failed", "templateRef": {"template": "comp-loop"}},
    "5": {"id": "5", "name": "p-x.loop(0:1.5)", "displayName": "loop(0:1.5)", "type": "DAG", "phase": "Failed", "templateRef": {"template": "comp-loop"}},
    "6": {"id": "6", "name": "p-x.loop(0:1.5).b", "displayName": "b", "type": "Pod", "phase": "Error", "templateName": "comp-a"},
    "7": {"id": "7", "name": "p-x.import", "displayName": "import", "type": "Pod", "phase": "Succeeded", "templateRef": {"template": "comp-import"}},
    "8": {"id": "8", "name": "p-x.again", "displayName": "again", "type": "Pod", "phase": "Succeeded", "message": "reused: p-y.a of p-y", "templateRef": {"template": "comp-a"}},
    "9": {"id": "9", "name": "p-x.after", "displayName": "after", "type": "Skipped", "phase": "Omitted"}
  }}}`

func TestReadWorkflow(t *testing.T) {
	r, err := ReadWorkflow([]byte(finished))
	if err != nil {
		t.Fatal(err)
	}
	if r.State != "FAILED" || r.Error == nil || r.Error.Message != "it failed" || r.RunID != "u" {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff(map[string]any{"n": 3.0, "s": "text"}, r.Outputs.Parameters); diff != "" {
		t.Error(diff)
	}
	type row struct{ ID, Key, Type, State, Parent string }
	var got []row
	for _, d := range r.Details.Tasks {
		got = append(got, row{d.ID, d.Name, d.Type, d.State, d.ParentID})
	}
	want := []row{
		{"p-x", "", "ROOT", "FAILED", ""},
		{"1", "a", "", "SUCCEEDED", "p-x"},
		{"9", "after", "", "SKIPPED", "p-x"},
		{"8", "again", "", "SUCCEEDED", "p-x"},
		{"7", "import", "", "SUCCEEDED", "p-x"},
		{"4", "loop", "LOOP", "FAILED", "p-x"},
		{"5", "loop", "LOOP_ITERATION", "FAILED", "4"},
		{"6", "b", "", "FAILED", "5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPods(t *testing.T) {
	r, err := ReadWorkflow([]byte(finished))
	if err != nil {
		t.Fatal(err)
	}
	var p Pipeline
	p.Components = map[string]Component{"comp-a": {ExecutorLabel: "exec-a"}, "comp-import": {ExecutorLabel: "exec-import"}}
	type container = struct {
		Image string `json:"image"`
	}
	p.Deployment.Executors = map[string]struct {
		Container *struct {
			Image string `json:"image"`
		} `json:"container"`
	}{"exec-a": {Container: &container{Image: "python:3.11"}}, "exec-import": {}}
	if got := Pods(&p, r); got != 3 { // two attempts of a, one of b
		t.Errorf("got %d", got)
	}
	p.Deployment.Executors["exec-a"].Container.Image = "argostub/createpvc"
	if got := Pods(&p, r); got != 0 {
		t.Errorf("claims: got %d", got)
	}
}

func TestReadWorkflowRefuses(t *testing.T) {
	for _, text := range []string{"", "{}", `{"status": {"phase": 1}}`} {
		if _, err := ReadWorkflow([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
