package kube

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes events; the runner's Sink is one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Results keeps results that are too long for a termination message.
type Results interface {
	Get(ctx context.Context, run engine.Run, path string) ([]byte, error)
}

// Config is what the backend works with. Client is required, and Pod.ExecutorImage for tasks that are pods.
type Config struct {
	// Client is for pods and ConfigMaps, see [ClientConfig].
	Client kubernetes.Interface
	// Objects gives resource templates their clients; nil ends them as an Error.
	Objects Objects
	// Pod is how pods are made, Images who says what an image runs by itself; nil knows only Pod.ImageTable.
	Pod    pod.Config
	Images pod.Images
	// Artifacts are options for the artifact stores of a run; nil is the zero value.
	Artifacts func(run engine.Run) artifact.Options
	// Results has the results that the task endpoint took; nil has none.
	Results Results
	// Decode reads the artifact JSON that a metadataFrom file holds; nil reads [program.Artifact].
	Decode func(text string) (program.Artifact, error)
	// Namespaces are those whose pods are watched; none is all.
	Namespaces []string
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log is for what broke around tasks; nil drops it.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.Client == nil {
		return c, errors.New("kube backend: a client is needed")
	}
	if c.Artifacts == nil {
		c.Artifacts = func(engine.Run) artifact.Options { return artifact.Options{} }
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []string{""}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// ClientConfig is a cluster's configuration for a controller's own client: it speaks protobuf, which only Kubernetes' own
// kinds have, and does not hold itself back, since the API server's own priority and fairness does that better.
func ClientConfig(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.QPS, c.Burst = -1, 0
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = c.ContentType + ",application/json"
	return c
}
