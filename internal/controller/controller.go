// Package controller makes a cluster run Workflow objects: it takes each up, goes on with it in a runner's loop, and
// shows how far it is in the object's status. What people and Argo's tools write into an object to steer it becomes events
// of the run. The journal is what counts; a status is a projection, and is written by one goroutine for each workflow.
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/store"
)

// Journal keeps runs: what was submitted, the events, and snapshots of the state.
type Journal interface {
	runner.Journal
	runner.Snapshots
	// Create keeps a submission with the first events of a run; owner is its Workflow object. It is kube.ErrExists where
	// the run is there already.
	Create(ctx context.Context, owner metav1.OwnerReference, run store.Run, events ...engine.Event) error
	// Get gives a run with its submission; store.ErrNotFound where there is none.
	Get(ctx context.Context, namespace, uid string) (store.Run, error)
	// Release lets go of a run that this process does not go on with.
	Release(uid string)
}

// Config is what a [Controller] is made of. Client, Journal, Backend and Hub are required.
type Config struct {
	Client  client.WithWatch
	Journal Journal
	// Hub is the sink that the backend, hooks and locks were given.
	Hub     *runner.Hub
	Backend runner.Backend
	Hooks   runner.Hooks
	Locks   *Locks
	// Select gives the task hooks for a new workflow; nil is none.
	Select func(namespace string, labels map[string]string) ([]engine.Hook, error)
	// Registry, where it is set, is kept up to date with the TaskHook and ClusterTaskHook objects.
	Registry *hook.Registry
	// Own are hooks with built-in plugins that are there for every workflow, unless somebody has registered another with the same
	// plugin for its namespace, or a cluster hook of the name.
	Own []hook.Hook
	// HookHosts are hosts outside their namespace that namespaced hooks may reach.
	HookHosts []string
	// Release is told of a run that has ended or whose object is gone: nothing waits for its pods any more. ReleaseUnknown, after
	// a start and every SweepEvery (0 is five minutes), of all runs but those that are known.
	Release        func(uid string)
	ReleaseUnknown func(ctx context.Context, known func(uid string) bool) error
	SweepEvery     time.Duration
	// Claims makes the volume claims of workflows; nil makes none.
	Claims Claims
	// ArtifactRoot says where outputs of a run go that has no artifact repository.
	ArtifactRoot func(engine.Run) string

	// DefaultRepository is the artifact repository of workflows whose namespace has none: a store block as Argo writes it.
	DefaultRepository program.JSON

	// Namespace limits the controller to one; empty is all. InstanceID limits it to objects of that label, empty to
	// those that have none.
	Namespace  string
	InstanceID string
	// Workers is how many objects are looked at at once; 0 is 16.
	Workers int
	// Parallelism and NamespaceParallelism limit how many workflows go on at once; 0 is no limit.
	Parallelism, NamespaceParallelism int
	// StatusLimit is the size of an object from which its nodes are compressed; 0 is Argo's, 1 MiB.
	StatusLimit int
	// NoClusterScope keeps away from ClusterWorkflowTemplates and ClusterTaskHooks: a namespaced controller may not read them.
	NoClusterScope bool

	// DeprecatedExecutor names a setting of old executors that was given, as "containerRuntimeExecutor: docker".
	DeprecatedExecutor string
	// Events records Kubernetes events; nil records none.
	Events record.EventRecorder

	Log *slog.Logger
	Now func() time.Time
}

// Controller runs Workflow objects.
type Controller struct {
	Config
	client     client.WithWatch
	runner     *runner.Runner
	conditions *hook.Conditions
	metrics    *metrics
	recorder   recorder
	queue      workqueue.TypedRateLimitingInterface[string]
	workflows  cache.SharedIndexInformer
	slots      *slots
	repos      *repositories
	pods       *podCollector

	mu     sync.Mutex
	runs   map[string]*run // by the objects' keys
	closed bool
	loops  sync.WaitGroup
}

