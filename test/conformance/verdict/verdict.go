// Package verdict keeps what came out of the conformance suites: the report as JSON, the totals, and whether the
// document that explains the remaining differences agrees with them.
package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Result is what became of one manifest.
type Result struct {
	Suite  string `json:"suite"`
	File   string `json:"file"`
	Class  string `json:"class"`
	Pass   bool   `json:"pass"`
	Reason string `json:"reason"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// Report collects results. It may be used by several goroutines.
type Report struct {
	mu      sync.Mutex
	results []Result
}

// Add adds a result.
func (r *Report) Add(result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, result)
}

// Results gives all of them, sorted by suite, class and file.
func (r *Report) Results() []Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	sorted := slices.Clone(r.results)
	slices.SortFunc(sorted, func(a, b Result) int {
		return strings.Compare(a.Suite+"\t"+a.Class+"\t"+a.File, b.Suite+"\t"+b.Class+"\t"+b.File)
	})
	return sorted
}

// Write writes the report as JSON, whole or not at all.
func (r *Report) Write(path string) error {
	text, err := json.MarshalIndent(r.Results(), "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// Totals counts one suite and class.
type Totals struct {
	Suite, Class   string
	Passed, Failed int
}

// Percent is the share that passed.
func (t Totals) Percent() float64 {
	return 100 * float64(t.Passed) / float64(t.Passed+t.Failed)
}

// Totals gives the totals of every suite and class, in order.
func (r *Report) Totals() []Totals {
	var totals []Totals
	for _, result := range r.Results() {
		if n := len(totals); n == 0 || totals[n-1].Suite != result.Suite || totals[n-1].Class != result.Class {
			totals = append(totals, Totals{Suite: result.Suite, Class: result.Class})
		}
		t := &totals[len(totals)-1]
		if result.Pass {
			t.Passed++
		} else {
			t.Failed++
		}
	}
	return totals
}

// Print prints the totals, a line a suite and class and one a suite in the form "name-suite: N
// passed, N failed, N skipped".
// It says whether every suite reached the share that it must, as a whole and in its class local.
func (r *Report) Print(w io.Writer, name string, percent float64) bool {
	ok := true
	suites := map[string]*Totals{}
	var order []string
	for _, t := range r.Totals() {
		mark := "    "
		if t.Class == "local" && t.Percent() < percent {
			mark, ok = "LOW ", false
		}
		fmt.Fprintf(w, "%s%-5s %-14s %3d of %3d passed (%.1f%%)\n", mark, t.Suite, t.Class, t.Passed, t.Passed+t.Failed, t.Percent())
		if suites[t.Suite] == nil {
			suites[t.Suite] = &Totals{}
			order = append(order, t.Suite)
		}
		suites[t.Suite].Passed += t.Passed
		suites[t.Suite].Failed += t.Failed
	}
	for _, suite := range order {
		t := suites[suite]
		note := ""
		if t.Percent() < percent {
			note, ok = fmt.Sprintf(" (%.1f%% of at least %.0f%%)", t.Percent(), percent), false
		}
		fmt.Fprintf(w, "%s-%s: %d passed, %d failed, 0 skipped%s\n", name, suite, t.Passed, t.Failed, note)
	}
	return ok
}
