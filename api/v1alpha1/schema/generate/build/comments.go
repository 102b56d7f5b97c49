package build

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Comments are the comments of the types ("Task") and of their fields ("Task.ID"), each as one line.
type Comments struct{ types, fields map[string]string }

// Type is the comment of a type, empty where there is none.
func (c Comments) Type(name string) string { return c.types[name] }

// Field is the comment of a type's field, empty where there is none.
func (c Comments) Field(typ, field string) string { return c.fields[typ+"."+field] }

// ReadComments reads them from the Go files of a folder.
func ReadComments(folder string) (Comments, error) {
	c := Comments{types: map[string]string{}, fields: map[string]string{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return c, fmt.Errorf("no Go files in %s", folder)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return c, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ParseComments)
		if err != nil {
			return c, err
		}
		for _, decl := range file.Decls {
			if g, ok := decl.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				c.declared(g)
			}
		}
	}
	return c, nil
}

func (c Comments) declared(g *ast.GenDecl) {
	for _, spec := range g.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		c.types[t.Name.Name] = plain(g.Doc)
		s, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		before := ""
		for _, f := range s.Fields.List {
			// A comment over several fields is for all of them until there is an empty line; those without one share it.
			text := plain(f.Doc)
			for _, name := range f.Names {
				if text == "" && strings.HasPrefix(before, name.Name) {
					text = before
				}
				c.fields[t.Name.Name+"."+name.Name] = text
			}
			if text != "" {
				before = text
			}
		}
	}
}

// plain is a comment as one line, with Go's links as their names.
func plain(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	text := strings.Join(strings.Fields(doc.Text()), " ")
	for _, name := range []string{"TaskReviewList", "TemplateUse", "HeaderSignature", "APIVersion", "MaxRetryAfterSeconds"} {
		text = strings.ReplaceAll(text, "["+name+"]", name)
	}
	return text
}