// New makes a controller. Run runs it.
func New(cfg Config) (*Controller, error) {
	if cfg.Client == nil || cfg.Journal == nil || cfg.Backend == nil || cfg.Hub == nil {
		return nil, errors.New("controller: a client, a journal, a backend and its hub are needed")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Workers == 0 {
		cfg.Workers = 16
	}
	if cfg.SweepEvery == 0 {
		cfg.SweepEvery = 5 * time.Minute
	}
	c := &Controller{
		Config: cfg, client: cfg.Client, conditions: &hook.Conditions{}, runs: map[string]*run{},
		slots: newSlots(cfg.Parallelism, cfg.NamespaceParallelism), repos: newRepositories(cfg.Client, cfg.Now),
		metrics: newMetrics(), recorder: silent{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "workflows"}),
	}
	if cfg.Events != nil {
		c.recorder = events{cfg.Events}
	}
	c.pods = newPodCollector(cfg.Client, func(g garbagePod, err error) {
		c.Log.Warn("the pod of an ended task could not be deleted, trying again", "pod", g.namespace+"/"+g.name, "error", err)
	})
	rc := runner.Config{Hub: cfg.Hub, Backend: cfg.Backend, Journal: cfg.Journal, Hooks: cfg.Hooks, Log: cfg.Log, Now: cfg.Now}
	if cfg.Locks != nil {
		rc.Locks = cfg.Locks
	}
	c.runner = runner.New(rc)
	var err error
	c.workflows, err = informer(c.lister("Workflow"), newObject(kind("Workflow")), trim, func(key string) { c.queue.Add(key) })
	return c, err
}

// lister lists the objects of a kind that are this controller's.
func (c *Controller) lister(name string) lister {
	return lister{client: c.client, list: func() client.ObjectList {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind(name + "List"))
		return l
	}, opts: c.mine()}
}

// Run runs the controller until ctx ends. Workflows go on where they are when it, or another, runs again.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	defer c.queue.ShutDown()
	defer c.pods.queue.ShutDown()
	watching.Go(func() { c.pods.work(ctx) })
	watch := func(inf cache.SharedIndexInformer) { watching.Go(func() { inf.RunWithContext(ctx) }) }
	if err := c.watchHooks(ctx, watch); err != nil || ctx.Err() != nil {
		return err
	}
	watch(c.workflows)
	if !cache.WaitForCacheSync(ctx.Done(), c.workflows.HasSynced) {
		return nil
	}
	c.recover(ctx)
	var workers sync.WaitGroup
	for range c.Workers {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Go(func() { c.sweep(ctx) })
	if err := c.startCron(ctx, watch, &workers); err != nil {
		c.Log.Error("CronWorkflows are not looked after", "error", err)
	}
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	c.mu.Lock()
	c.closed = true
	for _, r := range c.runs {
		r.cancel(context.Cause(ctx))
	}
	c.mu.Unlock()
	c.loops.Wait()
	return nil
}

func (c *Controller) work(ctx context.Context) {
	for {
		key, quit := c.queue.Get()
		if quit {
			return
		}
		c.handle(ctx, key)
		c.queue.Done(key)
	}
}

func (c *Controller) handle(ctx context.Context, key string) {
	again, err := c.reconcile(ctx, key)
	switch {
	case err != nil && ctx.Err() == nil:
		c.Log.Warn("a workflow could not be looked after, trying again", "workflow", key, "error", err)
		c.queue.AddRateLimited(key)
	case again > 0:
		c.queue.Forget(key)
		c.queue.AddAfter(key, again)
	default:
		c.queue.Forget(key)
	}
}

// stored gives an object from the informer's store.
func (c *Controller) stored(key string) (workflow, bool, error) {
	o, ok, err := c.workflows.GetStore().GetByKey(key)
	if err != nil || !ok {
		return workflow{}, false, err
	}
	u, is := o.(*unstructured.Unstructured)
	if !is {
		return workflow{}, false, fmt.Errorf("%s: the store holds a %T", key, o)
	}
	return workflow{u}, true, nil
}

// find gives the run of a key, nil where this process goes on with none.
func (c *Controller) find(key string) *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[key]
}
