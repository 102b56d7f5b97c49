package kube

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
)

// callTimeout is how long one call to the API server may take.
const callTimeout = 30 * time.Second

// The waits between tries: from the first on they double, up to the longest.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 15 * time.Second
)

// pause is how long to wait before the nth try again, with a random part so that many do not come at once.
func pause(n int) time.Duration {
	d := longestPause
	if n < 8 {
		d = min(firstPause<<n, longestPause)
	}
	return d/2 + rand.N(d/2+1)
}

// waiting is an error of something that has to be waited for.
type waiting string

func (w waiting) Error() string { return string(w) }

// permanent is an error that trying again does not help.
type permanent string

func (p permanent) Error() string { return string(p) }

// passing says whether a call that failed may work when it is made again. Where it is not known whether a call was carried
// out, it may: calls are made so that a second one does no harm.
func passing(err error) bool {
	var wait waiting
	var network net.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &wait), errors.As(err, &network), errors.Is(err, context.DeadlineExceeded),
		utilnet.IsConnectionReset(err), utilnet.IsConnectionRefused(err), utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return true
	case apierrors.IsForbidden(err):
		// Of all that is forbidden only a quota may have room again.
		return strings.Contains(err.Error(), "exceeded quota")
	case apierrors.IsInternalError(err):
		// What a server-side apply cannot read is the author's mistake, whatever the server calls it.
		return !strings.Contains(err.Error(), "failed to create typed patch object")
	}
	return apierrors.IsConflict(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsUnexpectedServerError(err)
}

// insist does something until it works or the backend is closed. That it cannot work is logged.
func (b *Backend) insist(what, about string, f func(ctx context.Context) error) {
	if err := b.persist(f); err != nil && b.ctx.Err() == nil {
		b.cfg.Log.Warn("something around a task could not be done", "what", what, "about", about, "error", err)
	}
}

// persist does something until it works, cannot work or the backend is closed.
func (b *Backend) persist(f func(ctx context.Context) error) error {
	for n := 0; ; n++ {
		ctx, cancel := context.WithTimeout(b.ctx, callTimeout)
		err := f(ctx)
		cancel()
		if !passing(err) || b.ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(pause(n))
		select {
		case <-timer.C:
		case <-b.ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// remove deletes a pod and lets its containers end: within the pod's own grace period, or at once. That it is gone, or
// another, is no error.
func (b *Backend) remove(ctx context.Context, ref reference, force bool) error {
	o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &ref.uid}}
	if force {
		second := int64(1) // 0 would take the pod away before its kubelet has ended it
		o.GracePeriodSeconds = &second
	}
	return gone(b.cfg.Client.CoreV1().Pods(ref.namespace).Delete(ctx, ref.name, o))
}

// erase takes away a pod that has nothing more to tell, and what belongs to it.
func (b *Backend) erase(ctx context.Context, ref reference) error {
	if err := b.release(ctx, ref); err != nil {
		return err
	}
	now := int64(0)
	return gone(b.cfg.Client.CoreV1().Pods(ref.namespace).Delete(ctx, ref.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &ref.uid}, GracePeriodSeconds: &now,
	}))
}

// release lets go of a pod whose result is recorded: what keeps it from being deleted is taken away, and Argo's label says
// that it is done with. Doing it again does no harm.
func (b *Backend) release(ctx context.Context, ref reference) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":                                 ref.uid, // another pod of the name is left alone
		"labels":                              map[string]string{pod.CompletedLabel: "true"},
		"$deleteFromPrimitiveList/finalizers": []string{pod.Finalizer},
	}})
	if err != nil {
		return err
	}
	_, err = b.cfg.Client.CoreV1().Pods(ref.namespace).Patch(ctx, ref.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		return nil // another pod has the name by now, and the ConfigMap is that one's
	}
	if err := gone(err); err != nil || !ref.configured {
		return err
	}
	return gone(b.cfg.Client.CoreV1().ConfigMaps(ref.namespace).Delete(ctx, ref.name, metav1.DeleteOptions{}))
}

// gone makes no error of one that says that an object is not there, or that another has its name.
func gone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
