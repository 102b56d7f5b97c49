package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
)

// CheckResponse says all that is wrong with an answer to the question uid at point. path stands before the paths of
// the problems ("response").
func CheckResponse(r *TaskReviewResponse, point Point, uid, path string) Problems {
	var ps Problems
	if r == nil {
		ps.add(path, "is missing")
		return ps
	}
	switch {
	case r.UID == "":
		ps.add(path+".uid", fmt.Sprintf("is missing; it must repeat the request's, %q", uid))
	case r.UID != uid:
		ps.add(path+".uid", fmt.Sprintf("must repeat the request's, %q, not %q", uid, r.UID))
	}
	switch r.Template {
	case "", TemplateByDigest, TemplateSend:
	default:
		ps.add(path+".template", fmt.Sprintf("must be ByDigest or Send, not %q", r.Template))
	}
	if r.Pending != nil || r.Template == TemplateSend {
		return append(ps, checkUndecided(r, path)...)
	}
	ps = append(ps, checkDecision(r, point, path)...)
	ps = append(ps, checkPlaceholders(r.Placeholders, path+".placeholders")...)
	if len(r.State) > MaxStateBytes {
		ps.add(path+".state", fmt.Sprintf("has %d bytes, more than the %d (16 KiB) that are allowed", len(r.State), MaxStateBytes))
	}
	if present(r.PodPatch) && r.PodPatch[0] != '{' {
		ps.add(path+".podPatch", "must be an object, not "+kindOf(r.PodPatch))
	}
	if r.Inputs != nil {
		if len(r.Inputs.Defaulted) > 0 {
			ps.add(path+".inputs.defaulted", "is for requests only")
		}
		ps = append(ps, checkArtifacts(r.Inputs.Artifacts, path+".inputs.artifacts")...)
	}
	if r.Outputs != nil {
		ps = append(ps, checkArtifacts(r.Outputs.Artifacts, path+".outputs.artifacts")...)
	}
	return ps
}

// checkUndecided checks an answer that asks to be asked again.
func checkUndecided(r *TaskReviewResponse, path string) Problems {
	var ps Problems
	if r.Pending != nil && r.Template == TemplateSend {
		ps.add(path+".template", "Send and pending exclude each other: it is asked again at once")
	}
	if p := r.Pending; p != nil && (p.RetryAfterSeconds <= 0 || p.RetryAfterSeconds > MaxRetryAfterSeconds) {
		ps.add(path+".pending.retryAfterSeconds", fmt.Sprintf("must be above 0 and at most %d, not %v", MaxRetryAfterSeconds, p.RetryAfterSeconds))
	}
	what := "pending"
	if r.Template == TemplateSend {
		what = "template: Send"
	}
	for _, field := range given(r, "decision", "placeholders", "inputs", "outputs", "labels", "annotations", "podPatch", "state") {
		ps.add(path+"."+field, "may not stand beside "+what+"; give it with the decision")
	}
	return ps
}

// checkDecision checks the decision and what it may be given with.
func checkDecision(r *TaskReviewResponse, point Point, path string) Problems {
	var ps Problems
	allowed := []Decision{Run, Reuse, Skip, Fail}
	if point == Post {
		allowed = []Decision{Done, Fail, Retry}
	}
	if r.Decision == "" {
		ps.add(path+".decision", fmt.Sprintf("is missing; at %s it is one of %v, or the answer has pending", point, allowed))
		return ps
	}
	if !slices.Contains(allowed, r.Decision) {
		ps.add(path+".decision", fmt.Sprintf("must be one of %v at %s, not %q", allowed, point, r.Decision))
		return ps
	}
	var only []string
	switch {
	case point == Post && r.Decision == Retry:
		only = []string{"placeholders", "inputs", "outputs", "labels", "annotations", "podPatch", "state"}
	case point == Post:
		only = []string{"placeholders", "inputs", "labels", "annotations", "podPatch", "state"}
	case r.Decision == Run:
		only = []string{"outputs"}
	case r.Decision == Reuse:
		only = []string{"inputs", "podPatch"}
	default:
		only = []string{"inputs", "outputs", "podPatch"}
	}
	for _, field := range given(r, only...) {
		ps.add(path+"."+field, fmt.Sprintf("is not allowed with decision %s at %s", r.Decision, point))
	}
	return ps
}

// given lists those of the named fields that the answer has.
func given(r *TaskReviewResponse, names ...string) []string {
	has := map[string]bool{
		"decision":     r.Decision != "",
		"placeholders": len(r.Placeholders) > 0,
		"inputs":       r.Inputs != nil,
		"outputs":      r.Outputs != nil,
		"labels":       len(r.Labels) > 0,
		"annotations":  len(r.Annotations) > 0,
		"podPatch":     present(r.PodPatch),
		"state":        present(r.State),
	}
	var fields []string
	for _, name := range names {
		if has[name] {
			fields = append(fields, name)
		}
	}
	return fields
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// checkPlaceholders checks their names, which must be readable in {{hooks.<hook>.<key>}}, and their size.
func checkPlaceholders(values map[string]any, path string) Problems {
	var ps Problems
	if len(values) == 0 {
		return nil
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if !placeholderName(name) {
			ps.add(path+"."+name, `is no name of a placeholder: letters, digits, "_" and "-" only`)
		}
	}
	data, err := json.Marshal(values)
	switch {
	case err != nil:
		ps.add(path, "cannot be written as JSON: "+err.Error())
	case len(data) > MaxPlaceholderBytes:
		ps.add(path, fmt.Sprintf("have %d bytes, more than the %d (64 KiB) that are allowed", len(data), MaxPlaceholderBytes))
	}
	return ps
}

func placeholderName(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return name != ""
}

// checkArtifacts checks that every artifact lies somewhere.
func checkArtifacts(artifacts map[string][]Artifact, path string) Problems {
	var ps Problems
	names := make([]string, 0, len(artifacts))
	for name := range artifacts {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		for i, a := range artifacts[name] {
			at := fmt.Sprintf("%s.%s[%d]", path, name, i)
			if a.URI == "" && !present(a.Store) {
				ps.add(at, "has neither uri nor store: it must say where the artifact lies")
			}
			if a.Size < 0 {
				ps.add(at+".size", "must not be negative")
			}
		}
	}
	return ps
}
