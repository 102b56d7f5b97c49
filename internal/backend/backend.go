// Package backend routes tasks to the backends that carry them out; those are in its sub-folders.
package backend

import (
	"context"
	"errors"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Backend is what a router routes to, and what it is itself: the runner's Backend and Forgetter.
type Backend interface {
	Start(ctx context.Context, run engine.Run, cmd engine.StartTask) error
	Stop(ctx context.Context, run engine.Run, cmd engine.StopTask) error
	Forget(ctx context.Context, run engine.Run, path string) error
	Close() error
}

// byKind sends containers and scripts to one backend, every other kind of task to another.
type byKind struct{ containers, others Backend }

// ByKind gives a backend that carries out containers and scripts with one backend, and what else that one says it handles,
// and every other kind of task with another. It closes both.
func ByKind(containers, others Backend) Backend { return byKind{containers, others} }

func (r byKind) Start(ctx context.Context, run engine.Run, cmd engine.StartTask) error {
	kind := cmd.Body.Kind
	mine := kind == program.Containers || kind == program.Script
	if h, ok := r.containers.(interface{ Handles(program.Kind) bool }); ok {
		mine = h.Handles(kind)
	}
	if mine {
		return r.containers.Start(ctx, run, cmd)
	}
	return r.others.Start(ctx, run, cmd)
}

// Stop does not know the task's kind: the backend that does not have it does nothing.
func (r byKind) Stop(ctx context.Context, run engine.Run, cmd engine.StopTask) error {
	return errors.Join(r.containers.Stop(ctx, run, cmd), r.others.Stop(ctx, run, cmd))
}

func (r byKind) Forget(ctx context.Context, run engine.Run, path string) error {
	return errors.Join(r.containers.Forget(ctx, run, path), r.others.Forget(ctx, run, path))
}

// Settled tells both that an attempt's end is recorded, see the runner's Settler.
func (r byKind) Settled(run engine.Run, path string) {
	for _, b := range []Backend{r.containers, r.others} {
		if s, ok := b.(interface {
			Settled(run engine.Run, path string)
		}); ok {
			s.Settled(run, path)
		}
	}
}

// AwaitSettled waits until nothing is kept of a run's attempts that have ended.
func (r byKind) AwaitSettled(ctx context.Context, runUID string) error {
	if s, ok := r.containers.(interface {
		AwaitSettled(ctx context.Context, runUID string) error
	}); ok {
		return s.AwaitSettled(ctx, runUID)
	}
	return nil
}

func (r byKind) Close() error { return errors.Join(r.containers.Close(), r.others.Close()) }
