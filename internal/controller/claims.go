package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// Claims makes and deletes the volume claims of runs. Both may be called again.
type Claims interface {
	Make(ctx context.Context, run engine.Run, templates []corev1.PersistentVolumeClaim) error
	Delete(ctx context.Context, run engine.Run, templates []corev1.PersistentVolumeClaim, strategy string, phase engine.Phase) error
}

// claims are the run's volumeClaimTemplates with their placeholders resolved.
func (r *run) claims(s *engine.State) ([]corev1.PersistentVolumeClaim, error) {
	spec := r.manifest.Spec
	if spec == nil || len(spec.VolumeClaimTemplates) == 0 || r.c.Claims == nil {
		return nil, nil
	}
	data, err := json.Marshal(spec.VolumeClaimTemplates)
	if err != nil {
		return nil, fmt.Errorf("volumeClaimTemplates: %w", err)
	}
	env := expr.Env{Scope: runFacts{s}, Now: s.Started, Seed: rand.Uint64()}
	data, err = program.ResolveJSON(data, func(text string) (string, error) { return r.manifest.Lang.Text(text, env) })
	if err != nil {
		return nil, fmt.Errorf("volumeClaimTemplates: %w", err)
	}
	var out []corev1.PersistentVolumeClaim
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("volumeClaimTemplates: %w", err)
	}
	return out, nil
}

// runFacts is what texts of a workflow as a whole may read.
type runFacts struct{ s *engine.State }

// Lookup implements [expr.Scope].
func (f runFacts) Lookup(path []string) (any, expr.Presence) {
	if len(path) < 2 || path[0] != "workflow" {
		return nil, expr.Absent
	}
	switch path[1] {
	case "name":
		return f.s.Run.Name, expr.Present
	case "namespace":
		return f.s.Run.Namespace, expr.Present
	case "uid":
		return f.s.Run.UID, expr.Present
	case "parameters":
		if len(path) == 3 {
			if v, ok := f.s.Parameters[path[2]]; ok {
				return v, expr.Present
			}
		}
	}
	return nil, expr.Absent
}

// makeClaims makes the claims before the first task starts. What can never be made ends the run.
func (r *run) makeClaims(ctx context.Context) error {
	s := r.active.State()
	claims, err := r.claims(s)
	if err == nil && len(claims) > 0 {
		err = r.c.Claims.Make(ctx, s.Run, claims)
	}
	if err == nil {
		return nil
	}
	if mayPass(err) {
		return err
	}
	return r.active.Apply(ctx, func(*engine.State) ([]engine.Event, error) {
		return []engine.Event{{Abandoned: &engine.Abandoned{Message: err.Error()}}}, nil
	})
}

// mayPass says whether a call to the API server that failed may work later: an API server that cannot be reached is no
// reason to end a run.
func mayPass(err error) bool {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	var said apierrors.APIStatus
	return errors.As(err, &said) && !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err)
}

// deleteClaims deletes the claims of an ended run where its strategy says so.
func (r *run) deleteClaims(ctx context.Context, s *engine.State) {
	claims, err := r.claims(s)
	if err != nil || len(claims) == 0 {
		return // it was said when they were to be made
	}
	strategy := ""
	if gc := r.manifest.Spec.VolumeClaimGC; gc != nil {
		strategy = gc.Strategy
	}
	if err := r.c.Claims.Delete(ctx, s.Run, claims, strategy, s.Phase); err != nil {
		r.log.Warn("volume claims could not be deleted; they go with the workflow", "error", err)
	}
}
