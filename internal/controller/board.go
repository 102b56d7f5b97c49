package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/controller/status"
)

// errGone says that an object is not there any more, or another of its name is.
var errGone = errors.New("the Workflow object is gone")

// board is one Workflow object as this process sees it: what it wrote last and the version of that. Each write says on
// which version it builds, so that nobody's edit is overlooked. It is used by one goroutine at a time.
type board struct {
	client  client.Client
	key     client.ObjectKey
	uid     types.UID
	version string
	page    *status.Page
	// edited is told of an object that somebody else has changed.
	edited func(ctx context.Context, w workflow)
}

// newBoard starts from an object as it was read in full.
func newBoard(c client.Client, w workflow, limit int) (*board, error) {
	there, packed, err := w.content()
	if err != nil {
		return nil, err
	}
	return &board{
		client: c, key: client.ObjectKeyFromObject(w), uid: w.GetUID(), version: w.GetResourceVersion(),
		page:   status.NewPage(there, packed, w.baseSize(), limit),
		edited: func(context.Context, workflow) {},
	}, nil
}

// newer says whether a version of the object is later than what this process knows of.
func (b *board) newer(version string) bool {
	order, err := resourceversion.CompareResourceVersion(version, b.version)
	return err != nil && version != b.version || err == nil && order > 0
}

// refresh reads the object, takes note of what others did to it, and builds on that from now on.
func (b *board) refresh(ctx context.Context) error {
	w, err := fetch(ctx, b.client, b.key)
	if apierrors.IsNotFound(err) || err == nil && w.GetUID() != b.uid {
		return errGone
	}
	if err != nil {
		return err
	}
	there, packed, err := w.content()
	if err != nil {
		return err
	}
	b.edited(ctx, w)
	b.page.Rebase(there, packed)
	b.version = w.GetResourceVersion()
	return nil
}

// show writes a content, if it is not there already. It is errGone where there is no such object any more; other errors
// may be gone at the next try.
func (b *board) show(ctx context.Context, c status.Content) error {
	const conflicts = 5
	for try := 0; ; try++ {
		patch, written, err := b.page.Next(c)
		if err != nil || patch == nil {
			return err
		}
		meta, _ := patch["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		meta["resourceVersion"] = b.version
		patch["metadata"] = meta
		data, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("write status: %w", err)
		}
		o := newObject(kind("Workflow"))
		o.SetNamespace(b.key.Namespace)
		o.SetName(b.key.Name)
		err = b.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, data))
		switch {
		case err == nil:
			written()
			b.version = o.GetResourceVersion()
			return nil
		case apierrors.IsNotFound(err):
			return errGone
		case apierrors.IsConflict(err) && try < conflicts:
			if err := b.refresh(ctx); err != nil {
				return err
			}
		case tooLarge(err) && b.page.Shrink():
		default:
			return fmt.Errorf("write status: %w", err)
		}
	}
}

// tooLarge recognises what API servers say of objects that they cannot keep.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "larger than max")
}

// insist shows a content however long it takes; only the end of ctx or of the object ends it.
func (b *board) insist(ctx context.Context, c status.Content, failed func(error)) error {
	const longest = 30 * time.Second
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := b.show(ctx, c)
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		failed(err)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// fetch reads a Workflow object in full.
func fetch(ctx context.Context, c client.Reader, key client.ObjectKey) (workflow, error) {
	o := newObject(kind("Workflow"))
	err := c.Get(ctx, key, o)
	return workflow{o}, err
}
