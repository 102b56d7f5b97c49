package hook

import (
	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// engineAnswer converts an answer that v1alpha1.CheckResponse has found good and that has a decision.
func engineAnswer(r *v1alpha1.TaskReviewResponse) engine.Answer {
	a := engine.Answer{
		Decision:     engine.Decision(r.Decision),
		Message:      r.Message,
		Placeholders: r.Placeholders,
		State:        r.State,
		Labels:       r.Labels,
		Annotations:  r.Annotations,
		PodPatch:     r.PodPatch,
	}
	if r.Inputs != nil {
		a.Inputs = &engine.Inputs{
			Parameters: normalValues(r.Inputs.Parameters),
			Artifacts:  mapValues(r.Inputs.Artifacts, programArtifacts),
		}
	}
	if r.Outputs != nil {
		a.Outputs = &engine.Outputs{
			Parameters: normalValues(r.Outputs.Parameters),
			Artifacts:  mapValues(r.Outputs.Artifacts, programArtifacts),
			Result:     r.Outputs.Result,
		}
	}
	a.Placeholders = normalValues(a.Placeholders)
	return a
}

// normalValues gives values in the engine's form. Built-in plugins are Go code and may answer with an int.
func normalValues(in map[string]any) map[string]any {
	if in == nil {
		return nil
	}
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = v1alpha1.NormalizeValue(value)
	}
	return out
}
