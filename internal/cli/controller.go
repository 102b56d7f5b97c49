package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/sluice-ml/sluice/deploy"
)

// controllerFlags are how the controller is started.
type controllerFlags struct {
	kubeconfig, namespace, instance   string
	namespaced, leaderElect           bool
	executorImage, pullPolicy         string
	endpointAddress, endpointURL      string
	carry                             bool
	artifactFolder                    string
	workers                           int
	parallelism, namespaceParallelism int
	qps                               float32
	burst                             int
	metricsAddress, healthAddress     string
	config, serviceAccount            string
}

func (a *app) controllerCommand() *cobra.Command {
	var o controllerFlags
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run the Workflow objects of a Kubernetes cluster",
		Long: `Run the Workflow objects of a Kubernetes cluster: each task is one pod without any privilege, and kubectl, the argo command and
Hera see and steer workflows as they are used to. sluice install prints what a cluster needs for it; docs/controller.md tells how it works.

It runs until it is told to end. Workflows go on when it, or another, runs again.`,
		Example: `  sluice controller --executor-image registry.example.com/sluice-executor:v1
  sluice controller --kubeconfig ~/.kube/config --namespaced --namespace ml --endpoint-url https://10.0.0.5:8443`,
		Args:              exactly(0, "no argument"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("leader-elect") {
				o.leaderElect = a.Env("POD_NAMESPACE") != ""
			}
			return a.controller(c.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` that says how to reach the cluster (default $KUBECONFIG, else the pod's own account)")
	f.BoolVar(&o.namespaced, "namespaced", false, "look after one namespace only")
	f.StringVar(&o.namespace, "namespace", "", "the controller's own namespace, with --namespaced the one that it looks after (default $POD_NAMESPACE, else that of the kubeconfig)")
	f.StringVar(&o.instance, "instance-id", "", "look after objects whose label workflows.argoproj.io/controller-instanceid has this value only (default: those without the label)")
	f.StringVar(&o.config, "config", "", "`file` with settings, or configmap/NAME (default: configmap/sluice-controller, where there is one)")
	f.StringVar(&o.executorImage, "executor-image", "sluice-executor:"+a.Version, "image that the program around each task's command is copied from")
	f.StringVar(&o.pullPolicy, "executor-image-pull-policy", "IfNotPresent", "when that image is pulled: Always, IfNotPresent or Never")
	f.StringVar(&o.endpointAddress, "endpoint-address", "0.0.0.0:8443", "`address` at which task pods reach the controller by HTTPS")
	f.StringVar(&o.endpointURL, "endpoint-url", "", "how pods name it, as https://HOST[:PORT] (default: this machine's address and that port)")
	f.BoolVar(&o.carry, "endpoint-carries-artifacts", false, "bring artifacts through the endpoint also where the store could sign addresses: for pods that cannot reach the stores")
	f.StringVar(&o.artifactFolder, "artifact-folder", "", "`folder` for artifacts of workflows without an artifact repository (default artifacts/ in $SLUICE_HOME)")
	f.IntVar(&o.workers, "workers", 16, "how many objects are looked at at once")
	f.IntVar(&o.parallelism, "parallelism", 0, "how many workflows may go on at once (0: no limit)")
	f.IntVar(&o.namespaceParallelism, "namespace-parallelism", 0, "how many workflows of one namespace may go on at once (0: no limit)")
	f.Float32Var(&o.qps, "qps", -1, "requests to the API server a second (-1: as many as it takes; it has its own priority and fairness)")
	f.IntVar(&o.burst, "burst", 0, "how many may come at once where --qps limits them")
	f.StringVar(&o.metricsAddress, "metrics-address", "127.0.0.1:9090", "`address` of Prometheus metrics; 0 for none")
	f.StringVar(&o.healthAddress, "health-address", "127.0.0.1:8081", "`address` of /healthz and /readyz; 0 for none")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "wait until no other controller holds the lease (default: in a pod)")
	f.StringVar(&o.serviceAccount, "service-account", "sluice-controller", "the controller's own service account: hooks that ask for its tokens get them")
	_ = c.RegisterFlagCompletionFunc("executor-image-pull-policy", cobra.FixedCompletions([]string{"Always", "IfNotPresent", "Never"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// cluster finds the cluster and the controller's own namespace.
func (a *app) cluster(o *controllerFlags) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, usage("no cluster is to be reached: %w; give --kubeconfig FILE", err)
	}
	if o.namespace == "" {
		o.namespace = a.Env("POD_NAMESPACE")
	}
	if o.namespace == "" {
		if o.namespace, _, err = loader.Namespace(); err != nil {
			return nil, usage("find the namespace: %w", err)
		}
	}
	cfg.UserAgent = "sluice/" + a.Version
	cfg.QPS, cfg.Burst = o.qps, o.burst
	return cfg, nil
}

// controller runs until it is told to end.
func (a *app) controller(ctx context.Context, o controllerFlags) error {
	cfg, err := a.cluster(&o)
	if err != nil {
		return err
	}
	if o.endpointURL == "" {
		if o.endpointURL, err = ownURL(cfg, o.endpointAddress); err != nil {
			return err
		}
	}
	if u, err := url.Parse(o.endpointURL); err != nil || u.Scheme != "https" || u.Host == "" {
		return usage("--endpoint-url %q: give it as https://HOST[:PORT]", o.endpointURL)
	}
	if o.artifactFolder == "" {
		o.artifactFolder = a.folder("artifacts")
	}
	if o.artifactFolder, err = filepath.Abs(o.artifactFolder); err != nil {
		return usage("--artifact-folder: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals, stop := a.Interrupts()
	defer stop()
	go func() {
		select {
		case s := <-signals:
			cancel(fmt.Errorf("told to end: %s", s))
		case <-ctx.Done():
		}
	}()
	logger := logr.FromSlogHandler(a.log.Handler())
	ctrllog.SetLogger(logger)
	const graceful = 20 * time.Second
	grace := graceful
	mgr, err := manager.New(cfg, manager.Options{
		Scheme: clientgoscheme.Scheme, Logger: logger, Metrics: server.Options{BindAddress: o.metricsAddress}, HealthProbeBindAddress: o.healthAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: deploy.Lease(o.instance), LeaderElectionNamespace: o.namespace, LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	leading := make(chan struct{})
	ready := func(*http.Request) error {
		select {
		case <-leading:
			return nil
		default:
			return errors.New("another controller leads")
		}
	}
	alive := func(*http.Request) error { return nil }
	if err := errors.Join(mgr.AddHealthzCheck("alive", alive), mgr.AddReadyzCheck("leading", ready)); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	lead := manager.RunnableFunc(func(ctx context.Context) error {
		parts, err := a.controllerParts(ctx, cfg, o, mgr.GetEventRecorderFor("sluice-controller")) //nolint:staticcheck // the API that Argo's tools read events of
		if err != nil {
			return err
		}
		defer func() {
			if err := parts.close(); err != nil {
				a.log.Warn("the controller's parts did not end well", slog.Any("error", err))
			}
		}()
		metrics.Registry.MustRegister(parts.controller.Collectors()...)
		close(leading)
		return parts.run(ctx)
	})
	if err := mgr.Add(lead); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return nil
}

// ownURL is where pods reach this machine: the address from which it reaches the cluster.
func ownURL(cfg *rest.Config, listen string) (string, error) {
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", usage("--endpoint-address %q: give it as HOST:PORT", listen)
	}
	host, err := os.Hostname()
	if u, e := url.Parse(cfg.Host); e == nil && u.Host != "" {
		to := u.Host
		if u.Port() == "" {
			to = net.JoinHostPort(u.Hostname(), "443")
		}
		if conn, e := (&net.Dialer{}).DialContext(context.Background(), "udp", to); e == nil {
			host, err = conn.LocalAddr().(*net.UDPAddr).IP.String(), nil //nolint:forcetypeassert // of a UDP connection
			_ = conn.Close()
		}
	}
	if err != nil {
		return "", fmt.Errorf("find this machine's address: %w; give --endpoint-url", err)
	}
	return "https://" + net.JoinHostPort(host, port), nil
}
