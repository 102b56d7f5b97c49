// Package registry finds out what images run by themselves, where they lie: in their registries, with the pull secrets
// that the pod would have.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/client-go/kubernetes"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
)

const (
	lookTime    = 15 * time.Second
	tagLife     = 10 * time.Minute
	failureLife = time.Minute
	maxEntries  = 4096
)

// Config is how images are looked up.
type Config struct {
	// Client reads pull secrets and service accounts; nil asks registries without any.
	Client kubernetes.Interface
	// Transport speaks to registries; nil is one that stays away from link-local addresses, where clouds keep secrets.
	Transport http.RoundTripper
	// Architecture is the one to choose of several (default amd64); an image that has not got it shows another of its own.
	Architecture string
	// Now is the clock; nil is the real one.
	Now func() time.Time
}

// Images looks images up and remembers them: what a digest has for ever, what a tag points to for ten minutes, and that
// it could not be found out for one; registries that cannot be reached it leaves alone for a while. It answers from memory only those who have the same secrets as who asked first.
type Images struct {
	cfg   Config
	hosts hosts

	mu       sync.Mutex
	refs     map[string]*known
	byDigest map[v1.Hash]pod.Image
}

// known is what is known of a reference. Who looks first finds it out, the others wait for their turn.
type known struct {
	turn    chan struct{}
	image   pod.Image
	failure error
	until   time.Time // zero until there is something
}

// New makes one.
func New(cfg Config) *Images {
	if cfg.Transport == nil {
		cfg.Transport = publicTransport()
	}
	cfg.Transport = limited{cfg.Transport}
	if cfg.Architecture == "" {
		cfg.Architecture = "amd64"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Images{cfg: cfg, refs: map[string]*known{}, byDigest: map[v1.Hash]pod.Image{}}
}

var _ pod.Images = (*Images)(nil)

// Image says what an image runs by itself. An error names what the registry said; it is no image's fault where ctx ended.
func (i *Images) Image(ctx context.Context, namespace string, pullSecrets []string, serviceAccount, ref string) (pod.Image, error) {
	k := i.entry(strings.Join(append([]string{namespace, serviceAccount, ref}, pullSecrets...), "\x00"))
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return pod.Image{}, context.Cause(ctx)
	}
	if i.cfg.Now().Before(k.until) {
		return k.image, k.failure
	}
	looking, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	image, err := i.look(looking, namespace, pullSecrets, serviceAccount, ref)
	if ctx.Err() != nil {
		return pod.Image{}, context.Cause(ctx)
	}
	life := tagLife
	if err != nil {
		life = failureLife
	}
	k.image, k.failure, k.until = image, err, i.cfg.Now().Add(life)
	return k.image, k.failure
}

// entry gives what is known under a key. Where there is too much of it everything is forgotten that nobody waits for.
func (i *Images) entry(key string) *known {
	i.mu.Lock()
	defer i.mu.Unlock()
	if k := i.refs[key]; k != nil {
		return k
	}
	if len(i.refs) >= maxEntries {
		clear(i.refs)
	}
	k := &known{turn: make(chan struct{}, 1)}
	i.refs[key] = k
	return k
}

// look asks the registry, with each of the credentials that there are for it, then without any.
func (i *Images) look(ctx context.Context, namespace string, pullSecrets []string, serviceAccount, ref string) (pod.Image, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return pod.Image{}, err
	}
	host := parsed.Context().RegistryStr()
	if err := i.hosts.check(host, i.cfg.Now()); err != nil {
		return pod.Image{}, err
	}
	auths, err := i.credentials(ctx, namespace, pullSecrets, serviceAccount, parsed.Context())
	if err != nil {
		return pod.Image{}, err
	}
	for _, auth := range append(auths, authn.Anonymous) {
		image, tryErr := i.ask(ctx, parsed, auth)
		i.hosts.note(host, i.cfg.Now(), tryErr)
		if tryErr == nil {
			return image, nil
		}
		err = errors.Join(err, tryErr)
		if !refused(tryErr) {
			break // other credentials would not help
		}
	}
	return pod.Image{}, err
}

// refused says whether an error is about who asks. Some registries hide what one may not see.
func refused(err error) bool {
	said, ok := errors.AsType[*transport.Error](err)
	return ok && (said.StatusCode == http.StatusUnauthorized || said.StatusCode == http.StatusForbidden || said.StatusCode == http.StatusNotFound)
}

func (i *Images) ask(ctx context.Context, ref name.Reference, auth authn.Authenticator) (pod.Image, error) {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuth(auth), remote.WithTransport(i.cfg.Transport), remote.WithUserAgent("sluice")}
	found, err := remote.Get(ref, options...)
	if err != nil {
		return pod.Image{}, err
	}
	i.mu.Lock()
	image, there := i.byDigest[found.Digest]
	i.mu.Unlock()
	if there {
		return image, nil
	}
	one, err := i.choose(found, ref, options)
	if err != nil {
		return pod.Image{}, err
	}
	file, err := one.ConfigFile()
	if err != nil {
		return pod.Image{}, err
	}
	c := file.Config
	image = pod.Image{Entrypoint: c.Entrypoint, Cmd: c.Cmd, User: c.User, WorkingDir: c.WorkingDir}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.byDigest) >= maxEntries {
		clear(i.byDigest)
	}
	i.byDigest[found.Digest] = image
	return image, nil
}

// choose gives an image, of an index the one for the architecture.
func (i *Images) choose(found *remote.Descriptor, ref name.Reference, options []remote.Option) (v1.Image, error) {
	if !found.MediaType.IsIndex() {
		return found.Image()
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, err
	}
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var best *v1.Hash
	for _, m := range list.Manifests {
		if !m.MediaType.IsImage() || m.Platform != nil && m.Platform.OS != "linux" {
			continue // attestations are of the system "unknown"
		}
		right := m.Platform == nil || m.Platform.Architecture == i.cfg.Architecture
		if best == nil || right {
			best = &m.Digest
		}
		if right {
			break
		}
	}
	if best == nil {
		return nil, fmt.Errorf("there is no image for Linux in %s", ref)
	}
	return remote.Image(ref.Context().Digest(best.String()), options...)
}
