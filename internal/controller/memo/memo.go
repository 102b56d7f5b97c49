// Package memo keeps the cache of a cluster in ConfigMaps: what memoize remembers in those that templates name, in the form
// that Argo's own controller reads and writes; the cache of compiled pipelines, and of hooks, in one of ours for each
// pipeline or namespace.
package memo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/hook/cache"
)

// Labels of the ConfigMaps: Argo's for memoize, ours for all else. No other ConfigMap is written or believed.
const (
	LabelArgo = "workflows.argoproj.io/configmap-type"
	ArgoCache = "Cache"
	LabelOurs = "sluice.dev/cache"
)

// annotationScope says for people what one of our ConfigMaps is about.
const annotationScope = "sluice.dev/cache-scope"

// maxData is how many bytes of values a ConfigMap takes.
const maxData = 1 << 20

// Entries implements [cache.Entries].
type Entries struct {
	client client.Client
	log    *slog.Logger

	// locks let this process make one change to a ConfigMap at a time; some share one.
	locks [64]sync.Mutex
}

// New works on a cluster. The client must not read from a cache of its own. log is told what could not be kept.
func New(c client.Client, log *slog.Logger) *Entries {
	return &Entries{client: c, log: log}
}

// place is where a scope's entries are.
type place struct {
	scope        string
	object       client.ObjectKey
	label, value string
	form         form
}

func placeOf(scope string) (place, error) {
	kind, parts, err := cache.ParseScope(scope)
	switch {
	case err != nil:
		return place{}, err
	case len(parts) == 0 || parts[0] == "":
		return place{}, fmt.Errorf("cache: scope %s names no namespace", scope)
	case kind != cache.KeyScope:
		sum := sha256.Sum256([]byte(scope))
		name := "sluice-cache-" + hex.EncodeToString(sum[:8])
		return place{scope: scope, object: client.ObjectKey{Namespace: parts[0], Name: name}, label: LabelOurs, value: "true", form: ours{}}, nil
	case len(parts) != 2 || parts[1] == "":
		return place{}, &cache.UnusableError{Message: "memoize: cache.configMap.name is empty"}
	}
	return place{scope: scope, object: client.ObjectKey{Namespace: parts[0], Name: parts[1]}, label: LabelArgo, value: ArgoCache, form: argos{}}, nil
}

// unusable says what is wrong with a ConfigMap: of one that an author has named, to the author.
func (p place) unusable(format string, args ...any) error {
	if p.label == LabelArgo {
		return &cache.UnusableError{Message: fmt.Sprintf(format, args...)}
	}
	return fmt.Errorf("cache: "+format, args...)
}

// read gives the ConfigMap, nil where there is none.
func (e *Entries) read(ctx context.Context, p place) (*corev1.ConfigMap, error) {
	o := &corev1.ConfigMap{}
	err := e.client.Get(ctx, p.object, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no ConfigMap is no error
	case err != nil:
		return nil, fmt.Errorf("cache: read ConfigMap %s: %w", p.object.Name, err)
	case o.Labels[p.label] != p.value:
		return nil, p.unusable("ConfigMap %s does not have the label %s: %s, so it is not used as a cache", p.object.Name, p.label, p.value)
	}
	return o, nil
}

// Get implements [cache.Entries].
func (e *Entries) Get(ctx context.Context, scope, key string) (*cache.Entry, error) {
	p, err := placeOf(scope)
	if err != nil {
		return nil, err
	}
	o, err := e.read(ctx, p)
	if err != nil || o == nil || o.Data[key] == "" {
		return nil, err
	}
	entry, err := p.form.decode(o.Data[key])
	if errors.Is(err, errElsewhere) {
		return nil, nil //nolint:nilnil // it cannot be used: no entry
	}
	if err != nil {
		return nil, p.unusable("malformed cache entry %s of ConfigMap %s: %v", key, p.object.Name, err)
	}
	entry.Scope, entry.Key = scope, key
	return entry, nil
}

// Put implements [cache.Entries]. What can never be kept, because it is too large or the rights are missing, is left out, and
// the log says so: the task has succeeded all the same.
func (e *Entries) Put(ctx context.Context, entry cache.Entry) error {
	p, err := placeOf(entry.Scope)
	if err != nil {
		return err
	}
	text, err := p.form.encode(entry)
	if err == nil && len(text) > maxData {
		err = fmt.Errorf("its %d bytes are more than a ConfigMap takes", len(text))
	}
	if err == nil {
		err = e.change(ctx, p, true, func(o *corev1.ConfigMap) bool {
			o.Data[entry.Key] = text
			shrink(o, p.form, entry.Key)
			return true
		})
		if !lasting(err) {
			return err
		}
	}
	e.log.Warn("a result could not be remembered", "scope", entry.Scope, "key", entry.Key, "task", entry.Task, "error", err)
	return nil
}

// lasting says whether a change would fail the next time, too.
func lasting(err error) bool {
	return errors.As(err, new(*cache.UnusableError)) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// Hit implements [cache.Entries].
func (e *Entries) Hit(ctx context.Context, scope, key string, at time.Time) error {
	p, err := placeOf(scope)
	if err != nil {
		return err
	}
	err = e.change(ctx, p, false, func(o *corev1.ConfigMap) bool {
		text, err := p.form.hit(o.Data[key], at)
		if err != nil { // it is not there any more
			return false
		}
		o.Data[key] = text
		return true
	})
	if lasting(err) { // one that may only be read
		return nil
	}
	return err
}

// Delete implements [cache.Entries].
func (e *Entries) Delete(ctx context.Context, scope, key string) error {
	p, err := placeOf(scope)
	if err != nil {
		return err
	}
	return e.change(ctx, p, false, func(o *corev1.ConfigMap) bool {
		_, ok := o.Data[key]
		delete(o.Data, key)
		return ok
	})
}

// change edits a scope's ConfigMap, which is made where it is needed and missing. edit says whether something has changed; it
// is called again where somebody else was faster.
func (e *Entries) change(ctx context.Context, p place, create bool, edit func(*corev1.ConfigMap) bool) error {
	defer e.lock(p.object)()
	return retry.OnError(retry.DefaultBackoff, func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || create && apierrors.IsNotFound(err)
	}, func() error {
		o, err := e.read(ctx, p)
		if err != nil {
			return err
		}
		if o == nil {
			if !create {
				return nil
			}
			o = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: p.object.Namespace, Name: p.object.Name, Labels: map[string]string{p.label: p.value},
			}}
			if p.label == LabelOurs {
				o.Annotations = map[string]string{annotationScope: p.scope}
			}
		}
		if o.Data == nil {
			o.Data = map[string]string{}
		}
		switch {
		case !edit(o):
			return nil
		case o.ResourceVersion == "":
			return e.client.Create(ctx, o)
		}
		return e.client.Update(ctx, o)
	})
}

func (e *Entries) lock(key client.ObjectKey) (unlock func()) {
	sum := sha256.Sum256([]byte(key.String()))
	l := &e.locks[int(sum[0])%len(e.locks)]
	l.Lock()
	return l.Unlock
}
