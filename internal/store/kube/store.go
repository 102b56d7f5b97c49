package kube

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
)

// The labels of a RunJournal.
const (
	// LabelRun is the run's UID.
	LabelRun  = v1alpha1.Group + "/run"
	labelPart = v1alpha1.Group + "/part"
)

// Sizes in bytes.
const (
	// MaxEvent is the largest event, as JSON.
	MaxEvent = 4 << 20
	// chunkBytes is what an object's data may reach, as JSON, before it is closed. The API server writes the whole object
	// at every append, and etcd keeps each version until it is compacted (every five minutes by default): an append of
	// 100 bytes costs half of this there, and an append to 256 KiB took five times as long as one to 32 KiB when it was
	// measured. An object costs about 1 KiB besides its data.
	chunkBytes = 32 << 10
	// inlineBytes is the largest value that stands in an object with others; larger ones become blobs.
	inlineBytes = 256 << 10
	// pieceBytes is the size of a blob's pieces, of which each is an object. etcd takes 1.5 MiB, and base64 adds a third.
	pieceBytes = 512 << 10
)

// ErrTooLarge says that an event is larger than [MaxEvent]. It comes wrapped, and trying again does not help.
var ErrTooLarge error = tooLarge{}

type tooLarge struct{}

func (tooLarge) Error() string   { return "an event is too large for the journal" }
func (tooLarge) Permanent() bool { return true }

// ErrExists says that the run has a journal already.
var ErrExists = errors.New("the run has a journal already")

// Store keeps the journals of any number of runs. It is a runner.Journal and runner.Snapshots for those that [Store.Create] or
// [Store.Get] made known to it. It is safe for concurrent use, and several processes may have one each.
type Store struct {
	client client
	packer packer
	writer writer

	mu   sync.Mutex
	runs map[string]*journal
}

// New gives a store that reaches the API server by a configuration, rate limits included.
func New(config *rest.Config) (*Store, error) {
	c, err := newClient(config)
	if err != nil {
		return nil, err
	}
	s := &Store{client: c, runs: map[string]*journal{}}
	if _, err := rand.Read(s.writer[:]); err != nil {
		return nil, fmt.Errorf("make the store's ID: %w", err)
	}
	return s, nil
}

// submitted is what the first chunk holds besides events.
type submitted struct {
	Run        store.Run        `json:"run"`
	Submission store.Submission `json:"submission"`
}

// submissionKey is where. It sorts after the positions.
const submissionKey = "submission"

// Create begins the journal of a run with its submission and first events, and makes the run known. owner is the Workflow, which
// lies in run.Namespace. It is ErrExists where there is a journal, whoever wrote it: [Store.Get] gives it.
func (s *Store) Create(ctx context.Context, owner metav1.OwnerReference, run store.Run, events ...engine.Event) error {
	if err := s.create(ctx, owner, run, events); err != nil {
		return fmt.Errorf("begin the journal of run %s: %w", run.UID, err)
	}
	return nil
}

func (s *Store) create(ctx context.Context, owner metav1.OwnerReference, run store.Run, events []engine.Event) error {
	references, err := json.Marshal([]metav1.OwnerReference{owner})
	if err != nil {
		return err
	}
	j := &journal{store: s, uid: run.UID, namespace: run.Namespace, workflow: run.Name, owners: references}
	text, err := json.Marshal(submitted{run, run.Submission})
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	if data[submissionKey], err = j.value(ctx, 0, text); err != nil {
		return err
	}
	if len(events) > 0 {
		text, err := encode(events)
		if err != nil {
			return err
		}
		if data[key(0)], err = j.value(ctx, len(events), text); err != nil {
			return err
		}
	}
	o := j.object(chunkName(run.UID, 0), v1alpha1.JournalEvents, 0, data)
	next := tail{name: o.Metadata.Name, events: len(events), bytes: size(data)}
	next.closed = next.bytes >= chunkBytes
	o.Spec.Closed = next.closed
	next.version, err = s.client.create(ctx, o)
	switch {
	case apierrors.IsAlreadyExists(err):
		return ErrExists
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w (is the kind RunJournal installed, and the namespace there?)", err)
	case err != nil:
		return err
	}
	j.tail = &next
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[run.UID] = j
	return nil
}

// Get gives a run as it was submitted, and makes it known. Its status is that of its submission.
func (s *Store) Get(ctx context.Context, namespace, uid string) (store.Run, error) {
	run, err := s.get(ctx, namespace, uid)
	if err != nil {
		return store.Run{}, fmt.Errorf("read the journal of run %s: %w", uid, err)
	}
	return run, nil
}

func (s *Store) get(ctx context.Context, namespace, uid string) (store.Run, error) {
	first, err := s.client.get(ctx, namespace, chunkName(uid, 0))
	if apierrors.IsNotFound(err) {
		return store.Run{}, fmt.Errorf("%w: %s", store.ErrNotFound, uid)
	}
	if err != nil {
		return store.Run{}, err
	}
	j := &journal{store: s, uid: uid, namespace: namespace, workflow: first.Spec.Workflow, owners: first.Metadata.OwnerReferences}
	text, err := j.open(ctx, first.Data[submissionKey])
	if err != nil {
		return store.Run{}, fmt.Errorf("its submission: %w", err)
	}
	var what submitted
	if err := json.Unmarshal(text, &what); err != nil {
		return store.Run{}, fmt.Errorf("its submission: %w", err)
	}
	what.Run.Submission = what.Submission
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[uid] == nil {
		s.runs[uid] = j
	}
	return what.Run, nil
}

// Release forgets a run; what is stored stays. It is for runs that have ended or that another process goes on with.
func (s *Store) Release(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, uid)
}

func (s *Store) known(uid string) (*journal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.runs[uid]; j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("%w: %s is not known here", store.ErrNotFound, uid)
}

// digits is the length of a position in names and keys, so that they sort.
const digits = 10

func key(position int) string { return fmt.Sprintf("%0*d", digits, position) }

func chunkName(uid string, from int) string { return strings.ToLower(uid) + "-e" + key(from) }
