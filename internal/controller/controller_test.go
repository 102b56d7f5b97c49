package controller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
)

const hello = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: hello, labels: {team: a}}
spec:
  entrypoint: main
  templates:
  - name: main
    container: {image: alpine, command: [echo, hello]}
  unknownField: kept
`

// chain has three tasks in a row, of which each is a Pod.
const chain = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: chain}
spec:
  entrypoint: main
  templates:
  - name: main
    dag:
      tasks:
      - {name: a, template: say}
      - {name: b, template: say, depends: a}
      - {name: c, template: say, depends: b}
  - name: say
    container: {image: alpine, command: [echo, hello]}
`

func TestWorkflowRuns(t *testing.T) {
	w := newWorld(t, nil)
	w.controller()
	w.submit(strings.Replace(hello, "  unknownField: kept\n", "", 1))
	o := w.ended("hello")
	if o.phase() != "Succeeded" || phaseLabel(o) != "Succeeded" {
		t.Errorf("phase %q, label %q; want Succeeded", o.phase(), phaseLabel(o))
	}
	n := node(t, o, "hello")
	if n["phase"] != "Succeeded" || n["type"] != "Pod" || n["id"] != "hello" {
		t.Errorf("node: %v", n)
	}
	if p := nested(o.Object, "status", "progress"); p != "1/1" {
		t.Errorf("progress %v, want 1/1", p)
	}
	if o.GetLabels()["team"] != "a" || nested(o.Object, "spec", "entrypoint") != "main" {
		t.Errorf("the user's own part changed: %v", o.Object)
	}
	if _, there := o.status()["compressedNodes"]; there {
		t.Error("a small status is compressed")
	}
}

// What upstream's controller ends as failed without nodes ends so here, with the message.
func TestInvalidSpec(t *testing.T) {
	w := newWorld(t, nil)
	w.controller()
	w.submit(strings.Replace(chain, "depends: b", "depends: nobody", 1))
	o := w.ended("chain")
	message, _ := nested(o.Object, "status", "message").(string)
	if o.phase() != "Failed" || !strings.HasPrefix(message, "invalid spec: ") || !strings.Contains(message, "nobody") {
		t.Errorf("phase %q, message %q", o.phase(), message)
	}
	if nodes, there := o.status()["nodes"]; there {
		t.Errorf("it has nodes: %v", nodes)
	}
}

// The templates and ConfigMaps that a workflow refers to are read from the cluster, and those of its own namespace only.
func TestReferences(t *testing.T) {
	template := parse(t, `
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: tools, namespace: ml}
spec:
  templates:
  - name: say
    inputs: {parameters: [{name: text}]}
    container: {image: alpine, command: [echo, "{{inputs.parameters.text}}"]}
`)
	config := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: texts, namespace: ml, labels: {workflows.argoproj.io/configmap-type: Parameter}}
data: {greeting: good morning}
`)
	w := newWorld(t, nil, template, config)
	w.controller()
	const manifest = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: refers}
spec:
  entrypoint: main
  arguments:
    parameters:
    - {name: text, valueFrom: {configMapKeyRef: {name: texts, key: greeting}}}
  templates:
  - name: main
    steps:
    - - name: say
        templateRef: {name: tools, template: say}
        arguments: {parameters: [{name: text, value: "{{workflow.parameters.text}}"}]}
`
	w.submit(manifest)
	o := w.ended("refers")
	if o.phase() != "Succeeded" {
		t.Fatalf("status: %v", o.status())
	}
	say := node(t, o, "say")
	if v := nested(say, "inputs", "parameters"); !strings.Contains(text(v), "good morning") {
		t.Errorf("inputs of the step: %v", v)
	}
	other := strings.Replace(manifest, "name: refers", "name: refers, namespace: other", 1)
	w.submit(other)
	if o := w.untilIn("other", "Workflow", "refers", "completed", func(o workflow) bool { return o.completed() }); o.phase() == "Succeeded" {
		t.Error("a workflow used a template of another namespace")
	}
}

func text(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

// A controller that takes over goes on where the other stopped: what has ended does not run again, what runs is adopted.
func TestTakeOver(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, func(_ engine.Run, cmd engine.StartTask) dummy.Act {
		if strings.HasSuffix(cmd.Path, ".b") {
			return dummy.Act{Until: release}
		}
		return dummy.Act{}
	})
	stop := w.controller()
	w.submit(chain)
	w.until("Workflow", "chain", "at b", func(o workflow) bool { return node(t, o, "b")["phase"] == "Running" })
	stop()
	w.controller()
	close(release)
	o := w.ended("chain")
	if o.phase() != "Succeeded" {
		t.Errorf("status: %v", o.status())
	}
	for _, task := range []string{"a", "b", "c"} {
		if n := w.tasks.Runs("uid-1", "chain."+task); n != 1 {
			t.Errorf("task %s ran %d times", task, n)
		}
	}
}

// The API server answers some writes with conflicts, timeouts and refusals; the end is right all the same.
func TestApiServerFails(t *testing.T) {
	w := newWorld(t, nil)
	w.patches.fail = func(n int, _ []byte) error {
		switch n % 4 {
		case 1:
			return apierrors.NewConflict(schema.GroupResource{Resource: "workflows"}, "chain", nil)
		case 2:
			return apierrors.NewTimeoutError("slow", 1)
		case 3:
			return apierrors.NewTooManyRequests("busy", 1)
		}
		return nil
	}
	w.controller()
	w.submit(chain)
	if o := w.ended("chain"); o.phase() != "Succeeded" || node(t, o, "c")["phase"] != "Succeeded" {
		t.Errorf("status: %v", o.status())
	}
}

// A deleted object ends its run: nothing more is started.
func TestDelete(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	w := newWorld(t, func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{Until: hang} })
	released := make(chan string, 1)
	w.controller(func(c *Config) {
		c.Release = func(uid string) { released <- uid }
	})
	o := w.submit(chain)
	w.until("Workflow", "chain", "running", func(o workflow) bool { return node(t, o, "a")["phase"] == "Running" })
	if err := w.client.Delete(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if uid := <-released; uid != "uid-1" {
		t.Errorf("released %s", uid)
	}
	if n := w.tasks.Runs("uid-1", "chain.b"); n != 0 {
		t.Errorf("b ran %d times", n)
	}
}

// Objects of other instances are left alone.
func TestInstanceID(t *testing.T) {
	w := newWorld(t, nil)
	w.controller(func(c *Config) { c.InstanceID = "blue" })
	w.submit(hello)
	w.submit(strings.Replace(chain, "{name: chain}", "{name: chain, labels: {workflows.argoproj.io/controller-instanceid: blue}}", 1))
	w.ended("chain")
	if o, err := fetch(context.Background(), w.client, client.ObjectKey{Namespace: "ml", Name: "hello"}); err != nil || o.begun() {
		t.Errorf("the object of another instance was touched: %v %v", err, o.status())
	}
}

// A completed workflow is deleted when its time is over.
func TestTimeToLive(t *testing.T) {
	w := newWorld(t, nil)
	w.controller()
	w.submit(strings.Replace(chain, "  entrypoint: main", "  ttlStrategy: {secondsAfterCompletion: 1000, secondsAfterSuccess: 0}\n  entrypoint: main", 1))
	w.until("Workflow", "chain", "gone", func(o workflow) bool { return o.Object == nil })
}
