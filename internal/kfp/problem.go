package kfp

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a pipeline: where, what, and what to do about it.
type Problem struct {
	// File and Path say where: "pipeline.yaml", "root.dag.tasks.train.componentRef". Path may be empty. Line and Column
	// count from 1, and are 0 where they are not known.
	File, Path   string
	Line, Column int
	// What is wrong, and what to Do.
	What, Do string
}

// String gives "file:line:column: path: what; what to do".
func (p Problem) String() string {
	var b strings.Builder
	file := p.File
	if p.Line > 0 {
		file += fmt.Sprintf(":%d", p.Line)
	}
	if p.Line > 0 && p.Column > 0 {
		file += fmt.Sprintf(":%d", p.Column)
	}
	for _, part := range []string{file, p.Path} {
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
	file   string
	places places
	all    []Problem
	// dropped are the paths of values that could not be used, which has been reported. broken says that the rest cannot
	// be judged without one of them.
	dropped []string
	broken  bool
}

// add notes a problem at a path, unless it only follows from a value that could not be used.
func (p *problems) add(path, do, format string, args ...any) {
	for _, d := range p.dropped {
		if within(path, d) || within(d, path) {
			return
		}
	}
	line, column := p.places.find(path)
	p.all = append(p.all, Problem{File: p.file, Path: path, Line: line, Column: column, What: fmt.Sprintf(format, args...), Do: do})
}

// drop notes that the value at a path cannot be used.
func (p *problems) drop(path, do, format string, args ...any) {
	p.add(path, do, format, args...)
	p.dropped = append(p.dropped, path)
}

// err gives all problems in the order of the file, or nil.
func (p *problems) err() error {
	if len(p.all) == 0 {
		return nil
	}
	slices.SortStableFunc(p.all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path))
	})
	return &InvalidError{Problems: p.all}
}
