package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/builtin"
	kubebackend "github.com/sluice-ml/sluice/internal/backend/kube"
	"github.com/sluice-ml/sluice/internal/backend/kube/endpoint"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/backend/kube/registry"
	"github.com/sluice-ml/sluice/internal/controller"
	"github.com/sluice-ml/sluice/internal/controller/memo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/runner/locks"
	"github.com/sluice-ml/sluice/internal/store/kube"
	"github.com/sluice-ml/sluice/internal/submission"
)

// endpointObject is the Secret that holds the certificate authority of the task endpoint.
const endpointObject = "sluice-task-endpoint"

// controllerParts are what a controller that leads is connected with.
type controllerParts struct {
	controller *controller.Controller
	server     *http.Server
	listener   net.Listener
	ends       []func() error
}

// run serves the pods and runs the controller until ctx ends.
func (p *controllerParts) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := p.server.ServeTLS(p.listener, "", "")
		if !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("the task endpoint ended: %w", err))
			served <- err
			return
		}
		served <- nil
	}()
	err := p.controller.Run(ctx)
	_ = p.server.Close()
	return errors.Join(err, <-served)
}

func (p *controllerParts) close() error {
	var err error
	for _, end := range slices.Backward(p.ends) {
		err = errors.Join(err, end())
	}
	return err
}

// controllerParts puts the parts of a controller together.
func (a *app) controllerParts(ctx context.Context, cfg *rest.Config, o controllerFlags, recorder record.EventRecorder) (_ *controllerParts, err error) {
	p := &controllerParts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	core, err := kubernetes.NewForConfig(protobuf(cfg))
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	objects, err := client.NewWithWatch(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	settings, err := a.controllerSettings(ctx, core, o)
	if err != nil {
		return nil, err
	}
	journal, err := kube.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	authority, err := endpoint.LoadAuthority(ctx, core.CoreV1().Secrets(o.namespace), endpointObject)
	if err != nil {
		return nil, err
	}
	hub := runner.NewHub()
	public := publicTransport()
	artifacts := func(run engine.Run) artifact.Options {
		opts := runArtifacts(core, o.artifactFolder, run.Namespace)
		opts.OwnCredentials, opts.Transport = settings.lends, public
		return opts
	}
	results := endpoint.StoredResults{Options: artifacts}
	pods, err := a.kubeBackend(cfg, core, o, settings, authority, artifacts, results, hub)
	if err != nil {
		return nil, err
	}
	conditions := &submission.Manifest{Lang: argoexpr.New()}
	others := builtin.New(builtin.Config{Home: a.home, Eval: conditions.Eval, Artifacts: artifacts, Transport: public}, hub)
	tasks := backend.ByKind(pods, others)
	p.ends = append(p.ends, tasks.Close)
	reg, err := hook.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	host, err := url.Parse(o.endpointURL)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	var hooks *hook.Dispatcher
	remembered := cache.New(cache.Config{
		Entries: memo.New(objects, a.log), Fingerprint: kfpFingerprint, Wake: func(uid string) { hooks.Wake(uid) },
		Exists: func(ctx context.Context, namespace string, art v1alpha1.Artifact) (bool, error) {
			return artifactExists(ctx, art, runArtifacts(core, o.artifactFolder, namespace))
		},
	})
	hooks, err = hook.New(hook.Config{
		Builtins: map[string]hook.Builtin{"cache": remembered.FromSettings},
		Callback: callbacksAt(o.endpointURL, authority),
		Registry: reg, Sink: hub, UserAgent: "sluice/" + a.Version, Logger: a.log, Secrets: controller.HookSecrets{Client: objects},
		Tokens: &accountTokens{core: core, namespace: o.namespace, account: o.serviceAccount, now: time.Now},
	})
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	p.ends = append(p.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
		defer cancel()
		return hooks.Close(ctx)
	})
	held := controller.NewLocks(objects, hub, locks.Options{Log: a.log})
	p.ends = append(p.ends, held.Close)
	attempts := endpoint.Config{
		Reviewer: endpoint.NewTokenReviews(core.AuthenticationV1().TokenReviews()), Attempts: pods, Results: results, Carry: o.carry, Log: a.log,
	}
	p.server = endpoint.NewServer(withCallbacks(endpoint.New(attempts), hooks.CallbackHandler()), authority.TLS(host.Hostname()), a.log)
	if p.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.endpointAddress); err != nil {
		return nil, fmt.Errorf("task endpoint: %w", err)
	}
	p.ends = append(p.ends, func() error { _ = p.listener.Close(); return nil }) // the server may have closed it
	c := controller.Config{
		Client: objects, Journal: journal, Hub: hub, Backend: tasks, Hooks: hooks, Locks: held, Select: hooks.SelectFor, Registry: reg, Own: []hook.Hook{builtinHook("cache")},
		Claims: volumeClaims{core}, HookHosts: settings.HookHosts, Release: pods.Release, ReleaseUnknown: pods.ReleaseUnknown,
		DefaultRepository: settings.repository, DeprecatedExecutor: settings.deprecated(a.Env),
		ArtifactRoot: func(run engine.Run) string {
			return filepath.Join(o.artifactFolder, run.Namespace, run.Name+"-"+run.UID)
		},
		InstanceID: o.instance, Workers: o.workers, Parallelism: o.parallelism, NamespaceParallelism: o.namespaceParallelism,
		NoClusterScope: o.namespaced, Events: recorder, Log: a.log,
	}
	if o.namespaced {
		c.Namespace = o.namespace
	}
	p.controller, err = controller.New(c)
	return p, err
}

