package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
)

const (
	// fieldManager is who owns fields that apply sets.
	fieldManager = "sluice"
	// objectTries is how often a call about an object is made that may pass.
	objectTries = 6
	// pollEvery is how often an object is looked at that may not be watched: Argo's own interval.
	pollEvery = 5 * time.Second
)

// deed is one action on objects.
type deed struct {
	client   dynamic.Interface
	mapper   meta.RESTMapper
	run      engine.Run
	identity string
	owned    bool
	strategy string

	flags   flags
	patch   []byte
	targets []target
	// object is what the action gave; nil for a deletion, and where there is none.
	object *unstructured.Unstructured
	at     target // where object is
}

// target is an object, or several by a selector.
type target struct {
	mapping   *meta.RESTMapping
	namespace string
	name      string
	object    *unstructured.Unstructured // the manifest's
}

func (d *deed) of(t target) dynamic.ResourceInterface {
	r := d.client.Resource(t.mapping.Resource)
	if t.mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.Namespace(t.namespace)
	}
	return r
}

// do carries the action out.
func (d *deed) do(ctx context.Context, action string) error {
	if action == "delete" {
		return d.delete(ctx)
	}
	if len(d.targets) != 1 {
		return fmt.Errorf("resource action %s is about one object, and there are %d", action, len(d.targets))
	}
	t := d.targets[0]
	if t.name == "" && (action != "create" || t.object.GetGenerateName() == "") {
		return errors.New("kind and name are both required but at least one of them is missing from the manifest")
	}
	act := map[string]func(context.Context, target) (*unstructured.Unstructured, error){
		"get": d.get, "create": d.create, "apply": d.apply, "replace": d.replace, "patch": d.patchObject,
	}[action]
	if act == nil {
		return fmt.Errorf("unknown resource action %q", action)
	}
	var err error
	d.object, err = retried(ctx, func() (*unstructured.Unstructured, error) { return act(ctx, t) })
	if err != nil {
		return err
	}
	d.at = t
	if d.object != nil {
		d.at.name = d.object.GetName()
	}
	return nil
}

// retried makes a call again that may pass.
func retried[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for n := 0; ; n++ {
		v, err := f()
		if !passing(err) || n+1 >= objectTries || ctx.Err() != nil {
			return v, err
		}
		select {
		case <-time.After(pause(n)):
		case <-ctx.Done():
			return v, err
		}
	}
}

func (d *deed) get(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	o, err := d.of(t).Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && d.flags.ignoreNotFound {
		return nil, nil
	}
	return o, err
}

// create makes the object, once: one that an earlier try of the same attempt made is taken up. In place of the random end
// that the API server would give to a generateName it gets one that follows from the attempt.
func (d *deed) create(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	o := d.mine(t)
	generate := t.name == ""
	for n := range maxNames {
		if generate {
			o.SetName(o.GetGenerateName() + ending5(d.identity, n))
		}
		made, err := d.of(t).Create(ctx, o, metav1.CreateOptions{FieldManager: fieldManager, DryRun: d.flags.dry(), FieldValidation: metav1.FieldValidationStrict})
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		there, getErr := d.of(t).Get(ctx, o.GetName(), metav1.GetOptions{})
		if getErr == nil && there.GetAnnotations()[pod.IdentityAnnotation] == d.identity {
			return there, nil
		}
		if !generate {
			return nil, err
		}
	}
	return nil, fmt.Errorf("no name that begins with %s is free", o.GetGenerateName())
}

// ending5 gives the end of a generated name, in the letters that Kubernetes uses for it.
func ending5(identity string, n int) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", identity, n)
	sum := h.Sum64()
	text := make([]byte, 5)
	for i := range text {
		text[i] = letters[sum%uint64(len(letters))]
		sum /= uint64(len(letters))
	}
	return string(text)
}

// mine is the manifest's object with what says whose it is.
func (d *deed) mine(t target) *unstructured.Unstructured {
	o := t.object.DeepCopy()
	if d.owned {
		yes := true
		o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{
			APIVersion: "argoproj.io/v1alpha1", Kind: "Workflow", Name: d.run.Name, UID: types.UID(d.run.UID),
			Controller: &yes, BlockOwnerDeletion: &yes,
		}))
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[pod.IdentityAnnotation] = d.identity
	o.SetAnnotations(annotations)
	return o
}

