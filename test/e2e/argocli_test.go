//go:build whole

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/plugin"
)

// argo calls upstream's own program, which $ARGO_CLI names.
func argo(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	program := os.Getenv("ARGO_CLI")
	if program == "" {
		t.Skip("ARGO_CLI does not name upstream's argo program")
	}
	cmd := exec.CommandContext(t.Context(), program, append(args, "--namespace", namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+site.Kubeconfig, "ARGO_INSTANCEID="+site.Instance())
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("argo %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workflow.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const waiting = `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: waiting-}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: before, template: say}
    - - {name: approve, template: approve}
    - - {name: after, template: say}
  - name: approve
    suspend: {}
  - name: say
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [echo, said]}
`

const failing = `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: failing-}
spec:
  entrypoint: main
  arguments: {parameters: [{name: code, value: "1"}]}
  templates:
  - name: main
    steps:
    - - {name: good, template: exit, arguments: {parameters: [{name: code, value: "0"}]}}
    - - {name: bad, template: exit, arguments: {parameters: [{name: code, value: "{{workflow.parameters.code}}"}]}}
  - name: exit
    inputs: {parameters: [{name: code}]}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c, "exit {{inputs.parameters.code}}"]}
`

func name(t *testing.T, namespace, stdin string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(argo(t, namespace, stdin, append(args, "-o", "name")...))
}

func TestArgoSubmitWatchGetLogs(t *testing.T) {
	ns := namespace(t, "e2e-argo-submit")
	wf := name(t, ns, "", "submit", file(t, strings.ReplaceAll(waiting, "    - - {name: approve, template: approve}\n", "")))
	argo(t, ns, "", "wait", wf)
	if out := argo(t, ns, "", "get", wf); !strings.Contains(out, "Succeeded") || !strings.Contains(out, "before") {
		t.Errorf("argo get:\n%s", out)
	}
	if out := argo(t, ns, "", "logs", wf); strings.Count(out, "said") != 2 {
		t.Errorf("argo logs:\n%s", out)
	}
	if out := argo(t, ns, "", "list"); !strings.Contains(out, wf) {
		t.Errorf("argo list:\n%s", out)
	}
	argo(t, ns, "", "watch", wf)
	argo(t, ns, "", "delete", wf)
	if out := argo(t, ns, "", "list"); strings.Contains(out, wf) {
		t.Errorf("argo list after delete:\n%s", out)
	}
}

func TestArgoSuspendResume(t *testing.T) {
	ns := namespace(t, "e2e-argo-suspend")
	wf := name(t, ns, "", "submit", file(t, waiting))
	kubectl(t, "", "wait", "--namespace", ns, "workflow/"+wf, "--timeout", "60s", "--for", `jsonpath={.status.progress}=1/2`)
	argo(t, ns, "", "resume", wf)
	finish(t, ns, wf, time.Minute).succeeded(t)
	second := name(t, ns, "", "submit", file(t, waiting))
	argo(t, ns, "", "suspend", second)
	argo(t, ns, "", "resume", second)
	argo(t, ns, "", "stop", second)
	if w := finish(t, ns, second, time.Minute); w.Status.Phase != "Failed" {
		t.Errorf("a stopped workflow is %s", w.Status.Phase)
	}
	third := name(t, ns, "", "submit", file(t, waiting))
	argo(t, ns, "", "terminate", third)
	if w := finish(t, ns, third, time.Minute); w.Status.Phase != "Failed" {
		t.Errorf("a terminated workflow is %s", w.Status.Phase)
	}
}

func TestArgoRetryResubmit(t *testing.T) {
	ns := namespace(t, "e2e-argo-retry")
	wf := name(t, ns, "", "submit", file(t, failing))
	if w := finish(t, ns, wf, time.Minute); w.Status.Phase != "Failed" || w.node("good").Phase != "Succeeded" {
		t.Fatalf("%s: %s", w.Status.Phase, w.Status.Message)
	}
	argo(t, ns, "", "retry", wf, "-p", "code=0")
	w := finish(t, ns, wf, time.Minute)
	w.succeeded(t)
	again := name(t, ns, "", "resubmit", wf, "-p", "code=0")
	finish(t, ns, again, time.Minute).succeeded(t)
}

func TestArgoTemplatesAndCron(t *testing.T) {
	ns := namespace(t, "e2e-argo-template")
	template := strings.ReplaceAll(strings.ReplaceAll(failing, "kind: Workflow", "kind: WorkflowTemplate"), "generateName: failing-", "name: exits")
	argo(t, ns, "", "template", "create", file(t, template))
	if out := argo(t, ns, "", "template", "list"); !strings.Contains(out, "exits") {
		t.Errorf("argo template list:\n%s", out)
	}
	wf := name(t, ns, "", "submit", "--from", "workflowtemplate/exits", "-p", "code=0")
	finish(t, ns, wf, time.Minute).succeeded(t)
	argo(t, ns, "", "cron", "create", file(t, `apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: nightly}
