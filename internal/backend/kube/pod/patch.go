package pod

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	sigsyaml "sigs.k8s.io/yaml"
)

// patches applies the author's patches, the workflow's before the template's, then those of hooks in the order in which
// they were asked. All see the author's own commands, as in Argo; the executor comes later.
func (b *builder) patches() error {
	documents, err := splitPatch(b.cmd.Body.Patch)
	if err != nil {
		return fmt.Errorf("podSpecPatch: %w", err)
	}
	for _, d := range documents {
		if err := b.patch(d); err != nil {
			return fmt.Errorf("podSpecPatch: %w", err)
		}
	}
	b.dropArgoContainers()
	before := b.pod.Spec.DeepCopy()
	for _, p := range b.cmd.PodPatches {
		if err := b.patch(p); err != nil {
			return fmt.Errorf("podPatch of a hook: %w", err)
		}
	}
	if found := CheckPatch(before, &b.pod.Spec); len(found) > 0 {
		texts := make([]string, len(found))
		for i, v := range found {
			texts[i] = v.String()
		}
		return fmt.Errorf("podPatch of a hook: it must not give a pod more rights than its author did: %s", strings.Join(texts, "; "))
	}
	for _, name := range b.names {
		if b.find(name) == nil {
			return fmt.Errorf("a patch removes the task's container %s", name)
		}
	}
	return nil
}

// patch applies a strategic merge patch, as JSON, to the pod's spec.
func (b *builder) patch(patch []byte) error {
	if err := json.Unmarshal(patch, &corev1.PodSpec{}); err != nil {
		return fmt.Errorf("it does not fit a pod's spec: %w", err)
	}
	original, err := json.Marshal(b.pod.Spec)
	if err != nil {
		return err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.PodSpec{})
	if err != nil {
		return err
	}
	var out corev1.PodSpec
	if err := json.Unmarshal(merged, &out); err != nil {
		return err
	}
	b.pod.Spec = out
	return nil
}

// splitPatch gives the documents of a patch as JSON.
func splitPatch(text string) ([][]byte, error) {
	if json.Valid([]byte(text)) { // YAML knows JSON, but not with tabs
		return [][]byte{[]byte(text)}, nil
	}
	var out [][]byte
	decoder := yaml.NewDecoder(strings.NewReader(text))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		part, err := yaml.Marshal(&document)
		if err != nil {
			return nil, err
		}
		data, err := sigsyaml.YAMLToJSON(part)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(data, []byte("null")) {
			out = append(out, data)
		}
	}
}

// dropArgoContainers takes away what patches say of the containers that only Argo's own executor has: they would be new
// containers without an image here.
func (b *builder) dropArgoContainers() {
	s := &b.pod.Spec
	argos := func(c corev1.Container) bool {
		return c.Image == "" && slices.Contains([]string{"wait", "init", "supervisor"}, c.Name)
	}
	s.Containers = slices.DeleteFunc(s.Containers, argos)
	s.InitContainers = slices.DeleteFunc(s.InitContainers, argos)
}

// find gives a container of the pod; nil where there is none of the name.
func (b *builder) find(name string) *corev1.Container {
	for i := range b.pod.Spec.Containers {
		if b.pod.Spec.Containers[i].Name == name {
			return &b.pod.Spec.Containers[i]
		}
	}
	return nil
}
