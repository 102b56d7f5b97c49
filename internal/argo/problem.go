package argo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a manifest.
type Problem struct {
	// File is the source's name; Line and Column count from 1, 0 where they are not known.
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Path is where in the document: "spec.templates[2].steps[0][1].template". It starts with "document 2: " in a
	// file of several documents. Empty is the file as a whole.
	Path string `json:"path,omitempty"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
	// Warning marks what does not stop a run.
	Warning bool `json:"warning,omitempty"`
	// InvalidSpec marks what Argo finds only after it accepted the object: its workflow then ends as Failed with the
	// message "invalid spec: " and Upstream, and without nodes. Everything else Argo refuses outright.
	InvalidSpec bool   `json:"invalidSpec,omitempty"`
	Upstream    string `json:"upstream,omitempty"`
}

// Error gives "file:line:column: path: message".
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if p.Line > 0 && p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": ")
	if p.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// place fills in where the path is, unless that is known.
func (p *Problem) place(tree *node) {
	if p.Line == 0 {
		at := tree.markOf(p.Path)
		p.Line, p.Column = at.line, at.column
	}
}

// Problems are all that is wrong with the manifests of a run.
type Problems []Problem

// Error lists all, a line each, in the order in which they stand in the files.
func (ps Problems) Error() string {
	ps = ps.Sorted()
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Sorted gives them by file, in the order in which files are first named, and by place.
func (ps Problems) Sorted() Problems {
	files := map[string]int{}
	for _, p := range ps {
		if _, ok := files[p.File]; !ok {
			files[p.File] = len(files)
		}
	}
	out := slices.Clone(ps)
	slices.SortStableFunc(out, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(files[a.File], files[b.File]), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return out
}

// Errors gives those that stop a run.
func (ps Problems) Errors() Problems {
	var out Problems
	for _, p := range ps {
		if !p.Warning {
			out = append(out, p)
		}
	}
	return out
}

// InvalidSpec gives the message with which Argo would end the workflow as Failed, and whether it would: all errors are
// such that Argo finds them only once it has accepted the object.
func (ps Problems) InvalidSpec() (string, bool) {
	message := ""
	for _, p := range ps {
		if p.Warning {
			continue
		}
		if !p.InvalidSpec {
			return "", false
		}
		if message == "" {
			message = p.Upstream
			if message == "" {
				message = p.Path + " " + p.Message
			}
		}
	}
	return "invalid spec: " + message, message != ""
}

// errOrNil gives the errors among ps as an error, or nil.
func (ps Problems) errOrNil() error {
	if errs := ps.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}
