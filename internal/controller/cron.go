package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/controller/cron"
)

// What a CronWorkflow is marked with, as Argo does it.
const (
	lastSchedule  = "cronworkflows.argoproj.io/last-used-schedule"
	cronCompleted = "cronworkflows.argoproj.io/completed"
)

// crons starts workflows by the schedules of CronWorkflow objects.
type crons struct {
	c       *Controller
	objects cache.SharedIndexInformer
	queue   workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// looked is until when each object has been looked after: what came before is missed, or done.
	looked map[string]time.Time
	// written are the objects as they were written last: the informer may tell of that later.
	written map[string]*unstructured.Unstructured
}

// startCron watches CronWorkflows until ctx ends.
func (c *Controller) startCron(ctx context.Context, watch func(cache.SharedIndexInformer), workers *sync.WaitGroup) error {
	cr := &crons{
		c: c, looked: map[string]time.Time{}, written: map[string]*unstructured.Unstructured{}, queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute)),
	}
	var err error
	cr.objects, err = informer(c.lister("CronWorkflow"), newObject(kind("CronWorkflow")), nil, func(key string) { cr.queue.Add(key) })
	if err != nil {
		return err
	}
	// A child that ends changes what its CronWorkflow shows.
	child := func(obj any) {
		u, ok := obj.(*unstructured.Unstructured)
		if last, deleted := obj.(cache.DeletedFinalStateUnknown); deleted {
			u, ok = last.Obj.(*unstructured.Unstructured)
		}
		if ok && u.GetLabels()[LabelCron] != "" {
			cr.queue.Add(u.GetNamespace() + "/" + u.GetLabels()[LabelCron])
		}
	}
	_, err = c.workflows.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: child, UpdateFunc: func(_, obj any) { child(obj) }, DeleteFunc: child,
	})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	watch(cr.objects)
	workers.Go(func() {
		<-ctx.Done()
		cr.queue.ShutDown()
	})
	workers.Go(func() {
		for {
			key, quit := cr.queue.Get()
			if quit {
				return
			}
			again, err := cr.reconcile(ctx, key)
			switch {
			case err != nil && ctx.Err() == nil:
				c.Log.Warn("a CronWorkflow could not be looked after, trying again", "cron", key, "error", err)
				cr.queue.AddRateLimited(key)
			case again > 0:
				cr.queue.Forget(key)
				cr.queue.AddAfter(key, again)
			default:
				cr.queue.Forget(key)
			}
			cr.queue.Done(key)
		}
	})
	return nil
}

// cronStatus is a CronWorkflow's status as Argo has it.
type cronStatus struct {
	Active            []map[string]any `json:"active"`
	LastScheduledTime *metav1.Time     `json:"lastScheduledTime"`
	Conditions        []argo.Condition `json:"conditions"`
	Succeeded         int64            `json:"succeeded"`
	Failed            int64            `json:"failed"`
	Phase             string           `json:"phase"`
}

// cronObject is a CronWorkflow as it was read.
type cronObject struct {
	*unstructured.Unstructured
	spec   argo.CronWorkflowSpec
	status cronStatus
	labels map[string]any // to be set
	notes  map[string]any // annotations to be set
}

func readCron(u *unstructured.Unstructured) (*cronObject, error) {
	o := &cronObject{Unstructured: u, labels: map[string]any{}, notes: map[string]any{}}
	// The workflow itself is checked when it runs: only what is about starting it is read here.
	spec, _ := u.Object["spec"].(map[string]any)
	own := maps.Clone(spec)
	delete(own, "workflowSpec")
	data, err := json.Marshal(map[string]any{"spec": own, "status": u.Object["status"]})
	if err != nil {
		return nil, err
	}
	if old, ok := spec["schedule"].(string); ok && old != "" { // as manifests of old say it
		o.spec.Schedules = []string{old}
	}
	var read struct {
		Spec   *argo.CronWorkflowSpec `json:"spec"`
		Status *cronStatus            `json:"status"`
	}
	read.Spec, read.Status = &o.spec, &o.status
	if err := json.Unmarshal(data, &read); err != nil {
		return o, fmt.Errorf("the object cannot be read: %w", err)
	}
	return o, nil
}

