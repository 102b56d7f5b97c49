package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/conformance/kfpcheck"
	"github.com/sluice-ml/sluice/test/images"
)

// kubeKFPSuite runs compiled pipelines on a cluster, as Workflow objects with the pipeline in spec.sluice, and checks them by
// the same rules as on one machine. Every pipeline has a namespace of its own, which enforces Pod Security "restricted".
type kubeKFPSuite struct{ kubeSite }

// prepare gives the node accelerators that pods can be scheduled on: nothing here looks at them.
func (s *kubeKFPSuite) prepare(ctx context.Context) (string, error) {
	reason, err := s.kubeSite.prepare(ctx)
	if reason != "" || err != nil || !s.site.Own() {
		return reason, err
	}
	_, err = s.site.Kubectl(ctx, nil, "patch", "nodes", "node", "--subresource=status", "--type=merge", "-p", `{"status": {"capacity": {"nvidia.com/gpu": "4"}}}`)
	return "", err
}

func (s *kubeKFPSuite) check(ctx context.Context, m corpus.Manifest) []string {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	found, err := s.run(ctx, m)
	if err != nil {
		found = append(found, err.Error())
	}
	return found
}

func (s *kubeKFPSuite) run(ctx context.Context, m corpus.Manifest) (found []string, err error) {
	text, err := os.ReadFile(m.Path)
	if err != nil {
		return nil, fmt.Errorf("read a pipeline: %w", err)
	}
	pipeline, err := kfpcheck.ReadPipeline(m.Path)
	if err != nil {
		return nil, err
	}
	namespace, done, err := s.namespace(ctx, "restricted")
	if err != nil {
		return nil, err
	}
	defer func() {
		kept, closing := done(found)
		found, err = kept, errors.Join(err, closing)
	}()
	folder, err := s.sharedFiles(namespace)
	if err != nil {
		return nil, err
	}
	for _, o := range pipelineSurroundings(m.Inputs) {
		if err := s.site.Apply(ctx, namespace, o); err != nil {
			return nil, err
		}
	}
	name, err := s.site.CreateNamed(ctx, namespace, map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": map[string]any{"generateName": "pipeline-"},
		"spec": map[string]any{"sluice": map[string]any{"pipelineSpec": packedTag(strings.ReplaceAll(string(text), sharedBucket, folder)), "runtimeConfig": map[string]any{"parameters": m.Inputs}}},
	})
	if err != nil {
		return nil, err
	}
	workflow, late, err := s.ended(ctx, namespace, name)
	if err != nil || len(late) > 0 {
		return late, err
	}
	run, err := kfpcheck.ReadWorkflow(workflow)
	if err != nil {
		return nil, err
	}
	found = kfpcheck.Check(kfpcheck.Want{State: m.State, Outputs: m.Outputs, Inputs: m.Inputs}, pipeline, run)
	pods, err := s.pods(ctx, namespace)
	if err != nil {
		return found, err
	}
	found = append(found, pods.plain()...)
	if tasks := kfpcheck.Pods(pipeline, run); len(pods.Items) != tasks {
		found = append(found, fmt.Sprintf("%d pods for %d attempts of container tasks", len(pods.Items), tasks))
	}
	return found, nil
}

// packedTag gives images that a pipeline names without a tag, or by "latest", the tag that they were loaded with: the kubelet
// would ask a registry about them.
func packedTag(pipeline string) string {
	return untagged.ReplaceAllString(pipeline, "${1}:"+images.Packed)
}

var untagged = regexp.MustCompile(`(?m)^( *image: *(?:alpine|google/cloud-sdk|registry\.access\.redhat\.com/ubi9/python-311))(?::latest)?$`)

// sharedBucket is the public bucket that importers name. Nothing here reaches it: files of this machine are in its place.
const sharedBucket = "gs://ml-pipeline-playground"

// sharedFiles makes those files for a namespace, and gives their folder.
func (s *kubeKFPSuite) sharedFiles(namespace string) (string, error) {
	folder := filepath.Join(s.site.ArtifactFolder(namespace), "shared")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("make files to import: %w", err)
	}
	for _, name := range []string{"shakespeare1.txt", "shakespeare2.txt"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("To be, or not to be: that is the question.\n"), 0o644); err != nil {
			return "", fmt.Errorf("make files to import: %w", err)
		}
	}
	return folder, nil
}

// pipelineSurroundings are the objects that upstream's own test cluster has for these pipelines: Secrets, and the claim that
// a parameter names.
func pipelineSurroundings(inputs map[string]any) []map[string]any {
	secret := func(name string, data map[string]any) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": data}
	}
	here := []map[string]any{
		// What upstream's account pipeline-runner may.
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": "claims"}, "rules": []any{map[string]any{
			"apiGroups": []string{""}, "resources": []string{"persistentvolumeclaims"}, "verbs": []string{"*"},
		}}},
		{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": "claims"},
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "claims"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "default"}}},
		secret("test-secret-1", map[string]any{"username": "user1", "password": "psw1"}),
		secret("test-secret-2", map[string]any{"username": "user2", "password": "psw1"}),
		secret("test-secret-3", map[string]any{"username": "user3", "password": "psw2"}),
	}
	if name, ok := inputs["pvc_name"].(string); ok {
		var claim map[string]any
		if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %q}
spec: {accessModes: [ReadWriteMany], storageClassName: standard, resources: {requests: {storage: 1Gi}}}
`, name), &claim); err == nil {
			here = append(here, claim)
		}
	}
	return here
}
