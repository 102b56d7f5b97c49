package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// blobRef stands for a value that is kept in pieces. The zero value is none.
type blobRef struct {
	// SHA256 of the packed value, in hex; Bytes its length.
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
	Pieces int    `json:"pieces"`
}

// pieceKey is where a piece's bytes are.
const pieceKey = "piece"

func (r blobRef) name(uid string, i int) string {
	return fmt.Sprintf("%s-b%.32s-%d", strings.ToLower(uid), r.SHA256, i)
}

// value packs a text, and stores it in pieces where it is large. A piece is named by the whole value's content: making it
// again does no harm, and one that nothing refers to after a crash goes with the run.
func (j *journal) value(ctx context.Context, events int, text []byte) ([]byte, error) {
	packed, err := j.store.packer.pack(inline, events, j.store.writer, text)
	if err != nil || len(packed) <= inlineBytes {
		return packed, err
	}
	sum := sha256.Sum256(packed)
	ref := blobRef{SHA256: hex.EncodeToString(sum[:]), Bytes: len(packed), Pieces: (len(packed) + pieceBytes - 1) / pieceBytes}
	for i := range ref.Pieces {
		piece := packed[i*pieceBytes : min((i+1)*pieceBytes, len(packed))]
		o := j.object(ref.name(j.uid, i), v1alpha1.JournalBytes, i, map[string][]byte{pieceKey: piece})
		if _, err := j.store.client.create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("store piece %d of %d of a value of %d bytes: %w", i+1, ref.Pieces, len(packed), err)
		}
	}
	link, err := json.Marshal(ref)
	if err != nil {
		return nil, err
	}
	return j.store.packer.pack(referred, events, j.store.writer, link)
}

// refOf is the blob that a value refers to; the zero value where it stands for itself.
func refOf(value []byte) (blobRef, error) {
	var ref blobRef
	h, err := readHeader(value)
	if err != nil || h.form == inline {
		return ref, err
	}
	text, err := unpack(h.rest)
	if err != nil {
		return ref, err
	}
	return ref, json.Unmarshal(text, &ref)
}

// open gives the text of a value.
func (j *journal) open(ctx context.Context, value []byte) ([]byte, error) {
	ref, err := refOf(value)
	if err != nil {
		return nil, err
	}
	if ref != (blobRef{}) {
		if value, err = j.join(ctx, ref); err != nil {
			return nil, err
		}
	}
	h, err := readHeader(value)
	if err != nil {
		return nil, err
	}
	return unpack(h.rest)
}

// join reads a blob's pieces.
func (j *journal) join(ctx context.Context, ref blobRef) ([]byte, error) {
	var packed []byte
	for i := range ref.Pieces {
		o, err := j.store.client.get(ctx, j.namespace, ref.name(j.uid, i))
		if err != nil {
			return nil, fmt.Errorf("piece %d of %d: %w", i+1, ref.Pieces, err)
		}
		packed = append(packed, o.Data[pieceKey]...)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != ref.SHA256 {
		return nil, errors.New("its pieces were changed")
	}
	return packed, nil
}

// drop removes a blob that nothing refers to any more.
func (j *journal) drop(ctx context.Context, ref blobRef) error {
	var faults []error
	for i := range ref.Pieces {
		if err := j.store.client.delete(ctx, j.namespace, ref.name(j.uid, i)); err != nil && !apierrors.IsNotFound(err) {
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
