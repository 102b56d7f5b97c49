package controller

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/status"
)

// Labels and annotations of Workflow objects, as Argo's tools write and read them.
const (
	LabelInstance    = "workflows.argoproj.io/controller-instanceid"
	LabelCron        = "workflows.argoproj.io/cron-workflow"
	annotationCronAt = "workflows.argoproj.io/scheduled-time"
)

func kind(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: argo.Group, Version: "v1alpha1", Kind: name}
}

// nameOf gives the namespace and name of a key.
func nameOf(key string) (client.ObjectKey, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	return client.ObjectKey{Namespace: namespace, Name: name}, err
}

func newObject(k schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(k)
	return u
}

// workflow is a Workflow object as it was read. Unknown fields stay in it.
type workflow struct{ *unstructured.Unstructured }

func (w workflow) completed() bool { return w.GetLabels()[status.LabelCompleted] == "true" }

func (w workflow) phase() string {
	phase, _, _ := unstructured.NestedString(w.Object, "status", "phase")
	return phase
}

// begun says whether some controller has written into the object.
func (w workflow) begun() bool {
	started, _, _ := unstructured.NestedString(w.Object, "status", "startedAt")
	return w.phase() != "" || started != ""
}

func (w workflow) finishedAt() (time.Time, bool) {
	text, _, _ := unstructured.NestedString(w.Object, "status", "finishedAt")
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// ttl says how long after its end the object is kept, and whether it is to be deleted at all.
func (w workflow) ttl() (time.Duration, bool) {
	strategy, ok := nested(w.Object, "spec", "ttlStrategy").(map[string]any)
	if !ok {
		strategy, ok = nested(w.Object, "status", "ttlStrategy").(map[string]any)
	}
	if !ok {
		return 0, false
	}
	first := "secondsAfterFailure"
	if w.phase() == "Succeeded" {
		first = "secondsAfterSuccess"
	}
	for _, k := range []string{first, "secondsAfterCompletion"} {
		switch v := strategy[k].(type) {
		case int64:
			return time.Duration(v) * time.Second, true
		case float64:
			return time.Duration(v * float64(time.Second)), true
		}
	}
	return 0, false
}

func (w workflow) priority() int64 {
	p, _, _ := unstructured.NestedInt64(w.Object, "spec", "priority")
	return p
}

func (w workflow) suspended() bool {
	b, _, _ := unstructured.NestedBool(w.Object, "spec", "suspend")
	return b
}

func (w workflow) shutdown() string {
	s, _, _ := unstructured.NestedString(w.Object, "spec", "shutdown")
	return s
}

// status gives the part of the object that the controller writes.
func (w workflow) status() map[string]any {
	s, _, _ := unstructured.NestedMap(w.Object, "status")
	return s
}

// content reads what the object shows now, and whether its nodes are compressed.
func (w workflow) content() (status.Content, bool, error) {
	s, _ := w.Object["status"].(map[string]any)
	packed, _ := s["compressedNodes"].(string)
	c, err := status.Read(s, w.GetLabels(), w.GetAnnotations())
	return c, packed != "", err
}

// manifest is the object as a user would submit it: without what the cluster and controllers added.
func (w workflow) manifest() ([]byte, error) {
	meta := map[string]any{"name": w.GetName(), "namespace": w.GetNamespace()}
	if labels := maps.Clone(w.GetLabels()); len(labels) > 0 {
		for _, k := range []string{status.LabelPhase, status.LabelCompleted} {
			delete(labels, k)
		}
		meta["labels"] = labels
	}
	if annotations := maps.Clone(w.GetAnnotations()); len(annotations) > 0 {
		delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
		meta["annotations"] = annotations
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": argo.APIVersion, "kind": "Workflow", "metadata": meta, "spec": w.Object["spec"],
	})
	if err != nil {
		return nil, fmt.Errorf("workflow %s: %w", w.GetName(), err)
	}
	return data, nil
}

// baseSize is how large the object is without its status.
func (w workflow) baseSize() int {
	data, err := json.Marshal(w.Object["spec"])
	if err != nil {
		return 0
	}
	const metadata = 4 << 10
	return len(data) + metadata
}

// trim takes out of an object what the controller does not keep in memory: the nodes of its status, and of a completed
// workflow nearly all. It is the transform of the informer.
func trim(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	u.SetManagedFields(nil)
	if s, ok := u.Object["status"].(map[string]any); ok {
		kept := map[string]any{}
		for _, k := range []string{"phase", "startedAt", "finishedAt", "message"} {
			if v, ok := s[k]; ok {
				kept[k] = v
			}
		}
		if ttl := nested(s, "storedWorkflowTemplateSpec", "ttlStrategy"); ttl != nil {
			kept["ttlStrategy"] = ttl
		}
		if ttl, ok := s["ttlStrategy"]; ok { // trimmed before
			kept["ttlStrategy"] = ttl
		}
		u.Object["status"] = kept
	}
	if !(workflow{u}).completed() {
		return u, nil
	}
	if spec, ok := u.Object["spec"].(map[string]any); ok {
		kept := map[string]any{}
		for _, k := range []string{"ttlStrategy"} {
			if v, ok := spec[k]; ok {
				kept[k] = v
			}
		}
		u.Object["spec"] = kept
	}
	return u, nil
}

func controlled(w workflow) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: argo.APIVersion, Kind: "Workflow", Name: w.GetName(), UID: w.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}
}
