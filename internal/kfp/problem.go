package kfp

import (
	"fmt"
	"sort"
	"strings"
)

// Problem is one thing that is wrong with a pipeline: where, what, and what to do about it.
type Problem struct {
	// File and Path say where: "pipeline.yaml", "root.dag.tasks.train.componentRef". Path may be empty.
	File, Path string
	// What is wrong, and what to Do.
	What, Do string
}

// String gives "file: path: what; what to do".
func (p Problem) String() string {
	var b strings.Builder
	for _, part := range []string{p.File, p.Path} {
		if part != "" {
			b.WriteString(part)
			b.WriteString(": ")
		}
	}
	b.WriteString(p.What)
	if p.Do != "" {
		b.WriteString("; ")
		b.WriteString(p.Do)
	}
	return b.String()
}

// InvalidError is everything that is wrong with a pipeline or with what it is given, found at once.
type InvalidError struct{ Problems []Problem }

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong.
type problems struct {
	file string
	all  []Problem
}

// add notes a problem at a path. The text after "; " in the format, if any, says what to do.
func (p *problems) add(path, do, format string, args ...any) {
	p.all = append(p.all, Problem{File: p.file, Path: path, What: fmt.Sprintf(format, args...), Do: do})
}

// err gives all problems in a stable order, or nil.
func (p *problems) err() error {
	if len(p.all) == 0 {
		return nil
	}
	sort.SliceStable(p.all, func(i, j int) bool { return p.all[i].Path < p.all[j].Path })
	return &InvalidError{Problems: p.all}
}
