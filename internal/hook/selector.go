package hook

import (
	"slices"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// selects says whether a selector matches a workflow's labels. No selector matches every workflow.
func selects(s *v1alpha1.LabelSelector, labels map[string]string) bool {
	if s == nil {
		return true
	}
	for key, want := range s.MatchLabels {
		if got, there := labels[key]; !there || got != want {
			return false
		}
	}
	for _, r := range s.MatchExpressions {
		if !holds(r, labels) {
			return false
		}
	}
	return true
}

// holds decides one requirement as Kubernetes does: NotIn holds for an absent label.
func holds(r v1alpha1.LabelSelectorRequirement, labels map[string]string) bool {
	value, there := labels[r.Key]
	switch r.Operator {
	case "In":
		return there && slices.Contains(r.Values, value)
	case "NotIn":
		return !there || !slices.Contains(r.Values, value)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	}
	return false
}
