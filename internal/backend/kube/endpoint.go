package kube

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-ml/sluice/internal/backend/kube/endpoint"
)

var (
	_ endpoint.Attempts = (*Backend)(nil)

	// errUnknownPod is of pods whose run is not taken up yet, too: they ask again.
	errUnknownPod = errors.New("this controller knows no attempt of this pod")
)

// Attempt says which attempt a pod works for: only of the pod that this backend has made or adopted for it, whatever others
// say of themselves.
func (b *Backend) Attempt(_ context.Context, namespace, name, uid string) (endpoint.Attempt, error) {
	b.mu.Lock()
	a := b.byPod[types.UID(uid)]
	b.mu.Unlock()
	if a == nil {
		return endpoint.Attempt{}, errUnknownPod
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.pod.uid != types.UID(uid) || a.pod.namespace != namespace || a.pod.name != name:
		return endpoint.Attempt{}, errUnknownPod
	case a.ending:
		return endpoint.Attempt{}, endpoint.ErrOver
	}
	return endpoint.Attempt{Run: a.run, Cmd: a.cmd, Artifacts: b.cfg.Artifacts(a.run)}, nil
}
