package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/test/cluster"
	"github.com/sluice-ml/sluice/test/conformance/argocheck"
	"github.com/sluice-ml/sluice/test/conformance/corpus"
)

// kubeSuite runs Argo manifests on a cluster, as Workflow objects that kubectl creates, and compares their status with the
// recorded runs. Every manifest has a namespace of its own, which enforces Pod Security "restricted" unless the manifest's
// templates themselves ask for more.
type kubeSuite struct{ kubeSite }

// skip says why a manifest cannot be run here.
func (s *kubeSuite) skip(m corpus.Manifest) string {
	if m.Class == "store" && s.s3 == "" {
		return "there is no object store: -s3 names the program"
	}
	return ""
}

func (s *kubeSuite) check(ctx context.Context, m corpus.Manifest) []string {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	want, err := argocheck.ReadExpected(m.ExpectedPath())
	if err != nil {
		return []string{err.Error()}
	}
	found, err := s.run(ctx, m, want)
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

func (s *kubeSuite) run(ctx context.Context, m corpus.Manifest, want *argocheck.Expected) (found []string, err error) {
	objects, err := s.readObjects(m, want)
	if err != nil {
		return nil, err
	}
	level := "restricted"
	if objects.needsMore() || objects.asRoot() {
		level = "privileged"
	}
	namespace, done, err := s.namespace(ctx, level)
	if err != nil {
		return nil, err
	}
	defer func() {
		kept, closing := done(found)
		found, err = kept, errors.Join(err, closing)
	}()
	for _, o := range append(s.surroundings(), objects.before...) {
		if err := s.site.Apply(ctx, namespace, o); err != nil && want.Result == "rejected" {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
	}
	name, err := s.site.CreateNamed(ctx, namespace, objects.workflow)
	if err != nil && want.Result == "rejected" {
		return nil, nil // by the API server already, as upstream's
	}
	if err != nil {
		return nil, err
	}
	out, late, err := s.ended(ctx, namespace, name)
	if err != nil || len(late) > 0 {
		return late, err
	}
	got, err := argocheck.ReadWorkflow(out)
	if err != nil {
		return nil, err
	}
	if want.Result == "rejected" {
		if got.Phase != "Failed" && got.Phase != "Error" || len(got.Nodes) > 0 {
			found = append(found, fmt.Sprintf("upstream refuses it; here it is %s with %d nodes", got.Phase, len(got.Nodes)))
		}
		return found, nil
	}
	found = argocheck.Compare(want, got)
	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return found, err
	}
	return append(found, pods.plain()...), nil
}

// surroundings are what upstream's own test cluster has in its namespace: an account whose rights resource templates use, and
// the objects that examples name without bringing them.
func (s *kubeSuite) surroundings() []map[string]any {
	object := func(apiVersion, kind, name string, more map[string]any) map[string]any {
		o := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}
		maps.Copy(o, more)
		return o
	}
	all := []string{"*"}
	here := []map[string]any{
		object("rbac.authorization.k8s.io/v1", "Role", "workflow", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []string{"", "batch", "argoproj.io"}, "resources": all, "verbs": all,
		}}}),
		object("rbac.authorization.k8s.io/v1", "RoleBinding", "workflow", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "workflow"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default"}},
		}),
		object("v1", "ConfigMap", "my-config", map[string]any{"data": map[string]any{"workflow": "1", "template": "2"}}),
		object("v1", "Secret", "my-secret", map[string]any{"stringData": map[string]any{"mypassword": "S00perS3cretPa55word"}}),
	}
	if s.site.S3() == "" {
		return here
	}
	repository := func(bucket string) string {
		return fmt.Sprintf(`{"s3": {"endpoint": %q, "insecure": true, "bucket": %q, "accessKeySecret": {"name": %[3]q, "key": "accesskey"}, "secretKeySecret": {"name": %[3]q, "key": "secretkey"}}}`, s.site.S3(), bucket, cluster.S3Secret)
	}
	return append(here,
		object("v1", "Secret", cluster.S3Secret, map[string]any{"stringData": cluster.S3Credentials()}),
		object("v1", "ConfigMap", "artifact-repositories", map[string]any{
			"metadata": map[string]any{"name": "artifact-repositories", "annotations": map[string]any{"workflows.argoproj.io/default-artifact-repository": "default-v1"}},
			"data":     map[string]any{"default-v1": repository(cluster.Buckets()[0]), "my-key": repository(cluster.Buckets()[0])},
		}))
}

// objects are what a manifest's file holds: what must be there first, and the workflow.
type objects struct {
	before   []map[string]any
	workflow map[string]any
}

