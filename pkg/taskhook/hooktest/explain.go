package hooktest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// Explain says in words what an answer makes Sluice do.
func Explain(request *v1alpha1.TaskReviewRequest, r *v1alpha1.TaskReviewResponse) string {
	if r.Pending != nil {
		wait := time.Duration(r.Pending.RetryAfterSeconds * float64(time.Second))
		return fmt.Sprintf("pending: the task waits, and is asked about again in %s", wait)
	}
	if r.Template == v1alpha1.TemplateSend {
		return "asks for the template in full"
	}
	text := map[v1alpha1.Decision]string{
		v1alpha1.Run:   "the task runs",
		v1alpha1.Reuse: "the task is not started: it succeeds with the given outputs",
		v1alpha1.Skip:  "the task is skipped",
		v1alpha1.Fail:  "the task fails",
		v1alpha1.Done:  "the result stands, and what depends on it may start",
		v1alpha1.Retry: "the outputs are dropped and the task runs anew, if it may",
	}[r.Decision]
	parts := []string{fmt.Sprintf("%s: %s", r.Decision, text)}
	if names := slices.Sorted(maps.Keys(r.Placeholders)); len(names) > 0 {
		parts = append(parts, fmt.Sprintf("gives the placeholders {{hooks.%s.%s}}", request.Hook, strings.Join(names, "}}, {{hooks."+request.Hook+".")))
	}
	if r.Inputs != nil {
		parts = append(parts, "replaces the inputs "+names(r.Inputs.Parameters, r.Inputs.Artifacts))
	}
	if r.Outputs != nil {
		verb := "replaces the outputs "
		if r.Decision == v1alpha1.Reuse {
			verb = "gives the outputs "
		}
		parts = append(parts, verb+names(r.Outputs.Parameters, r.Outputs.Artifacts))
	}
	if len(r.State) > 0 {
		parts = append(parts, fmt.Sprintf("keeps %d bytes of state for Post", len(r.State)))
	}
	if len(r.PodPatch) > 0 {
		parts = append(parts, "patches the pod")
	}
	if len(r.Labels)+len(r.Annotations) > 0 {
		parts = append(parts, "adds labels or annotations")
	}
	if r.Message != "" {
		parts = append(parts, fmt.Sprintf("says %q", clip(r.Message)))
	}
	return strings.Join(parts, "; ")
}

func names(parameters map[string]any, artifacts map[string][]v1alpha1.Artifact) string {
	all := append(slices.Sorted(maps.Keys(parameters)), slices.Sorted(maps.Keys(artifacts))...)
	if len(all) == 0 {
		return "(none)"
	}
	return strings.Join(all, ", ")
}
