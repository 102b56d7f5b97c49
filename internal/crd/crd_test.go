package crd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func files(t *testing.T) map[string][]byte {
	t.Helper()
	all, err := Files("../..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestGeneratedFilesAreCommitted(t *testing.T) {
	want := files(t)
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join("../../deploy/crds", name))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s is not what the types say (%v); run make crds", name, err)
		}
		if len(data) > 1<<20 {
			t.Errorf("%s has %d bytes: etcd takes no object above 1.5 MiB", name, len(data))
		}
	}
	found, err := filepath.Glob("../../deploy/crds/*.dev_*.yaml") // beside the list of them for kustomize
	if err == nil {
		var argos []string
		argos, err = filepath.Glob("../../deploy/crds/argoproj.io_*.yaml")
		found = append(found, argos...)
	}
	if err != nil || len(found) != len(want) {
		t.Errorf("%d files in deploy/crds, want %d (%v)", len(found), len(want), err)
	}
}

// schemas gives the schema of every kind, as JSON Schema that also refuses what the API server's strict validation does.
func schemas(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	made := map[string]*jsonschema.Schema{}
	for name, data := range files(t) {
		var d struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Schema struct{ OpenAPIV3Schema object }
				}
			}
		}
		if err := yaml.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		s := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		checkStructural(t, name, s)
		strict(s)
		delete(in(in(s, "properties"), "metadata"), "additionalProperties")
		c := jsonschema.NewCompiler()
		if err := c.AddResource(name, s); err != nil {
			t.Fatal(err)
		}
		compiled, err := c.Compile(name)
		if err != nil {
			t.Fatal(err)
		}
		made[d.Spec.Names.Kind] = compiled
	}
	return made
}

// checkStructural holds the rules of a structural schema that the API server insists on.
func checkStructural(t *testing.T, path string, s object) {
	t.Helper()
	if s["type"] == nil && s["x-kubernetes-int-or-string"] != true && s["x-kubernetes-preserve-unknown-fields"] != true {
		t.Errorf("%s has no type: %v", path, s)
	}
	for _, forbidden := range []string{"$ref", "$defs", "const", "propertyNames", "if", "default", "uniqueItems"} {
		if _, has := s[forbidden]; has {
			t.Errorf("%s has %s", path, forbidden)
		}
	}
	if s["properties"] != nil && s["additionalProperties"] != nil {
		t.Errorf("%s has properties and additionalProperties", path)
	}
	if s["type"] == "array" && s["items"] == nil {
		t.Errorf("%s has no items", path)
	}
	below(s, func(name string, s object) { checkStructural(t, path+"."+name, s) })
}

func below(s object, do func(string, object)) {
	for _, key := range []string{"items", "additionalProperties"} {
		if inner, ok := s[key].(object); ok {
			do(key, inner)
		}
	}
	properties, _ := s["properties"].(object)
	for name, p := range properties {
		do(name, p.(object))
	}
}

// strict refuses the fields that the API server drops.
func strict(s object) {
	if s["type"] == "object" && s["x-kubernetes-preserve-unknown-fields"] != true && s["additionalProperties"] == nil {
		s["additionalProperties"] = false
	}
	if s["nullable"] == true {
		s["type"] = []any{s["type"], "null"}
	}
	delete(s, "format") // not all of Kubernetes' formats are JSON Schema's
	below(s, func(_ string, s object) { strict(s) })
}

// documents gives the objects of a YAML text as the API server reads them.
func documents(data []byte) ([]any, error) {
	var found []any
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			return nil, err
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		if err != nil {
			return nil, err
		}
		if value != nil {
			found = append(found, withoutNulls(value))
		}
	}
}

// withoutNulls drops what the API server drops before it validates.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case object:
		for k, v := range value {
			if v == nil {
				delete(value, k)
				continue
			}
			value[k] = withoutNulls(v)
		}
	case []any:
		for i, v := range value {
			value[i] = withoutNulls(v)
		}
	}
	return value
}

