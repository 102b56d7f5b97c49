package kube

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// journal is one run's.
type journal struct {
	store                    *Store
	uid, namespace, workflow string
	owners                   json.RawMessage // ownerReferences

	mu sync.Mutex
	// tail is the last chunk; nil where it must be read first.
	tail *tail
	// unsure is the append whose outcome was never learnt.
	unsure *attempt
	// snapshot is the blob that holds the last snapshot; known says whether that has been looked up.
	snapshot blobRef
	known    bool
}

// tail is what must be known of the last chunk to append to it.
type tail struct {
	name, version string
	from, events  int // events in this chunk, the first of which has position from
	bytes         int
	closed        bool
}

func (t *tail) next() int { return t.from + t.events }

type attempt struct {
	from  int
	value []byte
}

// tries is how often an append is made anew because the chunk changed without an event: somebody set a label on it.
const tries = 5

// Append implements runner.Journal.
func (s *Store) Append(ctx context.Context, uid string, from int, events []engine.Event) error {
	if len(events) == 0 {
		return nil
	}
	j, err := s.known(uid)
	if err == nil {
		err = j.append(ctx, from, events)
	}
	if err != nil {
		return fmt.Errorf("append to the journal of run %s: %w", uid, err)
	}
	return nil
}

func (j *journal) append(ctx context.Context, from int, events []engine.Event) error {
	text, err := encode(events)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	value, err := j.value(ctx, len(events), text)
	if err != nil {
		return err
	}
	mine := attempt{from, value}
	if err := j.load(ctx); err != nil {
		return err
	}
	if j.tail.next() != from { // as far as is remembered here
		j.tail = nil
		if err := j.load(ctx); err != nil {
			return err
		}
	}
	if j.tail.next() != from {
		if j.unsure != nil && j.unsure.from == from && bytes.Equal(j.unsure.value, value) {
			return j.settle(ctx, mine)
		}
		return conflict(j.tail.next(), from)
	}
	for range tries {
		if err = j.write(ctx, mine, len(events)); err == nil {
			j.unsure = nil
			return nil
		}
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: %w", store.ErrNotFound, err)
		}
		if refused(err) {
			return err
		}
		j.tail, j.unsure = nil, &mine
		if e := j.load(ctx); e != nil {
			return errors.Join(err, e)
		}
		if j.tail.next() != from {
			return j.settle(ctx, mine)
		}
		if !taken(err) {
			return err
		}
	}
	return err
}

// settle finds out whose the events at a position are that is taken.
func (j *journal) settle(ctx context.Context, mine attempt) error {
	o, err := j.chunkAt(ctx, mine.from)
	if err != nil {
		return err
	}
	j.unsure = nil
	if o != nil && bytes.Equal(o.Data[key(mine.from)], mine.value) {
		return nil
	}
	return conflict(j.tail.next(), mine.from)
}

func conflict(has, not int) error {
	return fmt.Errorf("%w: it has %d events, not %d", store.ErrConflict, has, not)
}

// write adds a value to the last chunk, or makes the next one, and closes it when it is full.
func (j *journal) write(ctx context.Context, a attempt, events int) error {
	data := map[string][]byte{key(a.from): a.value}
	next := *j.tail
	var err error
	if j.tail.closed {
		next = tail{name: chunkName(j.uid, a.from), from: a.from, events: events, bytes: size(data)}
		next.closed = next.bytes >= chunkBytes
		o := j.object(next.name, v1alpha1.JournalEvents, a.from, data)
		o.Spec.Closed = next.closed
		next.version, err = j.store.client.create(ctx, o)
	} else {
		next.events, next.bytes = next.events+events, next.bytes+size(data)
		next.closed = next.bytes >= chunkBytes
		change := patch{Metadata: &patchMeta{j.tail.version}, Data: data}
		if next.closed {
			change.Spec = &patchSpec{Closed: true}
		}
		next.version, err = j.store.client.patch(ctx, j.namespace, next.name, change)
	}
	if err == nil {
		j.tail = &next
	}
	return err
}

// load reads the last chunk, where it is not known.
func (j *journal) load(ctx context.Context) error {
	if j.tail != nil {
		return nil
	}
	names, err := j.chunks(ctx)
	if err != nil {
		return err
	}
	o, err := j.store.client.get(ctx, j.namespace, names[len(names)-1])
	if err != nil {
		return err
	}
	return j.setTail(o)
}

func (j *journal) setTail(o *v1alpha1.RunJournal) error {
	t := &tail{
		name: o.Metadata.Name, version: o.Metadata.ResourceVersion, from: int(o.Spec.From), bytes: size(o.Data), closed: o.Spec.Closed,
	}
	batches, err := batchesOf(o)
	if err != nil {
		return err
	}
	for _, b := range batches {
		t.events += b.events
	}
	j.tail = t
	return nil
}

// object is a new RunJournal of the run.
func (j *journal) object(name string, part v1alpha1.RunJournalPart, from int, data map[string][]byte) *v1alpha1.RunJournal {
	return &v1alpha1.RunJournal{
		TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindRunJournal},
		Metadata: v1alpha1.ObjectMeta{
			Name: name, Namespace: j.namespace, Labels: map[string]string{LabelRun: j.uid, labelPart: string(part)}, OwnerReferences: j.owners,
		},
		Spec: v1alpha1.RunJournalSpec{Run: j.uid, Workflow: j.workflow, Part: part, From: int64(from)},
		Data: data,
	}
}

// size is the length of data as JSON.
func size(data map[string][]byte) int {
	n := 0
	for k, v := range data {
		n += len(k) + base64.StdEncoding.EncodedLen(len(v)) + len(`"":"",`)
	}
	return n
}
