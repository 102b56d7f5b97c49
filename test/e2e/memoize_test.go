//go:build whole

package e2e

import (
	"encoding/json"
	"testing"
	"time"
)

// What memoize remembers is in the ConfigMap that the template names, in Argo's form; the second run needs no pod.
func TestMemoize(t *testing.T) {
	ns := namespace(t, "e2e-memoize")
	manifest := `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: memoized-}
spec:
  entrypoint: world-to-file
  templates:
  - name: world-to-file
    memoize: {key: cache-key, maxAge: 10m, cache: {configMap: {name: cache-config}}}
    container: {image: busybox, imagePullPolicy: IfNotPresent, command: [sh, -c], args: ["echo world > /tmp/hello_world.txt"]}
    outputs: {parameters: [{name: hello, valueFrom: {path: /tmp/hello_world.txt}}]}
`
	first := submit(t, ns, manifest)
	finish(t, ns, first, 2*time.Minute).succeeded(t)
	second := submit(t, ns, manifest)
	finish(t, ns, second, 2*time.Minute).succeeded(t)
	if got := pods(t, ns, first); len(got) != 1 {
		t.Errorf("pods of the first run: %v", got)
	}
	if got := pods(t, ns, second); len(got) != 0 {
		t.Errorf("pods of the second run: %v", got)
	}
	var config struct {
		Metadata struct{ Labels map[string]string }
		Data     map[string]string
	}
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "--namespace", ns, "configmap/cache-config", "-o", "json")), &config); err != nil {
		t.Fatal(err)
	}
	var entry struct {
		NodeID  string
		Outputs struct {
			Parameters []struct{ Name, Value string }
		}
		CreationTimestamp, LastHitTimestamp time.Time
	}
	if err := json.Unmarshal([]byte(config.Data["cache-key"]), &entry); err != nil {
		t.Fatal(err)
	}
	if p := entry.Outputs.Parameters; entry.NodeID != first || len(p) != 1 || p[0].Name != "hello" || p[0].Value != "world" ||
		config.Metadata.Labels["workflows.argoproj.io/configmap-type"] != "Cache" || entry.LastHitTimestamp.Before(entry.CreationTimestamp) {
		t.Errorf("%v %+v", config.Metadata.Labels, entry)
	}
}