// readObjects reads the files of a manifest, and makes the workflow that upstream ran: a template through a reference to
// it, a cron workflow as the workflow that it would start.
func (s *kubeSuite) readObjects(m corpus.Manifest, want *argocheck.Expected) (objects, error) {
	var o objects
	for _, file := range append(append([]string{}, m.Needs...), m.Path) {
		text, err := os.ReadFile(file)
		if err != nil {
			return o, fmt.Errorf("read a manifest: %w", err)
		}
		for doc := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
			var object map[string]any
			if err := yaml.Unmarshal(doc, &object); err != nil {
				return o, fmt.Errorf("read %s: %w", filepath.Base(file), err)
			}
			if len(object) == 0 {
				continue
			}
			delete(metadata(object), "namespace")
			packedHere(object)
			object = s.reachable(object)
			if object["kind"] == "Workflow" && file == m.Path && o.workflow == nil {
				o.workflow = object
				continue
			}
			o.before = append(o.before, object)
		}
	}
	switch {
	case want.Via == "workflowTemplateRef":
		o.workflow = map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": map[string]any{"generateName": want.Name + "-"},
			"spec": map[string]any{"workflowTemplateRef": map[string]any{"name": want.Name, "clusterScope": want.Kind == "ClusterWorkflowTemplate"}},
		}
	case o.workflow == nil && m.Class == "cron":
		for i, object := range o.before {
			if object["kind"] == "CronWorkflow" {
				o.workflow = fromCron(object)
				o.before = append(o.before[:i], o.before[i+1:]...)
				break
			}
		}
	}
	if o.workflow == nil && want.Result == "rejected" { // where the API server takes the template, its workflow must be refused
		o.workflow = map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": map[string]any{"generateName": "refused-"},
			"spec": map[string]any{"workflowTemplateRef": map[string]any{"name": metadata(o.before[len(o.before)-1])["name"]}},
		}
	}
	if o.workflow == nil {
		return o, errors.New("the manifest has no workflow to run")
	}
	if meta := metadata(o.workflow); meta["name"] == nil && meta["generateName"] == nil {
		meta["generateName"] = "unnamed-"
	}
	return o, nil
}

// asRoot lets those workflows run as root whose images need it and whose templates do not ask for it, as images' own users
// are root: they are counted apart. It says whether this is one.
func (o objects) asRoot() bool {
	text, err := json.Marshal(o.workflow)
	if err != nil {
		return false
	}
	for _, image := range []string{`"nginx:`, `"influxdb:`} {
		spec, ok := o.workflow["spec"].(map[string]any)
		if ok && strings.Contains(string(text), `"image":`+image) {
			spec["securityContext"] = map[string]any{"runAsUser": 0, "runAsNonRoot": false}
			return true
		}
	}
	return false
}

// reachable puts the address of the object store here in place of the name that it has on upstream's cluster.
func (s *kubeSuite) reachable(object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil || s.site.S3() == "" {
		return object
	}
	var out map[string]any
	if json.Unmarshal(bytes.ReplaceAll(text, []byte(`"minio:9000"`), fmt.Appendf(nil, "%q", s.site.S3())), &out) != nil {
		return object
	}
	return out
}

// packedHere lets every container run from the images that were loaded into the node: without a word on it the kubelet would
// ask a registry about those without a tag.
func packedHere(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, isImage := v["image"].(string); isImage && v["imagePullPolicy"] == nil {
			v["imagePullPolicy"] = "IfNotPresent"
		}
		if text, isText := v["manifest"].(string); isText { // of a resource template
			v["manifest"] = imageInText.ReplaceAllString(text, "${1}image: $2\n${1}imagePullPolicy: IfNotPresent")
		}
		for _, in := range v {
			packedHere(in)
		}
	case []any:
		for _, in := range v {
			packedHere(in)
		}
	}
}

// fromCron is the workflow that "argo submit --from cronwf/NAME" makes.
func fromCron(cron map[string]any) map[string]any {
	spec, _ := cron["spec"].(map[string]any)
	meta := map[string]any{"generateName": fmt.Sprint(metadata(cron)["name"]) + "-"}
	if extra, ok := spec["workflowMetadata"].(map[string]any); ok {
		for _, key := range []string{"labels", "annotations"} {
			if extra[key] != nil {
				meta[key] = extra[key]
			}
		}
	}
	return map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": spec["workflowSpec"]}
}

func metadata(object map[string]any) map[string]any {
	meta, _ := object["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		object["metadata"] = meta
	}
	return meta
}

// imageInText finds the image of a container in the YAML text of an object, and its indentation.
var imageInText = regexp.MustCompile(`(?m)^( *)image: *(\S+)$`)

// needsMore says whether a manifest's own templates ask for what "restricted" forbids.
func (o objects) needsMore() bool {
	asks := func(text string) bool {
		for _, word := range []string{`kind: Pod\n`, `kind: Job\n`, `"privileged":true`, `"runAsUser":0`, `"hostPath":`, `"hostNetwork":true`, `"runAsNonRoot":false`, `"capabilities":{"add"`} {
			if strings.Contains(text, word) {
				return true
			}
		}
		return false
	}
	for _, object := range append([]map[string]any{o.workflow}, o.before...) {
		text, err := json.Marshal(object)
		if err == nil && asks(string(text)) {
			return true
		}
	}
	return false
}
