package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"
)

// event is one line of `go test -json`, as documented by `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// summary counts leaf results and keeps a test's output until it is known whether anybody needs to see it.
type summary struct {
	out     *bufio.Writer
	output  map[string][]string // by package and test
	parents map[string]bool     // tests that have subtests: they are not counted themselves
	passed  []string
	failed  []string
	skipped []string
	skips   []string // "package test: reason"
	broken  []string // packages that failed without a failing test: they do not compile, or panicked
	inTest  map[string]int
}

func newSummary(out *bufio.Writer) *summary {
	return &summary{out: out, output: map[string][]string{}, parents: map[string]bool{}, inTest: map[string]int{}}
}

// line takes one line of input; what is no event (a compiler's message) is printed as it is.
func (s *summary) line(text []byte) {
	var e event
	if len(text) == 0 || text[0] != '{' || json.Unmarshal(text, &e) != nil {
		fmt.Fprintf(s.out, "%s\n", text)
		return
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		if parent, _, sub := cutLast(e.Test, "/"); sub {
			s.parents[e.Package+" "+parent] = true
		}
	case "output":
		if e.Test == "" {
			s.packageOutput(e)
			return
		}
		s.output[key] = append(s.output[key], e.Output)
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "pass", "fail", "skip":
		s.result(e, key)
	}
	_ = s.out.Flush()
}

// packageOutput prints a package's closing line and what it said outside of tests; PASS and coverage lines say nothing new.
func (s *summary) packageOutput(e event) {
	text := strings.TrimSpace(e.Output)
	if text == "" || text == "PASS" || text == "FAIL" || strings.HasSuffix(text, "[no test files]") {
		return
	}
	fmt.Fprint(s.out, e.Output)
}

func (s *summary) result(e event, key string) {
	if e.Test == "" {
		if e.Action == "fail" && s.inTest[e.Package] == 0 {
			s.broken = append(s.broken, e.Package)
		}
		return
	}
	output := strings.Join(s.output[key], "")
	delete(s.output, key)
	if e.Action == "fail" {
		s.inTest[e.Package]++
		fmt.Fprint(s.out, output)
	}
	if s.parents[key] && e.Action != "fail" {
		return
	}
	switch e.Action {
	case "pass":
		s.passed = append(s.passed, key)
	case "fail":
		s.failed = append(s.failed, key)
	case "skip":
		s.skipped = append(s.skipped, key)
		s.skips = append(s.skips, key+": "+reason(output))
	}
}

// finish prints the totals and says whether everything passed.
func (s *summary) finish(name string) bool {
	if len(s.skips) > 0 {
		fmt.Fprintf(s.out, "\nskipped:\n")
		for _, text := range s.skips {
			fmt.Fprintf(s.out, "  %s\n", text)
		}
	}
	if len(s.failed)+len(s.broken) > 0 {
		fmt.Fprintf(s.out, "\nfailed:\n")
		for _, key := range append(s.failed, s.broken...) {
			fmt.Fprintf(s.out, "  %s\n", key)
		}
	}
	ran := len(s.passed) + len(s.failed) + len(s.skipped)
	if ran == 0 {
		fmt.Fprintf(s.out, "%s: no test ran\n", name)
	}
	fmt.Fprintf(s.out, "%s: %d passed, %d failed, %d skipped\n", name, len(s.passed), len(s.failed)+len(s.broken), len(s.skipped))
	return ran > 0 && len(s.failed)+len(s.broken) == 0
}

// reason finds what a test said when it skipped itself: the last "file.go:12: text" of its output.
func reason(output string) string {
	found := "no reason given"
	for text := range strings.SplitSeq(output, "\n") {
		text = strings.TrimSpace(text)
		if _, after, ok := strings.Cut(text, ".go:"); ok {
			if _, why, ok := strings.Cut(after, ": "); ok {
				found = why
			}
		}
	}
	return found
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
