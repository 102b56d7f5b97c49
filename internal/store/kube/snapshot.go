package kube

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/store"
)

// stateKey is where a snapshot's value is.
const stateKey = "state"

func stateName(uid string) string { return strings.ToLower(uid) + "-state" }

// SaveState implements runner.Snapshots. The chunks that a snapshot makes needless stay: a later version that cannot read the
// snapshot replays them.
func (s *Store) SaveState(ctx context.Context, uid string, n int, state []byte) error {
	j, err := s.known(uid)
	if err == nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		err = j.saveState(ctx, n, state)
	}
	if err != nil {
		return fmt.Errorf("save the state of run %s: %w", uid, err)
	}
	return nil
}

func (j *journal) saveState(ctx context.Context, n int, state []byte) error {
	if !j.known {
		if _, _, err := j.findState(ctx); err != nil {
			return err
		}
	}
	value, err := j.value(ctx, 0, state)
	if err != nil {
		return err
	}
	now, err := refOf(value)
	if err != nil {
		return err
	}
	data := map[string][]byte{stateKey: value}
	from := int64(n)
	change := patch{Spec: &patchSpec{From: &from}, Data: data}
	_, err = j.store.client.patch(ctx, j.namespace, stateName(j.uid), change)
	if apierrors.IsNotFound(err) {
		_, err = j.store.client.create(ctx, j.object(stateName(j.uid), v1alpha1.JournalState, n, data))
		if apierrors.IsAlreadyExists(err) {
			_, err = j.store.client.patch(ctx, j.namespace, stateName(j.uid), change)
		}
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err)
	}
	if err != nil {
		j.known = false // either may be there now
		return err
	}
	before := j.snapshot
	j.snapshot, j.known = now, true
	if before != now {
		return j.drop(ctx, before)
	}
	return nil
}

// LoadState implements runner.Snapshots.
func (s *Store) LoadState(ctx context.Context, uid string) (n int, state []byte, err error) {
	j, err := s.known(uid)
	if err != nil {
		return 0, nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	n, state, err = j.loadState(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("load the state of run %s: %w", uid, err)
	}
	return n, state, nil
}

func (j *journal) loadState(ctx context.Context) (int, []byte, error) {
	n, value, err := j.findState(ctx)
	if err != nil || value == nil {
		return 0, nil, err
	}
	state, err := j.open(ctx, value)
	return n, state, err
}

// findState gives the value of the snapshot, nil where there is none, and remembers which blob it refers to.
func (j *journal) findState(ctx context.Context) (int, []byte, error) {
	o, err := j.store.client.get(ctx, j.namespace, stateName(j.uid))
	if apierrors.IsNotFound(err) {
		j.snapshot, j.known = blobRef{}, true
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	value := o.Data[stateKey]
	ref, err := refOf(value)
	if err != nil {
		return 0, nil, err
	}
	j.snapshot, j.known = ref, true
	return int(o.Spec.From), value, nil
}