spec:
  schedules: ["0 0 1 1 *"]
  workflowSpec:
    arguments: {parameters: [{name: code, value: "0"}]}
    workflowTemplateRef: {name: exits}
`))
	if out := argo(t, ns, "", "cron", "list"); !strings.Contains(out, "nightly") {
		t.Errorf("argo cron list:\n%s", out)
	}
	wf = name(t, ns, "", "submit", "--from", "cronwf/nightly")
	finish(t, ns, wf, time.Minute).succeeded(t)
	argo(t, ns, "", "cron", "suspend", "nightly")
	argo(t, ns, "", "cron", "resume", "nightly")
	argo(t, ns, "", "cron", "delete", "nightly")
	argo(t, ns, "", "template", "delete", "exits")
	argo(t, ns, "", "lint", file(t, waiting))
}

// Upstream's client checks nothing that it does not know: a manifest with placeholders that hooks fill in passes its lint, and
// its get shows what Argo's own would.
func TestArgoWithHooks(t *testing.T) {
	ns := namespace(t, "e2e-argo-hooks")
	p := plugin.Start(t, filepath.Join(t.TempDir(), "record"), "--placeholder", "greeting=hello")
	kubectl(t, fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: ClusterTaskHook
metadata: {name: argo}
spec: {points: [Pre, Post], selector: {matchLabels: {greeted: "yes"}}, http: {url: %q}}
`, p.Address), "apply", "-f", "-")
	t.Cleanup(func() {
		if _, err := site.Kubectl(context.Background(), nil, "delete", "clustertaskhook", "argo"); err != nil {
			t.Error(err)
		}
	})
	path := file(t, shown)
	argo(t, ns, "", "lint", "--offline", path)
	argo(t, ns, "", "lint", path)
	out := argo(t, ns, "", "submit", "--log", path)
	if !strings.Contains(out, "hello world") || !strings.Contains(out, "bye") {
		t.Errorf("argo submit --log:\n%s", out)
	}
	got := argo(t, ns, "", "get", "@latest", "--no-color", "--no-utf8")
	for _, want := range []string{"Succeeded", "loop(0:a)", "loop(1:b)", "flaky(0)", "flaky(1)", "main: Error (exit code 1)", "when '1 == 2' evaluated false", "onExit"} {
		if !strings.Contains(got, want) {
			t.Errorf("argo get shows no %q:\n%s", want, got)
		}
	}
}

const shown = `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: shown-, labels: {greeted: "yes"}}
spec:
  entrypoint: main
  onExit: bye
  templates:
  - name: main
    dag:
      tasks:
      - {name: loop, template: say, withItems: [a, b], arguments: {parameters: [{name: what, value: '{{item}}'}]}}
      - {name: flaky, template: flaky}
      - {name: make, template: make, dependencies: [loop, flaky]}
      - {name: never, template: say, dependencies: [make], when: '1 == 2', arguments: {parameters: [{name: what, value: never}]}}
      - {name: use, template: use, dependencies: [make], arguments: {artifacts: [{name: in, from: '{{tasks.make.outputs.artifacts.out}}'}]}}
  - name: say
    inputs: {parameters: [{name: what}]}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [echo, '{{inputs.parameters.what}}']}
  - name: bye
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [echo, bye]}
  - name: flaky
    retryStrategy: {limit: 2}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c, 'test {{retries}} = 1']}
  - name: make
    outputs: {artifacts: [{name: out, path: /tmp/out}]}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c, 'echo world > /tmp/out']}
  - name: use
    inputs: {artifacts: [{name: in, path: /tmp/in}]}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c, 'echo {{hooks.argo.greeting}} $(cat /tmp/in)']}
`

const supplied = `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: supplied-}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: approve, template: approve}
    - - {name: after, template: say, arguments: {parameters: [{name: what, value: '{{steps.approve.outputs.parameters.answer}}'}]}}
  - name: approve
    suspend: {}
    outputs: {parameters: [{name: answer, valueFrom: {supplied: {}}}]}
  - name: say
    inputs: {parameters: [{name: what}]}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [echo, 'answered {{inputs.parameters.what}}']}
`

func TestArgoNodeSet(t *testing.T) {
	ns := namespace(t, "e2e-argo-node")
	wf := name(t, ns, "", "submit", file(t, supplied))
	kubectl(t, "", "wait", "--namespace", ns, "workflow/"+wf, "--timeout", "60s", "--for", `jsonpath={.status.phase}=Running`)
	argo(t, ns, "", "node", "set", wf, "--node-field-selector", "displayName=approve", "--output-parameter", "answer=yes", "--message", "fine")
	argo(t, ns, "", "resume", wf, "--node-field-selector", "displayName=approve")
	w := finish(t, ns, wf, time.Minute)
	w.succeeded(t)
	if out := argo(t, ns, "", "logs", wf); !strings.Contains(out, "answered yes") {
		t.Errorf("argo logs:\n%s", out)
	}
}