// validate checks the objects of a text that have one of our kinds, and says how many there are.
func validate(kinds map[string]*jsonschema.Schema, data []byte) (int, error) {
	all, err := documents(data)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, value := range all {
		o, _ := value.(object)
		kind, _ := o["kind"].(string)
		version, _ := o["apiVersion"].(string)
		if s := kinds[kind]; s != nil && (strings.HasPrefix(version, "argoproj.io/") || strings.HasPrefix(version, "sluice.dev/")) {
			n++
			if err := s.Validate(value); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// Upstream's API server took every file of the corpus but those of class rejected, and legacy locks with warnings.
func TestCorpus(t *testing.T) {
	root := os.Getenv("CONFORMANCE")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	root = filepath.Join(root, "argo")
	index, err := os.ReadFile(filepath.Join(root, "index.tsv"))
	if err != nil {
		t.Skipf("no conformance corpus: %v; set CONFORMANCE to its folder", err)
	}
	kinds := schemas(t)
	seen := map[string]bool{}
	objects := 0
	for _, line := range strings.Split(strings.TrimRight(string(index), "\n"), "\n")[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) < 4 {
			t.Fatalf("the index has a line of %d fields: %q", len(fields), line)
		}
		for _, name := range append([]string{fields[0]}, strings.Fields(fields[3])...) {
			if seen[name] || fields[1] == "rejected" || strings.HasSuffix(name, "convert-legacy-sync.yaml") {
				continue
			}
			seen[name] = true
			data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			n, err := validate(kinds, data)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			objects += n
		}
	}
	if objects < 150 {
		t.Errorf("only %d objects were looked at", objects)
	}
}

func TestEverything(t *testing.T) {
	kinds := schemas(t)
	for _, name := range []string{"../argo/testdata/everything.yaml", "../../examples/hooks/workflow.yaml", "../../examples/artifacts-by-metadata/argo/workflow.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := validate(kinds, data); err != nil || n == 0 {
			t.Errorf("%s: %d objects, %v", name, n, err)
		}
	}
}

func TestWhatIsRefused(t *testing.T) {
	kinds := schemas(t)
	spec := func(kind, spec string) string {
		group := "argoproj.io"
		if strings.HasSuffix(kind, "Hook") || kind == "RunJournal" {
			group = "sluice.dev"
		}
		return fmt.Sprintf(`{"apiVersion": "%s/v1alpha1", "kind": "%s", "metadata": {"name": "x", "labels": {"a": "b"}}, "spec": %s}`, group, kind, spec)
	}
	hook := `"points": ["Pre"], "http": {"url": "https://x"}`
	for name, c := range map[string]struct {
		manifest string
		refused  string // at this path; "" where it is accepted
	}{
		"a workflow":                      {spec("Workflow", `{"entrypoint": "a", "templates": [{"name": "a", "container": {"image": "x", "command": ["y"]}}]}`), ""},
		"a pipeline":                      {spec("Workflow", `{"sluice": {"pipelineSpec": {"root": 1}}}`), ""},
		"any parameter":                   {spec("Workflow", `{"arguments": {"parameters": [{"name": "a", "value": 3}, {"name": "b", "value": true}, {"name": "c", "value": "x"}]}}`), ""},
		"a number or a placeholder":       {spec("Workflow", `{"templates": [{"activeDeadlineSeconds": "{{x}}", "retryStrategy": {"limit": 3}}]}`), ""},
		"a status of any form":            {strings.Replace(spec("Workflow", `{}`), `"spec"`, `"status": {"nodes": null, "x": [1]}, "spec"`, 1), ""},
		"an inline template":              {spec("Workflow", `{"templates": [{"dag": {"tasks": [{"name": "a", "inline": {"container": {"image": "x"}}}]}}]}`), ""},
		"a field of a newer Kubernetes":   {spec("Workflow", `{"templates": [{"container": {"image": "x", "newField": {"a": 1}}}]}`), ""},
		"no spec":                         {`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {}}`, "/"},
		"an entrypoint of the wrong type": {spec("Workflow", `{"entrypoint": ["a"]}`), "/spec/entrypoint"},
		"templates of the wrong type":     {spec("Workflow", `{"templates": {"name": "a"}}`), "/spec/templates"},
		"a command that is no list":       {spec("Workflow", `{"templates": [{"container": {"command": "sh"}}]}`), "/spec/templates/0/container/command"},
		"a task without a name":           {spec("Workflow", `{"templates": [{"dag": {"tasks": [{"template": "a"}]}}]}`), "/spec/templates/0/dag/tasks/0"},
		"an unknown field":                {spec("Workflow", `{"templates": [{"name": "a", "contaner": {}}]}`), "/spec/templates/0"},
		"a limit that is a list":          {spec("Workflow", `{"retryStrategy": {"limit": [1]}}`), "/spec/retryStrategy/limit"},
		"a cron without schedules":        {spec("CronWorkflow", `{"workflowSpec": {}}`), "/spec"},
		"a cron":                          {spec("CronWorkflow", `{"workflowSpec": {}, "schedules": ["* * * * *"], "startingDeadlineSeconds": 0}`), ""},
		"a hook":                          {spec("TaskHook", `{`+hook+`, "selector": {"matchLabels": {"a": "b"}}}`), ""},
		"a built-in hook":                 {spec("ClusterTaskHook", `{"builtin": {"name": "cache", "settings": {"anything": [1]}}}`), ""},
		"a container hook":                {spec("TaskHook", `{"container": {"image": "x", "resources": {"limits": {"cpu": 1}}}}`), ""},
		"a hook of two kinds":             {spec("TaskHook", `{`+hook+`, "builtin": {"name": "cache"}}`), "/spec"},
		"a hook of no kind":               {spec("TaskHook", `{"points": ["Pre"]}`), "/spec"},
		"an unknown point":                {spec("TaskHook", `{"points": ["Before"], "builtin": {"name": "cache"}}`), "/spec/points/0"},
		"a timeout beyond the limit":      {spec("TaskHook", `{`+hook+`, "timeoutSeconds": 301}`), "/spec/timeoutSeconds"},
		"a secret from a file":            {spec("TaskHook", `{"http": {"url": "https://x", "auth": {"hmac": {"secretFrom": {"file": "/etc/shadow"}}}}}`), "/spec/http/auth/hmac/secretFrom"},
		"a secret from a Secret":          {spec("TaskHook", `{"http": {"url": "https://x", "auth": {"hmac": {"secretFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}}}}`), ""},
		"a journal of an unknown part":    {spec("RunJournal", `{"run": "u", "part": "Other", "from": 0}`), "/spec/part"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := validate(kinds, []byte(c.manifest))
			if n != 1 {
				t.Fatalf("%d objects were looked at, %v", n, err)
			}
			if c.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var invalid *jsonschema.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatalf("accepted (%v), want a refusal at %s", err, c.refused)
			}
			if at := places(invalid); !slices.Contains(at, c.refused) {
				t.Errorf("refused at %v, want %s", at, c.refused)
			}
		})
	}
}

