//go:build whole

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/test/cluster"
)

// site is the cluster that all tests share; skipped says why there is none.
var (
	site    *cluster.Site
	skipped string
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	corpus := cmp("CONFORMANCE", filepath.Join(root, "..", "shared", "conformance"))
	site, err = cluster.Start(context.Background(), cluster.Options{
		Scripts: cmp("CLUSTER", filepath.Join(root, "..", "shared", "cluster")), Sluice: cmp("SLUICE_BIN", filepath.Join(root, "bin", "sluice")),
		Work: filepath.Join(root, "build", "conformance"), Programs: filepath.Join(corpus, "argo", "bin"), Log: os.Stderr,
		Instance: os.Getenv("SLUICE_INSTANCE"),
	})
	if errors.Is(err, cluster.ErrNone) {
		skipped = err.Error()
		return m.Run(), nil // each test says that it is skipped, and why
	}
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, site.Close(context.Background())) }()
	return m.Run(), nil
}

// cmp is an environment variable, or what stands in for one that is not set.
func cmp(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// namespace gives a test a namespace of its own that enforces Pod Security "restricted".
func namespace(t *testing.T, name string) string {
	t.Helper()
	if skipped != "" {
		t.Skip(skipped)
	}
	done, err := site.Namespace(t.Context(), name, "restricted")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			show(t, name)
		}
		if err := done(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return name
}

// show logs what is in a namespace, of a test that failed.
func show(t *testing.T, namespace string) {
	out, _ := site.Kubectl(context.Background(), nil, "get", "workflows,pods,events", "--namespace", namespace)
	t.Logf("namespace %s:\n%s", namespace, out)
}

// kubectl runs kubectl and fails the test where it fails.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	var in []byte
	if stdin != "" {
		in = []byte(stdin)
	}
	out, err := site.Kubectl(t.Context(), in, args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// submit creates a Workflow from YAML and gives its name.
func submit(t *testing.T, namespace, text string) string {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	name, err := site.CreateNamed(t.Context(), namespace, object)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// workflow is what tests look at in a Workflow object.
type workflow struct {
	Metadata struct{ Name string }
	Status   struct {
		Phase, Message string
		Nodes          map[string]node
	}
}

type node struct {
	Name, DisplayName, Type, Phase, Message string
	Outputs                                 struct {
		Result     *string
		Parameters []struct{ Name, Value string }
	}
}

// node finds a node by its display name.
func (w workflow) node(name string) node {
	for _, n := range w.Status.Nodes {
		if n.DisplayName == name {
			return n
		}
	}
	return node{}
}

// result is a task's standard output.
func (w workflow) result(name string) string {
	if r := w.node(name).Outputs.Result; r != nil {
		return *r
	}
	return ""
}

// finish waits for a workflow's end.
func finish(t *testing.T, namespace, name string, limit time.Duration) workflow {
	t.Helper()
	kubectl(t, "", "wait", "--namespace", namespace, "workflow/"+name, "--timeout", limit.String(),
		"--for", `jsonpath={.metadata.labels.workflows\.argoproj\.io/completed}=true`)
	return get(t, namespace, name)
}

func get(t *testing.T, namespace, name string) workflow {
	t.Helper()
	var w workflow
	if err := json.Unmarshal([]byte(kubectl(t, "", "get", "--namespace", namespace, "workflow/"+name, "-o", "json")), &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// succeeded fails the test where a workflow did not succeed.
func (w workflow) succeeded(t *testing.T) {
	t.Helper()
	if w.Status.Phase != "Succeeded" {
		for _, n := range w.Status.Nodes {
			t.Logf("%s %s %s: %s", n.Type, n.Name, n.Phase, n.Message)
		}
		t.Fatalf("the workflow is %s: %s", w.Status.Phase, w.Status.Message)
	}
}

// pods gives the names of a namespace's pods that belong to a workflow.
func pods(t *testing.T, namespace, workflow string) []string {
	t.Helper()
	out := kubectl(t, "", "get", "pods", "--namespace", namespace, "-l", "workflows.argoproj.io/workflow="+workflow, "-o", "name")
	return strings.Fields(out)
}
