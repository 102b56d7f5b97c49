package v1alpha1

import (
	"sort"
	"strings"
)

// Problem is one thing that is wrong in a message or document.
type Problem struct {
	// Path is where: "response.outputs.parameters", "spec.http.url", "items[3].response"; empty is the whole message.
	Path string
	// Message is what is wrong and what to do.
	Message string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// Problems is all that is wrong in a message or document, as an error.
type Problems []Problem

func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// Err gives the problems as an error, or nil where there are none.
func (ps Problems) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// add appends a problem.
func (ps *Problems) add(path, message string) {
	*ps = append(*ps, Problem{Path: path, Message: message})
}

// nearest gives the candidate that word was probably meant to be, or "".
func nearest(word string, candidates []string) string {
	sort.Strings(candidates)
	best, bestDistance := "", 3
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < bestDistance && d < len(c) {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of letters to change, add or drop to get from a to b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		previous := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			previous, row[j] = row[j], min(previous+cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
