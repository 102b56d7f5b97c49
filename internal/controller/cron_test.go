package controller

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/sluice-ml/sluice/internal/backend/dummy"
	"github.com/sluice-ml/sluice/internal/engine"
)

const nightly = `
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata:
  name: nightly
  annotations: {cronworkflows.argoproj.io/last-used-schedule: "CRON_TZ=Europe/Berlin 0 3 * * *"}
spec:
  schedules: ["0 3 * * *"]
  timezone: Europe/Berlin
  startingDeadlineSeconds: 600
  workflowMetadata: {labels: {team: a}}
  workflowSpec:
    entrypoint: main
    templates:
    - name: main
      container: {image: alpine, command: [echo, "{{workflow.scheduledTime}}"]}
status:
  lastScheduledTime: "2026-01-09T02:00:00Z"
`

// soon is five minutes after a time that was missed.
func soon() time.Time { return time.Date(2026, 1, 10, 2, 5, 0, 0, time.UTC) }

const missed = "nightly-1768010400" // 2026-01-10T02:00:00Z

func TestCronMakesUpForWhatWasMissed(t *testing.T) {
	w := newWorld(t, nil)
	w.submit(nightly)
	w.controller(func(c *Config) { c.Now = soon })
	child := w.ended(missed)
	if child.phase() != "Succeeded" || child.GetLabels()[LabelCron] != "nightly" || child.GetLabels()["team"] != "a" {
		t.Errorf("child: %v %v", child.GetLabels(), child.status())
	}
	if at := child.GetAnnotations()[annotationCronAt]; at != "2026-01-10T02:00:00Z" {
		t.Errorf("scheduled for %q", at)
	}
	if owner := child.GetOwnerReferences(); len(owner) != 1 || owner[0].Kind != "CronWorkflow" || owner[0].Name != "nightly" {
		t.Errorf("owners: %v", owner)
	}
	o := w.until("CronWorkflow", "nightly", "counting it", func(o workflow) bool { return nested(o.Object, "status", "succeeded") == int64(1) })
	if active, _ := nested(o.Object, "status", "active").([]any); len(active) != 0 {
		t.Errorf("active: %v", active)
	}
	if last := nested(o.Object, "status", "lastScheduledTime"); last != "2026-01-10T02:00:00Z" {
		t.Errorf("last scheduled %v", last)
	}
}

func TestCronPolicies(t *testing.T) {
	running := `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: running, labels: {workflows.argoproj.io/cron-workflow: nightly}}
spec:
  entrypoint: main
  templates:
  - name: main
    suspend: {}
`
	for name, test := range map[string]struct {
		spec          string
		starts, ended bool
	}{
		"Allow":     {"  concurrencyPolicy: Allow\n", true, false},
		"Forbid":    {"  concurrencyPolicy: Forbid\n", false, false},
		"Replace":   {"  concurrencyPolicy: Replace\n", true, true},
		"suspended": {"  suspend: true\n", false, false},
		"not now":   {"  when: \"{{cronworkflow.succeeded}} > 3\"\n", false, false},
		"now":       {"  when: \"{{cronworkflow.succeeded}} < 3\"\n", true, false},
		"stopped":   {"  stopStrategy: {expression: cronworkflow.failed >= 0}\n", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(engine.Run, engine.StartTask) dummy.Act { return dummy.Act{} })
			stop := w.controller(func(c *Config) { c.Now = soon })
			w.submit(running)
			w.until("Workflow", "running", "suspended", func(o workflow) bool { return node(t, o, "running")["phase"] == "Running" })
			stop()
			w.submit(strings.Replace(nightly, "  workflowMetadata", test.spec+"  workflowMetadata", 1))
			w.controller(func(c *Config) { c.Now = soon })
			// What it decided is in its status: that one goes on is seen in any case.
			w.until("CronWorkflow", "nightly", "looked after", func(o workflow) bool {
				active, _ := nested(o.Object, "status", "active").([]any)
				return len(active) > 0
			})
			_, err := fetch(context.Background(), w.client, client.ObjectKey{Namespace: "ml", Name: missed})
			if (err == nil) != test.starts {
				t.Errorf("started: %v, want %v", err == nil, test.starts)
			}
			if test.ended {
				if o := w.ended("running"); o.phase() != "Failed" {
					t.Errorf("the old workflow: %v", o.status())
				}
			}
		})
	}
}

func TestCronKeepsAFew(t *testing.T) {
	w := newWorld(t, nil)
	w.submit(strings.Replace(nightly, "  workflowMetadata", "  successfulJobsHistoryLimit: 0\n  workflowMetadata", 1))
	w.controller(func(c *Config) { c.Now = soon })
	w.until("CronWorkflow", "nightly", "counting it", func(o workflow) bool { return nested(o.Object, "status", "succeeded") == int64(1) })
	w.until("Workflow", missed, "deleted", func(o workflow) bool { return o.Object == nil })
}

// A workflow that the API server could not make when it was due is made a moment later, and does not count as failed.
func TestCronTriesAgain(t *testing.T) {
	w := newWorld(t, nil)
	w.submit(nightly)
	var creations atomic.Int64
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetObjectKind().GroupVersionKind().Kind == "Workflow" && creations.Add(1) == 1 {
				return apierrors.NewServiceUnavailable("not now")
			}
			return c.Create(ctx, o, opts...)
		},
	})
	w.controller(func(c *Config) { c.Now = soon })
	if child := w.ended(missed); child.phase() != "Succeeded" || creations.Load() < 2 {
		t.Errorf("child: %v after %d tries", child.phase(), creations.Load())
	}
	o := w.until("CronWorkflow", "nightly", "counting it", func(o workflow) bool { return nested(o.Object, "status", "succeeded") == int64(1) })
	if failed := nested(o.Object, "status", "failed"); failed != nil && failed != int64(0) {
		t.Errorf("%v counted as failed", failed)
	}
}
