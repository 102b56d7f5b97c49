package argocheck

import (
	"fmt"
	"slices"
	"strings"
)

// ended are the phases of a node that is done.
var ended = []string{"Succeeded", "Failed", "Error", "Skipped", "Omitted"}

// consistent checks a run whose course is drawn by chance: it has ended, every node has ended, what hangs together
// agrees, and every skipped node was skipped for a condition that is false with the values drawn. Other nodes are
// compared with the expected run where both have them: of the same type.
func consistent(want *Expected, got *Actual) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if !slices.Contains([]string{"Succeeded", "Failed", "Error"}, got.Phase) {
		add("workflow: phase: want an end, got %s", withMessage(got.Phase, got.Message))
	}
	wanted, seen := byName(want.Nodes), byName(got.Nodes)
	root, ok := seen["$WF"]
	if !ok {
		add("$WF: missing")
		return lines
	}
	if root.Phase != got.Phase {
		add("workflow: phase %s, but its root node is %s", got.Phase, root.Phase)
	}
	reached := map[string]bool{}
	reach(seen, "$WF", reached)
	for _, n := range got.Nodes {
		if !slices.Contains(ended, n.Phase) {
			add("%s: phase: want an end, got %s", n.Name, orNone(n.Phase))
		}
		if !reached[n.Name] && !strings.HasPrefix(n.Name, "$WF.onExit") {
			add("%s: hangs on nothing: no node has it or its parents as a child", n.Name)
		}
		if w, ok := wanted[n.Name]; ok && w.Type != n.Type && w.Type != "Skipped" && n.Type != "Skipped" {
			add("%s: type: want %s, got %s", n.Name, w.Type, n.Type)
		}
		if (n.Type == "Skipped") != (n.Phase == "Skipped" || n.Phase == "Omitted") {
			add("%s: type %s does not go with phase %s", n.Name, n.Type, n.Phase)
		}
		lines = append(lines, conditionHolds(n)...)
	}
	for _, n := range got.Nodes {
		lines = append(lines, parentAgrees(n, seen)...)
	}
	// With the same end, the same nodes are there, run or skipped; only the number of attempts is up to chance.
	for name, w := range wanted {
		if _, there := seen[name]; !there && got.Phase == want.Result && !strings.Contains(name, "(") {
			add("%s: missing (want %s, whatever was drawn)", name, w.Type)
		}
	}
	slices.Sort(lines)
	return lines
}

// conditionHolds checks the message of a skipped node: the condition that it quotes must be false.
func conditionHolds(n Node) []string {
	if n.Phase != "Skipped" {
		return nil
	}
	condition, ok := strings.CutPrefix(n.Message, "when '")
	if ok {
		condition, ok = strings.CutSuffix(condition, "' evaluated false")
	}
	if !ok {
		return []string{fmt.Sprintf("%s: is Skipped without the condition that was false: %q", n.Name, n.Message)}
	}
	if value, known := evaluate(condition); known && value {
		return []string{fmt.Sprintf("%s: was skipped, but %q is true", n.Name, condition)}
	}
	return nil
}

// parentAgrees checks that a group is as its children are.
func parentAgrees(n Node, seen map[string]Node) []string {
	var last, bad string
	for _, name := range n.Children {
		last = name
		if phase := seen[name].Phase; phase == "Failed" || phase == "Error" {
			bad = name
		}
	}
	switch {
	case n.Type == "Retry" && last != "":
		if attempt := lastAttempt(n, seen); attempt.Phase != n.Phase {
			return []string{fmt.Sprintf("%s: is %s, but its last attempt %s is %s", n.Name, n.Phase, attempt.Name, attempt.Phase)}
		}
	case (n.Type == "StepGroup" || n.Type == "TaskGroup") && n.Phase == "Succeeded" && bad != "":
		return []string{fmt.Sprintf("%s: Succeeded although %s is %s", n.Name, bad, seen[bad].Phase)}
	case n.Type == "StepGroup" && n.Phase == "Failed" && bad == "":
		return []string{fmt.Sprintf("%s: Failed although no child did", n.Name)}
	}
	return nil
}

// lastAttempt is the attempt with the highest number among a Retry node's children.
func lastAttempt(n Node, seen map[string]Node) Node {
	best, number := Node{}, -1
	for _, name := range n.Children {
		var i int
		if _, err := fmt.Sscanf(strings.TrimPrefix(name, n.Name), "(%d)", &i); err == nil && i > number {
			best, number = seen[name], i
		}
	}
	return best
}

func reach(seen map[string]Node, name string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, child := range seen[name].Children {
		reach(seen, child, reached)
	}
}