// kubeBackend makes the backend that carries tasks out as pods.
func (a *app) kubeBackend(cfg *rest.Config, core kubernetes.Interface, o controllerFlags, settings *controllerSettings, authority *endpoint.Authority,
	artifacts func(engine.Run) artifact.Options, results kubebackend.Results, sink kubebackend.Sink,
) (*kubebackend.Backend, error) {
	objects, err := kubebackend.NewObjects(cfg)
	if err != nil {
		return nil, err
	}
	c := kubebackend.Config{
		Client: core, Objects: objects, Artifacts: artifacts, Results: results, Decode: argoexpr.New().DecodeArtifact, Log: a.log,
		Images: registry.New(registry.Config{Client: core}),
		Pod: pod.Config{
			ExecutorImage: o.executorImage, ImagePullPolicy: corev1.PullPolicy(o.pullPolicy), Endpoint: strings.TrimSuffix(o.endpointURL, "/"),
			CA: authority.CA(), Instance: o.instance, ImageTable: settings.Images,
		},
	}
	if o.namespaced {
		c.Namespaces = []string{o.namespace}
	}
	return kubebackend.New(c, sink)
}

// protobuf is for Kubernetes' own kinds.
func protobuf(cfg *rest.Config) *rest.Config {
	c := kubebackend.ClientConfig(cfg)
	c.QPS, c.Burst = cfg.QPS, cfg.Burst
	return c
}

// runArtifacts are how the stores of a namespace's runs are opened: with its Secrets, as they are now, and of the controller's
// own files with the folder only that holds the namespace's artifacts.
func runArtifacts(core kubernetes.Interface, folder, namespace string) artifact.Options {
	return artifact.Options{
		Roots: []string{filepath.Join(folder, namespace)},
		Secrets: func(name, key string) (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return secretValue(ctx, core, namespace, name, key)
		},
	}
}

// callbacksAt has plugins call back at a URL, with tokens that outlive this process.
func callbacksAt(url string, authority *endpoint.Authority) *hook.Callback {
	return &hook.Callback{URL: url, Secret: authority.Secret("hook callbacks")}
}

// callbackTime is how long a plugin may take to send its answer.
const callbackTime = 30 * time.Second

// withCallbacks lets plugins send answers to the address at which tasks' pods reach the controller.
func withCallbacks(tasks, callbacks http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", tasks)
	mux.HandleFunc(hook.CallbackPath, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(callbackTime)); err != nil {
			http.Error(w, "no time can be set", http.StatusInternalServerError)
			return
		}
		callbacks.ServeHTTP(w, r)
	})
	return mux
}

// publicTransport does the requests of HTTP templates, which are the workflows' authors': it reaches what hooks may reach.
func publicTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one by the library's documentation
	t.DialContext, t.Proxy = hook.DialPublic, nil        // a proxy would reach for them what they may not
	return t
}

// readSettings reads the settings that --config names.
func (a *app) readSettings(ctx context.Context, core kubernetes.Interface, o controllerFlags) ([]byte, string, error) {
	name, named := strings.CutPrefix(o.config, "configmap/")
	if o.config != "" && !named {
		data, err := os.ReadFile(o.config)
		if err != nil {
			return nil, "", usage("--config: %w", err)
		}
		return data, o.config, nil
	}
	if !named {
		name = "sluice-controller"
	}
	return configMapSettings(ctx, core, o.namespace, name, named)
}

// volumeClaims are the claims of workflows on a cluster.
type volumeClaims struct{ core kubernetes.Interface }

func (v volumeClaims) Make(ctx context.Context, run engine.Run, templates []corev1.PersistentVolumeClaim) error {
	return kubebackend.MakeClaims(ctx, v.core, run, templates)
}

func (v volumeClaims) Delete(ctx context.Context, run engine.Run, templates []corev1.PersistentVolumeClaim, strategy string, phase engine.Phase) error {
	return kubebackend.DeleteClaims(ctx, v.core, run, templates, strategy, phase)
}