func (d *deed) apply(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	if t.object == nil {
		return nil, errors.New("apply needs a manifest")
	}
	o := d.mine(t)
	o.SetManagedFields(nil)
	return d.of(t).Apply(ctx, t.name, o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true, DryRun: d.flags.dry()})
}

func (d *deed) replace(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	if t.object == nil {
		return nil, errors.New("replace needs a manifest")
	}
	o := d.mine(t)
	if o.GetResourceVersion() == "" {
		there, err := d.of(t).Get(ctx, t.name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		o.SetResourceVersion(there.GetResourceVersion())
	}
	return d.of(t).Update(ctx, o, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: d.flags.dry()})
}

func (d *deed) patchObject(ctx context.Context, t target) (*unstructured.Unstructured, error) {
	kind, known := map[string]types.PatchType{
		"": types.StrategicMergePatchType, "strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType,
	}[d.strategy]
	if !known {
		return nil, fmt.Errorf("unknown mergeStrategy %q", d.strategy)
	}
	var sub []string
	if d.flags.subresource != "" {
		sub = []string{d.flags.subresource}
	}
	return d.of(t).Patch(ctx, t.name, kind, d.patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: d.flags.dry()}, sub...)
}

// delete removes all targets, those that are there, and waits until they are gone.
func (d *deed) delete(ctx context.Context) error {
	o := metav1.DeleteOptions{PropagationPolicy: d.flags.propagation(), GracePeriodSeconds: d.flags.grace(), DryRun: d.flags.dry()}
	for _, t := range d.targets {
		names := []string{t.name}
		if t.name == "" {
			list, err := retried(ctx, func() (*unstructured.UnstructuredList, error) {
				return d.of(t).List(ctx, metav1.ListOptions{LabelSelector: d.flags.selector, FieldSelector: d.flags.fieldSelector})
			})
			if err != nil {
				return err
			}
			names = nil
			for _, item := range list.Items {
				names = append(names, item.GetName())
			}
		}
		for _, name := range names {
			if _, err := retried(ctx, func() (any, error) { return nil, d.of(t).Delete(ctx, name, o) }); err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		if !d.flags.wait || d.flags.dryRun {
			continue
		}
		for _, name := range names {
			if err := d.waitGone(ctx, t, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitGone waits until an object is not there any more. Whoever may not look at it does not wait.
func (d *deed) waitGone(ctx context.Context, t target, name string) error {
	for n := 0; ; n++ {
		_, err := d.of(t).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return nil
		case err != nil && !passing(err):
			return err
		}
		select {
		case <-time.After(pause(min(n, 4))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wait waits until the object meets the conditions.
func (d *deed) wait(ctx context.Context, c conditions) error {
	if !c.any() || d.object == nil {
		return nil
	}
	for {
		done, err := c.met(d.object.Object)
		if done || err != nil {
			return err
		}
		if err := d.watch(ctx, c); err != nil {
			return err
		}
		o, err := retried(ctx, func() (*unstructured.Unstructured, error) {
			return d.of(d.at).Get(ctx, d.at.name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) {
			return errDeleted
		}
		if err != nil {
			return err
		}
		d.object = o
	}
}

var errDeleted = errors.New("the resource was deleted while its status was still being checked")

// watch returns when the object may have changed in a way that decides: it is to be looked at again then.
func (d *deed) watch(ctx context.Context, c conditions) error {
	w, err := d.of(d.at).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", d.at.name).String(), ResourceVersion: d.object.GetResourceVersion(),
	})
	if err != nil {
		// Accounts for resource templates often may only get.
		select {
		case <-time.After(pollEvery):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer w.Stop()
	for {
		select {
		case e, ok := <-w.ResultChan():
			o, isObject := e.Object.(*unstructured.Unstructured)
			if !ok || e.Type == watch.Error || e.Type == watch.Deleted || !isObject {
				select { // a watch that ends at once must not be asked for again and again
				case <-time.After(firstPause):
				case <-ctx.Done():
				}
				return nil
			}
			if done, err := c.met(o.Object); done || err != nil {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func asJSON(o *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(o.Object)
	return string(data), err
}
