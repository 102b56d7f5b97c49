package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// Events implements runner.Journal.
func (s *Store) Events(ctx context.Context, uid string) ([]engine.Event, error) {
	return s.EventsFrom(ctx, uid, 0)
}

// EventsFrom implements runner.Snapshots.
func (s *Store) EventsFrom(ctx context.Context, uid string, from int) ([]engine.Event, error) {
	j, err := s.known(uid)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	events, err := j.eventsFrom(ctx, from)
	if err != nil {
		return nil, fmt.Errorf("read the journal of run %s: %w", uid, err)
	}
	return events, nil
}

func (j *journal) eventsFrom(ctx context.Context, from int) ([]engine.Event, error) {
	names, err := j.chunks(ctx)
	if err != nil {
		return nil, err
	}
	var events []engine.Event
	position := -1
	for _, name := range names[at(names, from):] {
		o, err := j.store.client.get(ctx, j.namespace, name)
		if err != nil {
			return nil, err
		}
		if position < 0 {
			position = int(o.Spec.From)
		}
		if int(o.Spec.From) != position {
			return nil, fmt.Errorf("events %d to %d are missing: someone deleted a RunJournal", position, o.Spec.From-1)
		}
		batches, err := batchesOf(o)
		if err != nil {
			return nil, err
		}
		for _, b := range batches {
			if b.from != position {
				return nil, fmt.Errorf("%s has events at %d where %d is next", name, b.from, position)
			}
			position += b.events
			if position <= from {
				continue
			}
			text, err := j.open(ctx, o.Data[key(b.from)])
			if err != nil {
				return nil, fmt.Errorf("events at %d: %w", b.from, err)
			}
			var batch []engine.Event
			if err := json.Unmarshal(text, &batch); err != nil {
				return nil, fmt.Errorf("events at %d: %w", b.from, err)
			}
			if len(batch) != b.events {
				return nil, fmt.Errorf("events at %d: there are %d, not %d", b.from, len(batch), b.events)
			}
			events = append(events, batch[max(0, from-b.from):]...)
		}
		if err := j.setTail(o); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// chunks are the names of the chunks, in order.
func (j *journal) chunks(ctx context.Context) ([]string, error) {
	names, err := j.store.client.names(ctx, j.namespace, j.uid, v1alpha1.JournalEvents)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 || names[0] != chunkName(j.uid, 0) {
		return nil, fmt.Errorf("%w: the first RunJournal of %s is not there", store.ErrNotFound, j.uid)
	}
	return names, nil
}

// at is the index of the chunk that a position lies in.
func at(names []string, position int) int {
	after, _ := slices.BinarySearchFunc(names, position, func(name string, position int) int {
		from, err := strconv.Atoi(name[max(0, len(name)-digits):])
		if err == nil && from > position {
			return 1
		}
		return -1
	})
	return max(0, after-1)
}

// chunkAt reads the chunk that a position lies in; nil where it is gone.
func (j *journal) chunkAt(ctx context.Context, position int) (*v1alpha1.RunJournal, error) {
	names, err := j.chunks(ctx)
	if err != nil {
		return nil, err
	}
	o, err := j.store.client.get(ctx, j.namespace, names[at(names, position)])
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// batch is a value of a chunk: so many events from a position on.
type batch struct{ from, events int }

// batchesOf gives the batches of a chunk in order.
func batchesOf(o *v1alpha1.RunJournal) ([]batch, error) {
	var batches []batch
	for name, value := range o.Data {
		if name == submissionKey {
			continue
		}
		from, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is no position", o.Metadata.Name, name)
		}
		h, err := readHeader(value)
		if err != nil {
			return nil, fmt.Errorf("%s: events at %d: %w", o.Metadata.Name, from, err)
		}
		batches = append(batches, batch{from, h.events})
	}
	slices.SortFunc(batches, func(a, b batch) int { return a.from - b.from })
	return batches, nil
}
