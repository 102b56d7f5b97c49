package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

// The ConfigMap that Argo looks for artifact repositories in, and the annotation that names its default key.
const (
	repositoriesMap   = "artifact-repositories"
	defaultRepository = "workflows.argoproj.io/default-artifact-repository"
)

// repositories reads artifact repositories; what it has read is good for a while, so that a thousand workflows do not
// ask a thousand times.
type repositories struct {
	client client.Reader
	now    func() time.Time

	mu    sync.Mutex
	known map[client.ObjectKey]repositoryMap
}

type repositoryMap struct {
	object *corev1.ConfigMap // nil: there is none
	read   time.Time
}

const repositoryAge = 10 * time.Second

func newRepositories(c client.Reader, now func() time.Time) *repositories {
	return &repositories{client: c, now: now, known: map[client.ObjectKey]repositoryMap{}}
}

// configMap gives a ConfigMap, nil where there is none.
func (r *repositories) configMap(ctx context.Context, key client.ObjectKey) (*corev1.ConfigMap, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k, ok := r.known[key]; ok && r.now().Sub(k.read) < repositoryAge {
		return k.object, nil
	}
	o := &corev1.ConfigMap{}
	if err := r.client.Get(ctx, key, o); apierrors.IsNotFound(err) {
		o = nil
	} else if err != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", key, err)
	}
	r.known[key] = repositoryMap{o, r.now()}
	return o, nil
}

// repository gives the artifact repository of a new workflow as Argo finds it: the one that its artifactRepositoryRef
// names, else the default of its namespace, else the controller's; nil where there is none.
func (c *Controller) repository(ctx context.Context, w workflow, sub store.Submission) (program.JSON, error) {
	ref := repositoryRef(w, sub)
	name, _ := ref["configMap"].(string)
	key, _ := ref["key"].(string)
	if name == "" {
		name = repositoriesMap
	}
	o, err := c.repos.configMap(ctx, client.ObjectKey{Namespace: w.GetNamespace(), Name: name})
	if err != nil {
		return nil, err
	}
	if o == nil {
		if ref != nil {
			return nil, refused{engine.ErrorPhase, fmt.Sprintf("artifactRepositoryRef: there is no ConfigMap %s", name)}
		}
		return c.DefaultRepository, nil
	}
	if key == "" {
		key = o.Annotations[defaultRepository]
	}
	text, ok := o.Data[key]
	if !ok {
		if ref != nil {
			return nil, refused{engine.ErrorPhase, fmt.Sprintf("artifactRepositoryRef: ConfigMap %s has no key %q", name, key)}
		}
		return c.DefaultRepository, nil
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, refused{engine.ErrorPhase, fmt.Sprintf("artifact repository %q of ConfigMap %s: %v", key, name, err)}
	}
	return data, nil
}

// repositoryRef finds the reference in the object, or in the template that it is made from.
func repositoryRef(w workflow, sub store.Submission) map[string]any {
	if ref, ok := nested(w.Object, "spec", "artifactRepositoryRef").(map[string]any); ok {
		return ref
	}
	name, ok := nested(w.Object, "spec", "workflowTemplateRef", "name").(string)
	if !ok {
		return nil
	}
	for _, d := range sub.Documents[1:] {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     struct {
				ArtifactRepositoryRef map[string]any
			}
		}
		if json.Unmarshal(d.Data, &o) == nil && o.Kind != "ConfigMap" && o.Metadata.Name == name && o.Spec.ArtifactRepositoryRef != nil {
			return o.Spec.ArtifactRepositoryRef
		}
	}
	return nil
}
