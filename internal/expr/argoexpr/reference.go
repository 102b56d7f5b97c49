package argoexpr

import (
	"slices"
	"strings"
)

// reference is a variable that a simple tag names.
type reference struct {
	// tag is the tag as written, without braces and outer white space.
	tag string
	// path is the variable's path; other is another reading, where a name may hold dots.
	path, other []string
	// lenient references stay as they are where the scope has no such variable: Argo binds them only in some places, and
	// other template languages use the same words.
	lenient bool
}

// roots are the first words of Argo's variables. The value says whether a tag of that root is lenient.
var roots = map[string]bool{
	"inputs": false, "outputs": false, "steps": false, "tasks": false, "workflow": false, "hooks": false, "pod": false,
	"item": true, "retries": true, "lastRetry": true, "node": true, "task": true, "status": true, "duration": true,
	"exitCode": true, "resourcesDuration": true, "cronworkflow": true,
}

// words are the variables of one word.
var words = map[string]bool{"item": true, "retries": true, "status": true, "duration": true, "exitCode": true}

// parseReference reads a tag, and says whether it is one of Argo's variables at all.
func parseReference(tag string) (reference, bool) {
	tag = strings.TrimSpace(tag)
	root, _, dotted := strings.Cut(tag, ".")
	lenient, known := roots[root]
	if !known || (!dotted && !words[root]) {
		return reference{}, false
	}
	parts := strings.Split(tag, ".")
	r := reference{tag: tag, path: joinNames(parts), lenient: lenient}
	if len(r.path) != len(parts) {
		r.other = parts
	}
	if root == "item" && dotted {
		r.lenient = false
	}
	if tag == "workflow.scheduledTime" {
		// Bound for scheduled runs only; Argo leaves the tag in place elsewhere.
		r.lenient = true
	}
	return r, true
}

// joinNames puts names that hold dots together again: "workflow.labels.a.b/c" has the path workflow, labels, "a.b/c".
func joinNames(parts []string) []string {
	at := func(i int, names ...string) bool {
		return i < len(parts) && slices.Contains(names, parts[i])
	}
	// from joins everything from index i on.
	from := func(i int) []string {
		if len(parts) <= i+1 {
			return parts
		}
		return append(append(make([]string, 0, i+1), parts[:i]...), strings.Join(parts[i:], "."))
	}
	// artifact joins the key of "artifacts.<n>.metadata.<key>", where "artifacts" has index i.
	artifact := func(i int) []string {
		if at(i+2, "metadata") {
			return from(i + 3)
		}
		return parts
	}
	// values joins the name behind "parameters" or the key in an artifact's metadata, at index i.
	values := func(i int) []string {
		switch {
		case at(i, "parameters"):
			return from(i + 1)
		case at(i, "artifacts"):
			return artifact(i)
		}
		return parts
	}
	switch parts[0] {
	case "inputs":
		return values(1)
	case "outputs":
		if last := len(parts) - 1; at(1, "parameters") && last > 3 && parts[last] == "path" {
			return []string{"outputs", "parameters", strings.Join(parts[2:last], "."), "path"}
		} else if at(1, "parameters") && last == 3 && parts[last] == "path" {
			return parts
		}
		return values(1)
	case "steps", "tasks":
		switch {
		case at(2, "outputs", "inputs"):
			return values(3)
		case at(2, "hooks"):
			return from(4)
		}
	case "workflow", "cronworkflow":
		switch {
		case at(1, "parameters", "labels", "annotations"):
			return from(2)
		case at(1, "outputs"):
			return values(2)
		}
	case "hooks":
		return from(2)
	case "item":
		return from(1)
	}
	return parts
}