// reconcile starts what is due, and brings what the object shows up to date. It gives when to look again.
func (cr *crons) reconcile(ctx context.Context, key string) (time.Duration, error) {
	c := cr.c
	obj, there, err := cr.objects.GetStore().GetByKey(key)
	u, ok := obj.(*unstructured.Unstructured)
	if err != nil || !there || !ok || u.GetDeletionTimestamp() != nil {
		cr.mu.Lock()
		delete(cr.looked, key)
		delete(cr.written, key)
		cr.mu.Unlock()
		return 0, err
	}
	o, err := readCron(cr.newest(key, u).DeepCopy())
	if err != nil && o == nil {
		return 0, err
	}
	before := o.status.json()
	now := c.Now()
	var schedule cron.Schedule
	if err == nil {
		schedule, err = cron.Parse(o.spec.Schedules, o.spec.Timezone)
	}
	o.condition("SpecError", err)
	if err := cr.children(ctx, o); err != nil {
		return 0, err
	}
	if err != nil {
		return 0, cr.save(ctx, o, before)
	}
	cr.stopping(o, now)
	at, due := cr.due(key, o, schedule, now)
	if due {
		err := cr.start(ctx, o, schedule, at, now)
		if err != nil && !refusedForGood(err) {
			cr.unlook(key, at) // it is still due
			return 0, err
		}
		o.condition("SubmissionError", err)
		if err != nil {
			o.status.Failed++
		}
	}
	if err := cr.save(ctx, o, before); err != nil {
		return 0, err
	}
	if next := schedule.Next(now); !next.IsZero() {
		return max(next.Sub(c.Now()), time.Millisecond), nil
	}
	return 0, nil
}

// newest gives the object as the informer has it, or as it was written where that is later.
func (cr *crons) newest(key string, u *unstructured.Unstructured) *unstructured.Unstructured {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	w := cr.written[key]
	if w == nil || w.GetUID() != u.GetUID() {
		return u
	}
	if order, err := resourceversion.CompareResourceVersion(w.GetResourceVersion(), u.GetResourceVersion()); err == nil && order > 0 {
		return w
	}
	delete(cr.written, key)
	return u
}

// due gives the time for which a workflow is to be started now.
func (cr *crons) due(key string, o *cronObject, s cron.Schedule, now time.Time) (time.Time, bool) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	from, known := cr.looked[key]
	cr.looked[key] = now
	if known {
		return s.Latest(from, now)
	}
	if o.GetAnnotations()[lastSchedule] != s.String() || o.status.LastScheduledTime == nil {
		return time.Time{}, false
	}
	return s.Missed(o.status.LastScheduledTime.Time, now, o.spec.StartingDeadlineSeconds)
}

// unlook takes back that a time has been looked after.
func (cr *crons) unlook(key string, at time.Time) {
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.looked[key] = at.Add(-time.Nanosecond)
}

// refusedForGood says whether the API server, or this controller, would say the same again.
func refusedForGood(err error) bool {
	if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		return !utilnet.IsConnectionRefused(err) && !utilnet.IsConnectionReset(err) && !utilnet.IsTimeout(err) // else the object itself is wrong
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsNotFound(err)
}

// children counts workflows that have ended since the last look, and deletes those that are too many.
func (cr *crons) children(ctx context.Context, o *cronObject) error {
	objects, err := cr.c.workflows.GetIndexer().ByIndex(cache.NamespaceIndex, o.GetNamespace())
	if err != nil {
		return err
	}
	found := map[string]workflow{}
	var succeeded, failed []workflow
	for _, obj := range objects {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok || u.GetLabels()[LabelCron] != o.GetName() {
			continue
		}
		w := workflow{u}
		found[string(w.GetUID())] = w
		switch {
		case !w.completed():
			if !slices.ContainsFunc(o.status.Active, func(ref map[string]any) bool { return ref["uid"] == string(w.GetUID()) }) {
				o.status.Active = append(o.status.Active, referTo(w))
			}
		case w.phase() == "Succeeded":
			succeeded = append(succeeded, w)
		default:
			failed = append(failed, w)
		}
	}
	var active []map[string]any
	for _, ref := range o.status.Active {
		uid, _ := ref["uid"].(string)
		w, ok := found[uid]
		if !ok { // it may be so new that the informer has not told of it
			name, _ := ref["name"].(string)
			live, err := fetch(ctx, cr.c.client, client.ObjectKey{Namespace: o.GetNamespace(), Name: name})
			if apierrors.IsNotFound(err) || err == nil && string(live.GetUID()) != uid {
				continue
			}
			if err != nil {
				return err
			}
			w = live
		}
		switch {
		case !w.completed():
			active = append(active, ref)
		case w.phase() == "Succeeded":
			o.status.Succeeded++
		default:
			o.status.Failed++
		}
	}
	o.status.Active = active
	return cr.prune(ctx, succeeded, o.spec.SuccessfulJobsHistoryLimit, 3, failed, o.spec.FailedJobsHistoryLimit, 1)
}