func places(e *jsonschema.ValidationError) []string {
	found := []string{"/" + strings.Join(e.InstanceLocation, "/")}
	for _, cause := range e.Causes {
		found = append(found, places(cause)...)
	}
	return found
}

func TestArgoNames(t *testing.T) {
	type names struct {
		Kind, Plural, Singular string
		ShortNames             []string
	}
	got := map[string]names{}
	for _, data := range files(t) {
		var d struct {
			Metadata struct{ Name string }
			Spec     struct {
				Names    names
				Versions []struct{ Subresources json.RawMessage }
			}
		}
		if err := yaml.Unmarshal(data, &d); err != nil {
			t.Fatal(err)
		}
		got[d.Metadata.Name] = d.Spec.Names
		if sub := d.Spec.Versions[0].Subresources; strings.HasSuffix(d.Metadata.Name, "argoproj.io") && sub != nil {
			t.Errorf("%s has subresources %s: the argo CLI writes the whole object", d.Metadata.Name, sub)
		}
	}
	for name, short := range map[string]string{
		"workflows.argoproj.io": "wf", "workflowtemplates.argoproj.io": "wftmpl", "clusterworkflowtemplates.argoproj.io": "cwft",
		"cronworkflows.argoproj.io": "cwf",
	} {
		if !slices.Contains(got[name].ShortNames, short) {
			t.Errorf("%s has the short names %v, want %s among them", name, got[name].ShortNames, short)
		}
	}
}
