//go:build whole

package e2e

import (
	"strings"
	"testing"
	"time"
)

// A pod that somebody deletes while its task runs is a failure of that attempt, which retries make good.
func TestPodDeleted(t *testing.T) {
	ns := namespace(t, "e2e-deleted")
	manifest := func(strategy string) string {
		return `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: deleted-}
spec:
  entrypoint: main
  templates:
  - name: main
    ` + strategy + `
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c, 'test "{{retries}}" = 1 || sleep 60']}
`
	}
	for _, c := range []struct{ strategy, phase string }{
		{"retryStrategy: {limit: 2, retryPolicy: Always}", "Succeeded"},
		{"", "Error"},
	} {
		text := manifest(c.strategy)
		if c.strategy == "" {
			text = strings.ReplaceAll(text, `test "{{retries}}" = 1 || `, "")
		}
		name := submit(t, ns, text)
		selector := "workflows.argoproj.io/workflow=" + name
		kubectl(t, "", "wait", "--namespace", ns, "pod", "-l", selector, "--for", "create", "--timeout", "60s")
		kubectl(t, "", "wait", "--namespace", ns, "pod", "-l", selector, "--for", "jsonpath={.status.phase}=Running", "--timeout", "60s")
		kubectl(t, "", "delete", "--namespace", ns, "pod", "-l", selector, "--grace-period", "1", "--wait=false")
		w := finish(t, ns, name, time.Minute)
		if w.Status.Phase != c.phase {
			t.Errorf("with %q the workflow is %s (%s), want %s", c.strategy, w.Status.Phase, w.Status.Message, c.phase)
		}
		if said := w.messages(); !strings.Contains(said, "the pod was deleted") {
			t.Errorf("with %q nothing says that a pod was deleted: %q", c.strategy, said)
		}
	}
}

// messages are those of all nodes.
func (w workflow) messages() string {
	var all []string
	for _, n := range w.Status.Nodes {
		all = append(all, n.Message)
	}
	return strings.Join(all, "\n")
}
