package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/program"
)

// facts are what conditions of a CronWorkflow read.
func (o *cronObject) facts() map[string]any {
	labels, annotations := map[string]any{}, map[string]any{}
	for k, v := range o.GetLabels() {
		labels[k] = v
	}
	for k, v := range o.GetAnnotations() {
		annotations[k] = v
	}
	var last any
	if t := o.status.LastScheduledTime; t != nil {
		last = t.Time
	}
	return map[string]any{"cronworkflow": map[string]any{
		"name": o.GetName(), "namespace": o.GetNamespace(), "labels": labels, "annotations": annotations,
		"failed": o.status.Failed, "succeeded": o.status.Succeeded, "lastScheduledTime": last,
	}}
}

// when decides spec.when.
func (cr *crons) when(o *cronObject, now time.Time) (bool, error) {
	if o.spec.When == "" {
		return true, nil
	}
	goes, err := argoexpr.New().Condition(program.Condition{Form: "when", Source: o.spec.When}, o.env(now))
	if err != nil {
		return false, fmt.Errorf("when: %w", err)
	}
	return goes, nil
}

// stopping decides spec.stopStrategy: a CronWorkflow whose condition holds starts nothing more.
func (cr *crons) stopping(o *cronObject, now time.Time) {
	if o.spec.StopStrategy == nil || o.status.Phase == "Stopped" {
		return
	}
	v, err := argoexpr.New().Value(o.spec.StopStrategy.Expression, o.env(now))
	stop, is := v.(bool)
	if err == nil && !is {
		err = fmt.Errorf("its value is %v, no boolean", v)
	}
	if err != nil {
		o.condition("SpecError", fmt.Errorf("stopStrategy.expression: %w", err))
		return
	}
	if stop {
		o.status.Phase = "Stopped"
		o.labels[cronCompleted] = "true"
	}
}

func (o *cronObject) env(now time.Time) expr.Env {
	return expr.Env{Scope: expr.Tree(o.facts()), Now: now, Seed: rand.Uint64()}
}

// condition sets a condition to an error, or takes it away.
func (o *cronObject) condition(name string, err error) {
	at := slices.IndexFunc(o.status.Conditions, func(c argo.Condition) bool { return c.Type == name })
	switch {
	case err == nil && at >= 0:
		o.status.Conditions = slices.Delete(o.status.Conditions, at, at+1)
	case err == nil:
	case at >= 0:
		o.status.Conditions[at].Message = err.Error()
	default:
		o.status.Conditions = append(o.status.Conditions, argo.Condition{Type: name, Status: "True", Message: err.Error()})
	}
}

func (s *cronStatus) json() []byte {
	if s.Active == nil {
		s.Active = []map[string]any{}
	}
	if s.Conditions == nil {
		s.Conditions = []argo.Condition{}
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil
	}
	return data
}

// save writes what has changed.
func (cr *crons) save(ctx context.Context, o *cronObject, before []byte) error {
	patch := map[string]any{}
	if now := o.status.json(); !bytes.Equal(now, before) {
		patch["status"] = json.RawMessage(now)
	}
	meta := map[string]any{}
	if len(o.labels) > 0 {
		meta["labels"] = o.labels
	}
	if len(o.notes) > 0 {
		meta["annotations"] = o.notes
	}
	if len(meta) > 0 {
		patch["metadata"] = meta
	}
	if len(patch) == 0 {
		return nil
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	u := newObject(kind("CronWorkflow"))
	u.SetNamespace(o.GetNamespace())
	u.SetName(o.GetName())
	if err := cr.c.client.Patch(ctx, u, client.RawPatch(types.MergePatchType, data)); err != nil {
		return client.IgnoreNotFound(err)
	}
	cr.mu.Lock()
	defer cr.mu.Unlock()
	cr.written[o.GetNamespace()+"/"+o.GetName()] = u
	return nil
}
