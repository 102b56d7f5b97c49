//go:build whole

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
