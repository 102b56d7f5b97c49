package controller

import (
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/controller/status"
	"github.com/sluice-ml/sluice/internal/engine"
)

// approval waits for a person between two tasks.
const approval = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: approval}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: approve, template: approve}
    - - name: say
        template: say
        arguments: {parameters: [{name: text, value: "{{steps.approve.outputs.parameters.text}}"}]}
  - name: approve
    suspend: {}
    outputs:
      parameters:
      - {name: text, valueFrom: {supplied: {}, default: nothing}}
  - name: say
    inputs: {parameters: [{name: text}]}
    container: {image: alpine, command: [echo, "{{inputs.parameters.text}}"]}
`

func waiting(t *testing.T) func(workflow) bool {
	return func(o workflow) bool { return node(t, o, "approve")["phase"] == "Running" }
}

// finishNodes is what `argo resume` and `argo node set` do to suspended nodes.
func finishNodes(o map[string]any, phase, message string, outputs map[string]string) {
	nodes, _ := nested(o, "status", "nodes").(map[string]any)
	for _, n := range nodes {
		m, _ := n.(map[string]any)
		if m["type"] != "Suspend" || m["phase"] != "Running" {
			continue
		}
		if phase != "" {
			m["phase"], m["message"], m["finishedAt"] = phase, message, "2026-01-02T03:04:05Z"
		}
		parameters, _ := nested(m, "outputs", "parameters").([]any)
		for _, p := range parameters {
			p, _ := p.(map[string]any)
			name, _ := p["name"].(string)
			if v, ok := outputs[name]; ok {
				p["value"] = v
				delete(p, "valueFrom")
			}
		}
	}
}

// takenOver says whether an edit is made while a controller runs, or between two.
func eachWay(t *testing.T, f func(t *testing.T, w *world, edit func(name string, change func(map[string]any)))) {
	script := func(_ engine.Run, cmd engine.StartTask) dummy.Act {
		if strings.HasSuffix(cmd.Path, ".fails") && !strings.Contains(cmd.Path, "#") {
			return dummy.Act{Result: dummy.Failed(1, "no")}
		}
		return dummy.Act{}
	}
	t.Run("while it runs", func(t *testing.T) {
		w := newWorld(t, script)
		w.controller()
		f(t, w, w.edit)
	})
	t.Run("while no controller runs", func(t *testing.T) {
		w := newWorld(t, script)
		stop := w.controller()
		f(t, w, func(name string, change func(map[string]any)) {
			stop()
			w.edit(name, change)
			stop = w.controller()
		})
	})
}

func TestResume(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(approval)
		w.until("Workflow", "approval", "waiting", waiting(t))
		edit("approval", func(o map[string]any) {
			finishNodes(o, "Succeeded", "Resumed by: me", map[string]string{"text": "yes"})
		})
		o := w.ended("approval")
		if say := node(t, o, "say"); o.phase() != "Succeeded" || !strings.Contains(text(say["inputs"]), `"yes"`) {
			t.Errorf("status: %v", o.status())
		}
		if m := node(t, o, "approve")["message"]; m != "Resumed by: me" {
			t.Errorf("message %v", m)
		}
	})
}

// Outputs can be set before the task is resumed, and are still there then.
func TestSetOutputsThenResume(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(approval)
		w.until("Workflow", "approval", "waiting", waiting(t))
		edit("approval", func(o map[string]any) { finishNodes(o, "", "", map[string]string{"text": "later"}) })
		edit("approval", func(o map[string]any) { finishNodes(o, "Succeeded", "", nil) })
		o := w.ended("approval")
		if say := node(t, o, "say"); o.phase() != "Succeeded" || !strings.Contains(text(say["inputs"]), `"later"`) {
			t.Errorf("status: %v", o.status())
		}
	})
}

// `argo stop --node-field-selector` and `argo node set --phase Failed` end a suspended task as failed.
func TestSetFailed(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(approval)
		w.until("Workflow", "approval", "waiting", waiting(t))
		edit("approval", func(o map[string]any) { finishNodes(o, "Failed", "not approved", nil) })
		if o := w.ended("approval"); o.phase() != "Failed" || node(t, o, "approve")["message"] != "not approved" {
			t.Errorf("status: %v", o.status())
		}
	})
}

func TestStop(t *testing.T) {
	for strategy, exits := range map[string]bool{"Stop": true, "Terminate": false} {
		t.Run(strategy, func(t *testing.T) {
			eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
				w.submit(strings.Replace(approval, "  entrypoint: main", "  entrypoint: main\n  onExit: bye", 1) + "  - name: bye\n    container: {image: alpine, command: [echo, bye]}\n")
				w.until("Workflow", "approval", "waiting", waiting(t))
				edit("approval", func(o map[string]any) { set(o, strategy, "spec", "shutdown") })
				o := w.ended("approval")
				if o.phase() != "Failed" || !strings.Contains(text(o.status()), "strategy '"+strategy+"'") {
					t.Errorf("status: %v", o.status())
				}
				if ran := w.tasks.Runs("uid-1", "approval.onExit") == 1; ran != exits {
					t.Errorf("the exit handler ran: %v, want %v", ran, exits)
				}
			})
		})
	}
}

func set(o map[string]any, v any, path ...string) {
	for _, step := range path[:len(path)-1] {
		o, _ = o[step].(map[string]any)
	}
	o[path[len(path)-1]] = v
}

// A suspended workflow starts nothing until it is resumed.
func TestSuspendWorkflow(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(strings.Replace(chain, "  entrypoint: main", "  suspend: true\n  entrypoint: main", 1))
		w.until("Workflow", "chain", "begun", func(o workflow) bool { return o.begun() })
		if n := w.tasks.Runs("uid-1", "chain.a"); n != 0 {
			t.Errorf("a ran %d times in a suspended workflow", n)
		}
		edit("chain", func(o map[string]any) { delete(o["spec"].(map[string]any), "suspend") })
		if o := w.ended("chain"); o.phase() != "Succeeded" {
			t.Errorf("status: %v", o.status())
		}
	})
}

const failing = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: failing}
spec:
  entrypoint: main
  arguments: {parameters: [{name: p, value: "1"}]}
  templates:
  - name: main
    dag:
      tasks:
      - {name: first, template: say}
      - {name: fails, template: say, depends: first}
      - {name: last, template: say, depends: fails}
  - name: say
    container: {image: alpine, command: [echo, "{{workflow.parameters.p}}"]}
`

