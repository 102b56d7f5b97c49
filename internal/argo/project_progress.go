package argo

import "fmt"

// maxProgressSteps bounds the work of summing up groups; beyond it they show no progress of their own.
const maxProgressSteps = 50_000_000

// executable says whether nodes of a type do work themselves.
func executable(nodeType string) bool {
	switch nodeType {
	case "Pod", "HTTP", "Plugin", "Container", "Suspend":
		return true
	}
	return false
}

// addProgress sets how far each node is ("done/all") and gives the sum over the whole workflow. A group's is the sum of
// everything below it in the order of events.
func addProgress(nodes []*NodeStatus) string {
	index := make(map[string]int, len(nodes))
	done, all := make([]int64, len(nodes)), make([]int64, len(nodes))
	var sumDone, sumAll int64
	groups := 0
	for i, n := range nodes {
		index[n.ID] = i
		if !executable(n.Type) {
			groups++
			continue
		}
		done[i], all[i] = readProgress(n.Progress)
		switch n.Phase {
		case "Succeeded", "Skipped", "Omitted":
			done[i] = all[i]
		}
		n.Progress = fmt.Sprintf("%d/%d", done[i], all[i])
		sumDone, sumAll = sumDone+done[i], sumAll+all[i]
	}
	total := fmt.Sprintf("%d/%d", sumDone, sumAll)
	if groups*len(nodes) > maxProgressSteps {
		return total
	}
	seen := make([]int, len(nodes))
	for i, n := range nodes {
		if executable(n.Type) {
			continue
		}
		var d, a int64
		stack := []int{i}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, child := range nodes[at].Children {
				c, ok := index[child]
				if !ok || seen[c] == i+1 {
					continue
				}
				seen[c] = i + 1
				d, a = d+done[c], a+all[c]
				stack = append(stack, c)
			}
		}
		n.Progress = ""
		if a > 0 {
			n.Progress = fmt.Sprintf("%d/%d", d, a)
		}
	}
	return total
}

// readProgress reads "n/m"; what is no progress counts as not begun.
func readProgress(s string) (int64, int64) {
	var n, m int64
	if _, err := fmt.Sscanf(s, "%d/%d", &n, &m); err != nil || n < 0 || m < n || m == 0 {
		return 0, 1
	}
	return n, m
}
