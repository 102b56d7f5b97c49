package controller

import (
	"strings"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/submission"
)

// notes are conditions that say what is odd about a workflow or the controller's settings, without stopping it.
func (c *Controller) notes(m *submission.Manifest) []argo.Condition {
	var out []argo.Condition
	if len(m.Warnings) > 0 {
		out = append(out, argo.Condition{Type: "SpecWarning", Status: "True", Message: strings.Join(m.Warnings, "; ")})
	}
	if c.DeprecatedExecutor != "" {
		out = append(out, argo.Condition{
			Type: "DeprecatedSetting", Status: "True",
			Message: c.DeprecatedExecutor + " is a setting of old executors: it is accepted and means the one executor that there is",
		})
	}
	return out
}