// prune keeps the newest of each kind.
func (cr *crons) prune(ctx context.Context, succeeded []workflow, s *int32, sDefault int, failed []workflow, f *int32, fDefault int) error {
	for _, group := range []struct {
		all   []workflow
		limit *int32
		keep  int
	}{{succeeded, s, sDefault}, {failed, f, fDefault}} {
		if group.limit != nil && *group.limit >= 0 {
			group.keep = int(*group.limit)
		}
		slices.SortFunc(group.all, func(a, b workflow) int {
			x, _ := a.finishedAt()
			y, _ := b.finishedAt()
			return y.Compare(x)
		})
		for i := group.keep; i < len(group.all); i++ {
			uid := group.all[i].GetUID()
			err := cr.c.client.Delete(ctx, group.all[i], client.PropagationPolicy("Background"), client.Preconditions{UID: &uid})
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete an old workflow: %w", err)
			}
		}
	}
	return nil
}

// start starts the workflow for a time, where nothing speaks against it.
func (cr *crons) start(ctx context.Context, o *cronObject, s cron.Schedule, at, now time.Time) error {
	if o.spec.Suspend || o.status.Phase == "Stopped" {
		return nil
	}
	o.notes[lastSchedule] = s.String()
	if goes, err := cr.when(o, now); err != nil || !goes {
		return err
	}
	if len(o.status.Active) > 0 {
		switch o.spec.ConcurrencyPolicy {
		case "", "Allow":
		case "Forbid":
			return nil
		case "Replace":
			if err := cr.terminate(ctx, o); err != nil {
				return err
			}
		default:
			return fmt.Errorf("concurrencyPolicy %q: must be Allow, Forbid or Replace", o.spec.ConcurrencyPolicy)
		}
	}
	w := o.child(at)
	err := cr.c.client.Create(ctx, w)
	if apierrors.IsAlreadyExists(err) {
		return nil // another controller started it, or this one before it could say so
	}
	if err != nil {
		return fmt.Errorf("start the workflow: %w", err)
	}
	cr.c.metrics.cron.WithLabelValues(o.GetNamespace()).Inc()
	o.status.Active = append(o.status.Active, referTo(workflow{w}))
	o.status.Phase = "Active"
	last := metav1.NewTime(at)
	o.status.LastScheduledTime = &last
	return nil
}

// terminate ends the workflows that go on, in favour of a new one.
func (cr *crons) terminate(ctx context.Context, o *cronObject) error {
	for _, ref := range o.status.Active {
		name, _ := ref["name"].(string)
		w := newObject(kind("Workflow"))
		w.SetNamespace(o.GetNamespace())
		w.SetName(name)
		err := cr.c.client.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"shutdown":"Terminate"}}`)))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("end workflow %s: %w", name, err)
		}
	}
	return nil
}

func referTo(w workflow) map[string]any {
	return map[string]any{
		"apiVersion": argo.APIVersion, "kind": "Workflow", "name": w.GetName(), "namespace": w.GetNamespace(),
		"uid": string(w.GetUID()), "resourceVersion": w.GetResourceVersion(),
	}
}

// child is the workflow for a time, as Argo makes it.
func (o *cronObject) child(at time.Time) *unstructured.Unstructured {
	w := newObject(kind("Workflow"))
	w.SetNamespace(o.GetNamespace())
	w.SetName(fmt.Sprintf("%s-%d", o.GetName(), at.Unix()))
	labels, annotations := map[string]string{}, map[string]string{}
	if m := o.spec.WorkflowMetadata; m != nil {
		maps.Copy(labels, m.Labels)
		maps.Copy(annotations, m.Annotations)
		w.SetFinalizers(m.Finalizers)
	}
	labels[LabelCron] = o.GetName()
	if id, ok := o.GetLabels()[LabelInstance]; ok {
		labels[LabelInstance] = id
	}
	annotations[annotationCronAt] = at.UTC().Format(time.RFC3339)
	w.SetLabels(labels)
	w.SetAnnotations(annotations)
	yes := true
	w.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: argo.APIVersion, Kind: "CronWorkflow", Name: o.GetName(), UID: o.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
	w.Object["spec"] = nested(o.Object, "spec", "workflowSpec")
	return w
}
