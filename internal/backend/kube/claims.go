package kube

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
)

// When the claims of a run's volumeClaimTemplates are deleted: Argo's volumeClaimGC strategies. Without one it is OnSuccess.
// A claim goes at the latest with its Workflow, which owns it.
const (
	ClaimsOnSuccess    = "OnWorkflowSuccess"
	ClaimsOnCompletion = "OnWorkflowCompletion"
)

// MakeClaims makes the claims of a run's volumeClaimTemplates, before its first task starts. Those that the run has already
// are kept; one of the same name that is another's is an error.
func MakeClaims(ctx context.Context, client kubernetes.Interface, run engine.Run, templates []corev1.PersistentVolumeClaim) error {
	claims := client.CoreV1().PersistentVolumeClaims(run.Namespace)
	yes := true
	for i := range templates {
		if templates[i].Name == "" {
			return fmt.Errorf("volumeClaimTemplates[%d].metadata.name is required", i)
		}
		c := templates[i].DeepCopy()
		c.Name, c.Namespace, c.Status = pod.ClaimName(run.Name, c.Name), run.Namespace, corev1.PersistentVolumeClaimStatus{}
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[pod.WorkflowLabel] = pod.LabelValue(run.Name)
		c.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: run.Name, UID: types.UID(run.UID), Controller: &yes, BlockOwnerDeletion: &yes,
		}}
		_, err := claims.Create(ctx, c, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = owned(ctx, client, run, c.Name)
		}
		if err != nil {
			return fmt.Errorf("make volume claim %s: %w", c.Name, err)
		}
	}
	return nil
}

// owned says, by an error, that a claim is not the run's.
func owned(ctx context.Context, client kubernetes.Interface, run engine.Run, name string) error {
	there, err := client.CoreV1().PersistentVolumeClaims(run.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, ref := range there.OwnerReferences {
		if ref.UID == types.UID(run.UID) {
			return nil
		}
	}
	return errors.New("it is there already and belongs to something else")
}

// DeleteClaims deletes a run's claims when it has ended, where the strategy says so. It may be called again.
func DeleteClaims(ctx context.Context, client kubernetes.Interface, run engine.Run, templates []corev1.PersistentVolumeClaim, strategy string, phase engine.Phase) error {
	switch strategy {
	case "", ClaimsOnSuccess:
		if phase != engine.SucceededPhase {
			return nil // a retry goes on with them
		}
	case ClaimsOnCompletion:
	default:
		return fmt.Errorf("unknown volumeClaimGC strategy %q", strategy)
	}
	var all error
	for i := range templates {
		name := pod.ClaimName(run.Name, templates[i].Name)
		err := owned(ctx, client, run, name)
		if err == nil {
			err = client.CoreV1().PersistentVolumeClaims(run.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			all = errors.Join(all, fmt.Errorf("delete volume claim %s: %w", name, err))
		}
	}
	return all
}
