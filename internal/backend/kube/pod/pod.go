// Package pod makes the pod of a task. It is pure but for the question what an image runs by itself: the same task gives
// the same pod, so that a pod can be made again after a crash.
//
// What the author wrote comes first, then the author's patches, then those of hooks, which must not give the pod more
// rights than it had. Then every container of the task is put under the executor, the defaults of the Pod Security
// Standard "restricted" are filled in where the author said nothing, and inputs and outputs get folders that they can be
// written to.
package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Config is the same for all pods of a controller.
type Config struct {
	// ExecutorImage has the executor at /sluice-executor.
	ExecutorImage   string
	ImagePullPolicy corev1.PullPolicy // of the executor's image
	// Endpoint is the base URL of the task endpoint, CA the PEM certificates it is trusted by (empty: the system's).
	Endpoint, CA string
	// User is whom commands run as where neither template nor image names someone but root; 0 is 8737.
	User int64
	// Grace is how long a command may take to end after SIGTERM; 0 is 30 s.
	Grace time.Duration
	// Instance is the controller's instance ID, may be empty.
	Instance string
	// Labels are for all pods.
	Labels map[string]string
	// Executor are the resources of the init container.
	Executor corev1.ResourceRequirements
	// ImageTable says what images run by themselves, as Argo's "images" does: by their names as manifests have them.
	ImageTable map[string]Image
}

// Image is what an image says about how it is run.
type Image struct {
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	User       string   `json:"user,omitempty"`
	WorkingDir string   `json:"workingDir,omitempty"`
}

// Images looks images up where they lie. It may be called at the same time for several, and must answer the same for
// the same image as long as it can.
type Images interface {
	Image(ctx context.Context, namespace string, pullSecrets []string, serviceAccount, ref string) (Image, error)
}

// Objects are what a task needs on the cluster.
type Objects struct {
	Pod *corev1.Pod
	// Config holds the specification where it is too long for a variable of the pod; else nil. It has the pod's name, and
	// the workflow as its owner, so that it can be there before the pod is.
	Config *corev1.ConfigMap
}

const (
	defaultUser  = 8737
	defaultGrace = 30 * time.Second
)

// Build makes the pod of an attempt. images may be nil where the table has all that is needed. An error says what is wrong
// with the task or its images; trying again helps only for an error of ctx or images.
func Build(ctx context.Context, cfg Config, run engine.Run, cmd engine.StartTask, images Images) (Objects, error) {
	if k := cmd.Body.Kind; k != program.Containers && k != program.Script {
		return Objects{}, fmt.Errorf("a task of kind %q is no pod", k)
	}
	if len(cmd.Body.Containers) == 0 {
		return Objects{}, errors.New("the task has no container")
	}
	if cfg.User == 0 {
		cfg.User = defaultUser
	}
	if cfg.Grace <= 0 {
		cfg.Grace = defaultGrace
	}
	b := &builder{
		ctx: ctx, cfg: cfg, run: run, cmd: cmd, images: images,
		mirrors: map[string]bool{}, facts: map[string]Image{}, declared: map[string]corev1.Volume{},
	}
	for _, step := range []func() error{b.author, b.patches, b.volumes, b.commands, b.policy, b.wrap} {
		if err := step(); err != nil {
			return Objects{}, err
		}
	}
	b.metadata()
	return Objects{Pod: b.pod, Config: b.config}, nil
}

// builder is one pod being made.
type builder struct {
	ctx    context.Context
	cfg    Config
	run    engine.Run
	cmd    engine.StartTask
	images Images

	pod    *corev1.Pod
	config *corev1.ConfigMap
	// main is the name of the container that inputs and outputs are of; names are those of the task's own containers.
	main  string
	names []string
	// written is what the author wrote and the pod does not show any more.
	written struct{ terminationGrace *int64 }
	// mirrors are sidecars that see main's volumes.
	mirrors map[string]bool
	// declared are the volumes that there are to mount.
	declared map[string]corev1.Volume
	// facts are what is known of the containers' images, by container.
	facts map[string]Image
}

// metadata names the pod and says whose it is.
func (b *builder) metadata() {
	m := &b.pod.ObjectMeta
	m.Name, m.Namespace, m.Finalizers = Name(b.cmd), b.run.Namespace, []string{Finalizer}
	m.Labels, m.Annotations = map[string]string{}, map[string]string{}
	for _, labels := range []map[string]string{b.cmd.Labels, b.cfg.Labels, {
		WorkflowLabel: LabelValue(b.run.Name), CompletedLabel: "false", RunLabel: LabelValue(b.run.UID),
	}} {
		maps.Copy(m.Labels, labels)
	}
	if b.cfg.Instance != "" {
		m.Labels[InstanceLabel] = LabelValue(b.cfg.Instance)
	}
	m.Annotations[defaultContainerAnnotation] = b.main
	for _, annotations := range []map[string]string{b.cmd.Annotations, {
		NodeNameAnnotation: b.cmd.Path, NodeIDAnnotation: program.NodeID(b.run.Name, b.cmd.Path),
		IdentityAnnotation: Identity(b.run.UID, b.cmd.Path),
	}} {
		maps.Copy(m.Annotations, annotations)
	}
	yes := true
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: b.run.Name, UID: types.UID(b.run.UID),
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}
	if b.config != nil {
		b.config.Name, b.config.Namespace, b.config.Labels, b.config.OwnerReferences = m.Name, m.Namespace, m.Labels, m.OwnerReferences
		b.config.Annotations = map[string]string{IdentityAnnotation: m.Annotations[IdentityAnnotation]}
	}
}
