package argoexpr

import "time"

// IsTimeForm says whether workflow.creationTimestamp has the form: a letter of strftime that Argo knows, s or RFC3339.
func IsTimeForm(form string) bool {
	_, ok := strftime(form, time.Time{})
	return ok
}
