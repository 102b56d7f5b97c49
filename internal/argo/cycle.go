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

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(i int) bool { return i/64 < len(b) && b[i/64]>>(i%64)&1 == 1 }

func (b bits) add(i int) { b[i/64] |= 1 << (i % 64) }

// ancestry gives, for each node, all that it needs, directly or not. The needs have no circles.
func ancestry(needs [][]int) []bits {
	out := make([]bits, len(needs))
	words := (len(needs) + 63) / 64
	for _, n := range topological(needs) {
		out[n] = make(bits, words)
		for _, m := range needs[n] {
			out[n].add(m)
			for w, x := range out[m] {
				out[n][w] |= x
			}
		}
	}
	return out
}

// topological gives the nodes so that each comes after those that it needs.
func topological(needs [][]int) []int {
	waiting := make([]int, len(needs))
	dependants := make([][]int, len(needs))
	var order []int
	for n, list := range needs {
		waiting[n] = len(list)
		if len(list) == 0 {
			order = append(order, n)
		}
		for _, m := range list {
			dependants[m] = append(dependants[m], n)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, d := range dependants[order[i]] {
			if waiting[d]--; waiting[d] == 0 {
				order = append(order, d)
			}
		}
	}
	return order
}
