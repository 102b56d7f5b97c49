package argo

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Source is a file's name, for messages, and content.
type Source struct {
	Name string
	Data []byte
}

// apiVersionForm finds Argo's API version in a text that may not be YAML.
var apiVersionForm = regexp.MustCompile(`(?m)^\s*\{?\s*["']?apiVersion["']?\s*:\s*["']?argoproj\.io/`)

// IsArgo says whether some document of a file is of Argo's API, also where the file is not valid otherwise.
func IsArgo(data []byte) bool {
	if len(data) > maxBytes || !bytes.Contains(data, []byte(Group+"/")) {
		return false
	}
	docs, _, err := parseDocuments(data)
	for _, d := range docs {
		for _, d := range expand(d) {
			if strings.HasPrefix(d.str("apiVersion"), Group+"/") {
				return true
			}
		}
	}
	return err != nil && apiVersionForm.Match(data)
}

// document is one object of a file.
type document struct {
	file string
	// prefix goes before paths: "document 2: " in a file of several.
	prefix string
	tree   *node
	kind   string
	name   string
	// object is a pointer to one of our types or Kubernetes'; nil for kinds that nothing here looks at.
	object any
	// dropped are the paths of values that could not be used and were left out; missing those of required fields that
	// were not there. Both have been reported.
	dropped, missing []string
	main             bool
}

// sound says whether everything could be used, what is inside single templates aside.
func (d *document) sound() bool {
	return !slices.ContainsFunc(d.dropped, func(path string) bool { return !insideTemplate.MatchString(path) })
}

// insideTemplate matches the path of something inside a template.
var insideTemplate = regexp.MustCompile(`^spec\.(workflowSpec\.)?templates\[\d+\].`)

// whole says whether everything at a path and below it could be used.
func (d *document) whole(path string) bool {
	return !slices.ContainsFunc(d.dropped, func(dropped string) bool { return within(dropped, path) })
}

// known says whether what is wrong at a path only follows from what has been reported: it, something that it is in, or
// something in it was left out or missing.
func (d *document) known(path string) bool {
	return slices.ContainsFunc(d.missing, func(m string) bool { return within(path, m) }) ||
		slices.ContainsFunc(d.dropped, func(dropped string) bool { return within(path, dropped) || within(dropped, path) })
}

// within says whether a path is another, or leads on from there.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (other == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Bundle is what was read: the object to run and all that it may refer to.
type Bundle struct {
	docs []*document
	// problems are those of reading; about says of which document each is, nil of a file.
	problems Problems
	about    []*document

	// Templates and ClusterTemplates by name.
	Templates        map[string]*WorkflowTemplate
	ClusterTemplates map[string]*WorkflowTemplate
	// ConfigMaps and Secrets are the values by name and key.
	ConfigMaps map[string]map[string]string
	Secrets    map[string]map[string]string

	// run is the document to run; nil where there is none. origin tells where templates were written.
	run    *document
	origin map[*WorkflowTemplate]*document
}

// Load reads the main source, which has the object to run, and others with what that refers to. What is wrong with
// single fields is kept for [Bundle.Validate]; the error, [Problems], is for texts that could not be read at all.
func Load(main Source, others []Source) (*Bundle, error) {
	b := &Bundle{
		Templates: map[string]*WorkflowTemplate{}, ClusterTemplates: map[string]*WorkflowTemplate{},
		ConfigMaps: map[string]map[string]string{}, Secrets: map[string]map[string]string{},
		origin: map[*WorkflowTemplate]*document{},
	}
	var unreadable Problems
	for i, src := range append([]Source{main}, others...) {
		trees, notes, err := parseDocuments(src.Data)
		for _, n := range notes {
			b.note(nil, Problem{File: src.Name, Line: n.line, Column: n.column, Message: n.text, Warning: true})
		}
		if err != nil {
			unreadable = append(unreadable, syntaxProblem(src, err))
			continue
		}
		var docs []*node
		for _, t := range trees {
			docs = append(docs, expand(t)...)
		}
		if len(docs) == 0 && i == 0 {
			unreadable = append(unreadable, Problem{File: src.Name, Message: "is empty; it should hold an object with apiVersion, kind, metadata and spec"})
		}
		for j, t := range docs {
			d := &document{file: src.Name, tree: t, main: i == 0}
			if len(docs) > 1 {
				d.prefix = fmt.Sprintf("document %d: ", j+1)
			}
			b.read(d)
			b.docs = append(b.docs, d)
		}
	}
	if len(unreadable) > 0 {
		return nil, append(unreadable, b.problems.Errors()...)
	}
	b.choose()
	return b, nil
}

// tabIndent matches a line that begins with a tab.
var tabIndent = regexp.MustCompile(`(?m)^ *\t`)

var lineForm = regexp.MustCompile(`line (\d+): `)

func syntaxProblem(src Source, err error) Problem {
	p := Problem{File: src.Name, Message: err.Error()}
	if m := lineForm.FindStringSubmatch(p.Message); m != nil {
		_, _ = fmt.Sscan(m[1], &p.Line)
		if strings.Contains(p.Message, "did not find expected") {
			p.Line++ // the YAML parser, unlike its scanner, counts lines from 0
		}
		p.Message = strings.Replace(p.Message, m[0], "", 1)
	}
	if strings.Contains(p.Message, "cannot start any token") && tabIndent.Match(src.Data) {
		p.Message += "; YAML is indented with spaces, not with tabs"
	}
	return p
}

// expand gives the objects of a list object, or the document itself.
func expand(n *node) []*node {
	items := n.get("items")
	if !strings.HasSuffix(n.str("kind"), "List") || items == nil || items.kind != listNode {
		return []*node{n}
	}
	return items.items
}

// maxProblems is how many problems are kept: beyond it another says no more.
const maxProblems = 1000

// problem adds a problem of a document.
func (b *Bundle) problem(d *document, p Problem) {
	p.File = d.file
	p.place(d.tree)
	p.Path = d.prefix + p.Path
	b.note(d, p)
}

func (b *Bundle) note(d *document, p Problem) {
	if len(b.problems) < maxProblems {
		b.problems, b.about = append(b.problems, p), append(b.about, d)
	}
}

// reading gives what was wrong with the documents. Of those that are only at hand, and not used, it is a warning.
func (b *Bundle) reading(used map[*document]bool) Problems {
	out := slices.Clone(b.problems)
	for i, d := range b.about {
		if d != nil && !d.main && !used[d] {
			out[i].Warning, out[i].InvalidSpec = true, false
		}
	}
	return out
}
