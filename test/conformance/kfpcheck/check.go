package kfpcheck

import (
	"fmt"
	"reflect"
	"slices"
)

// Want is what is known of a run beforehand.
type Want struct {
	State           string
	Inputs, Outputs map[string]any
}

// ended are the states of a task that is done.
var ended = []string{"SUCCEEDED", "SKIPPED", "FAILED", "CANCELED"}

// Check gives everything that is wrong with a run, nothing for a pass.
func Check(want Want, p *Pipeline, r *Run) []string {
	var found []string
	if r.State != want.State {
		text := fmt.Sprintf("run: state: want %s, got %s", want.State, r.State)
		if r.Error != nil {
			text += " (" + r.Error.Message + ")"
		}
		found = append(found, text)
	}
	for name, value := range want.Outputs {
		if got, ok := r.Outputs.Parameters[name]; !ok || !reflect.DeepEqual(got, value) {
			found = append(found, fmt.Sprintf("run: output %s: want %v, got %v", name, value, got))
		}
	}
	found = append(found, checkTree(r)...)
	found = append(found, checkLogic(p, r)...)
	slices.Sort(found)
	return found
}

// checkTree checks that the details hang together: every task has ended, is named once, and belongs to what it says.
func checkTree(r *Run) []string {
	var found []string
	byID := map[string]Task{}
	for _, t := range r.Details.Tasks {
		if _, twice := byID[t.ID]; twice {
			found = append(found, fmt.Sprintf("two tasks have the id %s", t.ID))
		}
		byID[t.ID] = t
	}
	if len(byID) == 0 {
		found = append(found, "run: has no task details")
	}
	for _, t := range r.Details.Tasks {
		if !slices.Contains(ended, t.State) {
			found = append(found, fmt.Sprintf("%s: state: want an end, got %q", t.key(), t.State))
		}
		if t.ParentID != "" {
			if _, ok := byID[t.ParentID]; !ok {
				found = append(found, fmt.Sprintf("%s: parent %s does not exist", t.key(), t.ParentID))
			}
		}
		for _, c := range t.Children {
			if _, ok := byID[c.TaskID]; !ok && c.TaskID != "" {
				found = append(found, fmt.Sprintf("%s: child %s does not exist", t.key(), c.TaskID))
			}
		}
	}
	return found
}