// retryEdit is what `argo retry` writes: the failed nodes are taken out, and the workflow is as one that has not ended.
func retryEdit(o map[string]any, also ...string) {
	s, _ := o["status"].(map[string]any)
	delete(s, "phase")
	delete(s, "message")
	s["startedAt"], s["finishedAt"] = "2026-01-02T03:04:05Z", nil
	if labels, ok := nested(o, "metadata", "labels").(map[string]any); ok {
		delete(labels, status.LabelCompleted)
	}
	nodes, _ := s["nodes"].(map[string]any)
	for id, n := range nodes {
		m, _ := n.(map[string]any)
		switch {
		case m["type"] == "DAG":
			m["phase"] = "Running"
		case m["phase"] == "Failed", m["phase"] == "Omitted":
			delete(nodes, id)
		}
		for _, name := range also {
			if m["displayName"] == name {
				delete(nodes, id)
			}
		}
	}
}

func TestRetry(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(failing)
		if o := w.ended("failing"); o.phase() != "Failed" {
			t.Fatalf("status: %v", o.status())
		}
		edit("failing", func(o map[string]any) { retryEdit(o) })
		o := w.ended("failing")
		if o.phase() != "Succeeded" || node(t, o, "last")["phase"] != "Succeeded" {
			t.Errorf("status: %v", o.status())
		}
		if n := w.tasks.Runs("uid-1", "failing.first"); n != 1 {
			t.Errorf("the task that had succeeded ran %d times", n)
		}
	})
}

// `argo retry --restart-successful --node-field-selector ... -p p=2` takes out more, and changes a parameter.
func TestRetryMore(t *testing.T) {
	eachWay(t, func(t *testing.T, w *world, edit func(string, func(map[string]any))) {
		w.submit(failing)
		w.ended("failing")
		edit("failing", func(o map[string]any) {
			retryEdit(o, "first")
			set(o, []any{map[string]any{"name": "p", "value": "2"}}, "spec", "arguments", "parameters")
		})
		if o := w.ended("failing"); o.phase() != "Succeeded" {
			t.Errorf("status: %v", o.status())
		}
		if n := w.tasks.Runs("uid-1", "failing.first#1"); n != 1 {
			t.Errorf("the task that was to run again ran %d times", n)
		}
	})
}
