package argo

// findCycle gives the nodes of a circle of needs, the first one again at the end, or nil where there is none.
func findCycle(needs [][]int) []int {
	const (
		unseen = iota
		open
		closed
	)
	state := make([]byte, len(needs))
	next := make([]int, len(needs))
	for root := range needs {
		if state[root] != unseen {
			continue
		}
		stack := []int{root}
		state[root] = open
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			if next[n] == len(needs[n]) {
				state[n] = closed
				stack = stack[:len(stack)-1]
				continue
			}
			m := needs[n][next[n]]
			next[n]++
			switch state[m] {
			case unseen:
				state[m] = open
				stack = append(stack, m)
			case open:
				for i, s := range stack {
					if s == m {
						return append(append([]int{}, stack[i:]...), m)
					}
				}
			}
		}
	}
	return nil
}

// reachability answers whether a node needs another, directly or not. A search costs what it visits, so that usual
// references, to a direct need, cost nothing; once the budget is spent it answers yes, as it cannot tell.
type reachability struct {
	needs  [][]int
	budget int
	seen   []int
	turn   int
}

// maxReachSteps bounds all searches of one graph together.
const maxReachSteps = 50_000_000

func newReachability(needs [][]int) *reachability {
	return &reachability{needs: needs, budget: maxReachSteps, seen: make([]int, len(needs))}
}

func (r *reachability) needed(from, to int) bool {
	r.turn++
	stack := []int{from}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if r.budget -= len(r.needs[n]) + 1; r.budget < 0 {
			return true
		}
		for _, m := range r.needs[n] {
			if m == to {
				return true
			}
			if r.seen[m] != r.turn {
				r.seen[m] = r.turn
				stack = append(stack, m)
			}
		}
	}
	return false
}

// intSet is a list of numbers, each once.
type intSet struct {
	list []int
	seen map[int]bool
}

func (s *intSet) add(n int) {
	if s.seen == nil {
		s.seen = map[int]bool{}
	}
	if !s.seen[n] {
		s.seen[n] = true
		s.list = append(s.list, n)
	}
}
