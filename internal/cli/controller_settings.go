package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/program"
)

// controllerSettings are what --config holds. Settings of Argo's controller that mean something here have its names.
type controllerSettings struct {
	// Images says what images run by themselves, for those whose registry cannot be asked.
	Images map[string]pod.Image `json:"images,omitempty"`
	// ArtifactRepository is for workflows whose namespace has no default one: a store block, with a keyFormat.
	ArtifactRepository map[string]any `json:"artifactRepository,omitempty"`
	// OwnCredentialBuckets are S3 buckets that workflows reach with the controller's own credentials where they name no Secrets,
	// besides that of ArtifactRepository.
	OwnCredentialBuckets []string `json:"ownCredentialBuckets,omitempty"`
	// HookHosts are hosts that TaskHooks may reach besides the Services of their namespace.
	HookHosts []string `json:"hookHosts,omitempty"`
	// ContainerRuntimeExecutor is of old controllers: it is accepted and changes nothing.
	ContainerRuntimeExecutor string `json:"containerRuntimeExecutor,omitempty"`

	repository program.JSON
}

// controllerSettings reads the settings; what is not known in them is an error.
func (a *app) controllerSettings(ctx context.Context, core kubernetes.Interface, o controllerFlags) (*controllerSettings, error) {
	data, from, err := a.readSettings(ctx, core, o)
	if err != nil {
		return nil, err
	}
	return parseSettings(data, from)
}

func parseSettings(data []byte, from string) (*controllerSettings, error) {
	s := &controllerSettings{}
	text, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, usage("%s: is not YAML: %w", from, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, usage("%s: %w", from, err)
	}
	if s.ArtifactRepository != nil {
		if s.repository, err = json.Marshal(s.ArtifactRepository); err != nil {
			return nil, usage("%s: artifactRepository: %w", from, err)
		}
	}
	return s, nil
}

// lends says whether workflows reach a bucket with the controller's own credentials.
func (s *controllerSettings) lends(bucket string) bool {
	s3, _ := s.ArtifactRepository["s3"].(map[string]any)
	return slices.Contains(s.OwnCredentialBuckets, bucket) || s3 != nil && s3["bucket"] == bucket
}

// deprecated names a setting of old executors that was given, for a condition of workflows.
func (s *controllerSettings) deprecated(env func(string) string) string {
	if s.ContainerRuntimeExecutor != "" {
		return "containerRuntimeExecutor: " + s.ContainerRuntimeExecutor
	}
	if v := env("ARGO_CONTAINER_RUNTIME_EXECUTOR"); v != "" {
		return "ARGO_CONTAINER_RUNTIME_EXECUTOR=" + v
	}
	return ""
}

// configMapSettings reads a ConfigMap's key config; one that need not be there may be missing.
func configMapSettings(ctx context.Context, core kubernetes.Interface, namespace, name string, must bool) ([]byte, string, error) {
	from := fmt.Sprintf("ConfigMap %s/%s", namespace, name)
	o, err := core.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !must {
		return nil, from, nil
	}
	if err != nil {
		return nil, from, fmt.Errorf("read the settings: %w", err)
	}
	return []byte(o.Data["config"]), from, nil
}

// secretValue reads a value of a Secret. An error that may pass is artifact.ErrNotNow.
func secretValue(ctx context.Context, core kubernetes.Interface, namespace, name, key string) (string, error) {
	o, err := core.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			err = fmt.Errorf("%w: %w", artifact.ErrNotNow, err)
		}
		return "", err
	}
	value, ok := o.Data[key]
	if !ok {
		return "", fmt.Errorf("the Secret %s has no key %q", name, key)
	}
	return string(value), nil
}

// accountTokens makes tokens of the controller's own service account, by which hook plugins know it. It makes none that
// the API server takes: a plugin could do with it what the controller may.
type accountTokens struct {
	core               kubernetes.Interface
	namespace, account string
	now                func() time.Time

	mu   sync.Mutex
	kept map[string]accountToken
}

type accountToken struct {
	token   string
	expires time.Time
}

// Token implements hook.Tokens.
func (t *accountTokens) Token(ctx context.Context, audience string) (string, error) {
	const life, rest = int64(3600), 5 * time.Minute
	t.mu.Lock()
	defer t.mu.Unlock()
	if k, ok := t.kept[audience]; ok && t.now().Add(rest).Before(k.expires) {
		return k.token, nil
	}
	seconds := life
	r, err := t.core.CoreV1().ServiceAccounts(t.namespace).CreateToken(ctx, t.account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: &seconds},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if err := t.harmless(ctx, audience, r.Status.Token); err != nil {
		return "", err
	}
	if t.kept == nil {
		t.kept = map[string]accountToken{}
	}
	t.kept[audience] = accountToken{r.Status.Token, r.Status.ExpirationTimestamp.Time}
	return r.Status.Token, nil
}

// harmless asks the API server whether it would take a token itself: only it knows all its own audiences.
func (t *accountTokens) harmless(ctx context.Context, audience, token string) error {
	r, err := t.core.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("find out whether the audience %s is the API server's own: %w", audience, err)
	case r.Status.Authenticated:
		return fmt.Errorf("the audience %s is the API server's own: a plugin gets no such token", audience)
	}
	return nil
}
