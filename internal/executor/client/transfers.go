package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// Fetch brings an input artifact to a path, unpacked, in place of what is there. A transfer that breaks off begins anew.
func (c *Client) Fetch(ctx context.Context, t spec.Transfer, local string) error {
	s := &artifact{client: c, ask: spec.Ask{Direction: spec.In, Name: t.Name, Index: t.Index}}
	form := transfer.Form{Archive: t.Archive, SubPath: t.SubPath}
	if err := c.again(ctx, func() error { return transfer.Fetch(ctx, s, form, local, transfer.Limits{}) }); err != nil {
		return fmt.Errorf("fetch input artifact %s: %w", t.Name, err)
	}
	return nil
}

// Save stores an output artifact, packed as t says. uri is where the component wants it; empty is where the endpoint knows.
// What the component has stored elsewhere by itself gives the zero value.
func (c *Client) Save(ctx context.Context, t spec.Transfer, uri, local string) (spec.Saved, error) {
	s := &artifact{client: c, ask: spec.Ask{Direction: spec.Out, Name: t.Name, URI: uri}}
	var saved transfer.Saved
	err := c.again(ctx, func() error {
		var err error
		saved, err = transfer.Save(ctx, s, local, t.File, t.Archive, 0)
		return err
	})
	switch {
	case errors.Is(err, errElsewhere):
		return spec.Saved{}, nil
	case err != nil:
		return spec.Saved{}, fmt.Errorf("store output artifact %s: %w", t.Name, err)
	}
	return spec.Saved{Digest: saved.Digest, Size: saved.Size}, nil
}

// broken says that a stream broke off after it had begun, so that only the whole can be tried again.
type broken struct{ error }

func (e *broken) Unwrap() error { return e.error }

// wholeTries is how often a transfer is begun.
const wholeTries = 5

// again does the whole again where a stream broke off in between.
func (c *Client) again(ctx context.Context, do func() error) error {
	tries := 0
	return c.retry(ctx, func() error {
		err := do()
		tries++
		var off *broken
		if errors.As(err, &off) && ctx.Err() == nil && tries < wholeTries {
			return transient(err, 0)
		}
		return settled(err)
	})
}

// settled hides from again that an error could have been tried again: that was done already, for as long as it makes sense.
func settled(err error) error {
	var soft *passing
	var old *stale
	if errors.As(err, &soft) || errors.As(err, &old) {
		return &given{err}
	}
	return err
}

// given is an error that was tried often enough.
type given struct{ err error }

func (e *given) Error() string        { return e.err.Error() }
func (e *given) Is(target error) bool { return errors.Is(e.err, target) }
