// Package refs reads what a workflow or a template refers to in a cluster: templates and ConfigMaps, through a client that
// says whose rights count.
package refs

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/store"
)

// reference names an object that a workflow refers to.
type reference struct{ kind, name string }

// ConfigMaps with this label are read where a reference's name holds a placeholder.
const (
	labelConfigMap  = "workflows.argoproj.io/configmap-type"
	parameterConfig = "Parameter"
)

// The kinds of references.
const (
	templateKind = "WorkflowTemplate"
	clusterKind  = "ClusterWorkflowTemplate"
	configKind   = "ConfigMap"
)

// references finds what a spec refers to: templates, and ConfigMaps that the engine reads (for parameters and
// semaphores, not for containers, which the kubelet gives them). Names may hold placeholders.
func references(spec any) []reference {
	found := map[reference]bool{}
	walkReferences(spec, "", found)
	out := make([]reference, 0, len(found))
	for r := range found {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool {
		return out[i].kind < out[j].kind || out[i].kind == out[j].kind && out[i].name < out[j].name
	})
	return out
}

// walkReferences visits a value under a key. What stands below env and envFrom is the kubelet's.
func walkReferences(v any, key string, found map[reference]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walkReferences(e, key, found)
		}
	case map[string]any:
		name, _ := v["name"].(string)
		switch key {
		case "env", "envFrom", "volumes":
			return
		case "templateRef", "workflowTemplateRef":
			k := templateKind
			if cluster, _ := v["clusterScope"].(bool); cluster {
				k = clusterKind
			}
			if name != "" {
				found[reference{k, name}] = true
			}
			return
		case "configMapKeyRef":
			if name != "" {
				found[reference{configKind, name}] = true
			}
			return
		}
		for k, e := range v {
			walkReferences(e, k, found)
		}
	}
}

// maxReferences bounds how many objects a workflow may refer to, directly and through templates.
const maxReferences = 1000

// Collect reads everything that a spec refers to, in the workflow's own namespace and cluster-wide. What is not there is
// left out: the front end says what is missing, and where.
func Collect(ctx context.Context, c client.Reader, namespace string, spec any) ([]store.Document, error) {
	var docs []store.Document
	seen := map[reference]bool{}
	queue := references(spec)
	labelled := false
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		if seen[r] {
			continue
		}
		seen[r] = true
		if len(seen) > maxReferences {
			return nil, fmt.Errorf("the workflow refers to more than %d objects", maxReferences)
		}
		switch {
		case r.kind == configKind && strings.Contains(r.name, "{{"):
			if labelled {
				continue
			}
			labelled = true
			maps, err := parameterMaps(ctx, c, namespace)
			if err != nil {
				return nil, err
			}
			docs = append(docs, maps...)
		case strings.Contains(r.name, "{{"):
		case r.kind == configKind:
			doc, err := configMap(ctx, c, namespace, r.name)
			if err != nil {
				return nil, err
			}
			docs = append(docs, doc...)
		default:
			doc, inner, err := template(ctx, c, namespace, r)
			if err != nil {
				return nil, err
			}
			docs = append(docs, doc...)
			queue = append(queue, references(inner)...)
		}
	}
	return docs, nil
}

// template reads a template object, and gives its spec for further references.
func template(ctx context.Context, c client.Reader, namespace string, r reference) ([]store.Document, any, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: argo.Group, Version: "v1alpha1", Kind: r.kind})
	key := client.ObjectKey{Namespace: namespace, Name: r.name}
	if r.kind == clusterKind {
		key.Namespace = ""
	}
	if err := c.Get(ctx, key, o); apierrors.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, fmt.Errorf("read %s %s: %w", r.kind, r.name, err)
	}
	meta := map[string]any{"name": r.name}
	if labels := o.GetLabels(); len(labels) > 0 {
		meta["labels"] = labels
	}
	data, err := json.Marshal(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": r.kind, "metadata": meta, "spec": o.Object["spec"]})
	if err != nil {
		return nil, nil, fmt.Errorf("read %s %s: %w", r.kind, r.name, err)
	}
	return []store.Document{{Name: r.kind + " " + r.name, Data: data}}, o.Object["spec"], nil
}

func configMap(ctx context.Context, c client.Reader, namespace, name string) ([]store.Document, error) {
	var o corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &o); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	doc, err := configDocument(&o)
	if err != nil {
		return nil, err
	}
	return []store.Document{doc}, nil
}

// parameterMaps reads the ConfigMaps that are marked as parameters: one whose name holds a placeholder is among them.
func parameterMaps(ctx context.Context, c client.Reader, namespace string) ([]store.Document, error) {
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{labelConfigMap: parameterConfig}); err != nil {
		return nil, fmt.Errorf("read the ConfigMaps of parameters: %w", err)
	}
	var docs []store.Document
	for i := range list.Items {
		doc, err := configDocument(&list.Items[i])
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

func configDocument(o *corev1.ConfigMap) (store.Document, error) {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": configKind, "metadata": map[string]any{"name": o.Name}, "data": o.Data,
	})
	if err != nil {
		return store.Document{}, fmt.Errorf("read ConfigMap %s: %w", o.Name, err)
	}
	return store.Document{Name: configKind + " " + o.Name, Data: data}, nil
}
