package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// The longest that a file should and may be, in lines.
const (
	SoftLines = 400
	HardLines = 800
)

// Use forbids calls of functions outside of some folders, or inside of some.
type Use struct {
	// Calls are qualified by import path: "os.Getenv".
	Calls []string
	// OnlyIn are the only folders that may; NotIn those that must not. One of them is set.
	OnlyIn []string
	NotIn  []string
	Why    string
}

// Uses are the calls that only some folders may make.
func Uses() []Use {
	return []Use{
		{
			Calls:  []string{"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "syscall.Getenv", "syscall.Environ"},
			OnlyIn: []string{"cmd", "internal/cli", "test", "examples"},
			Why:    "the environment is read only in cmd/ and internal/cli, which hand its values down",
		},
		{
			Calls: []string{
				"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker", "time.Tick", "time.AfterFunc",
				"github.com/google/uuid.New", "github.com/google/uuid.NewString",
			},
			NotIn: []string{"internal/engine", "internal/expr", "internal/program"},
			Why:   "time and chance come in with events",
		},
		{
			Calls: globalRandom(),
			NotIn: []string{"internal/engine", "internal/expr", "internal/program"},
			Why:   "chance comes in with events: make a generator from the event's seed",
		},
	}
}

// globalRandom are the functions of math/rand/v2 that draw from the process' own source.
func globalRandom() []string {
	var calls []string
	for _, name := range []string{
		"ExpFloat64", "Float32", "Float64", "Int", "Int32", "Int32N", "Int64", "Int64N", "IntN", "N", "NormFloat64", "Perm", "Shuffle",
		"Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN",
	} {
		calls = append(calls, "math/rand/v2."+name)
	}
	return calls
}

// Single names packages that exactly one file of the module may import.
func Single() map[string]string {
	return map[string]string{
		"modernc.org/sqlite": "internal/store",
	}
}

// Source is a parsed file of the module.
type Source struct {
	Folder, Name string
	Lines        int
	Imports      map[string]string // local name → import path
	Paths        []string
	Calls        []Call
}

// Call is a use of a name of an imported package.
type Call struct {
	Name string // "os.Getenv"
	Line int
}

// Parse reads the Go files of a package that are compiled into it (its tests are not looked at).
func Parse(p Package) ([]Source, error) {
	folder, ok := relative(p.ImportPath)
	if !ok {
		return nil, nil
	}
	var sources []Source
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		source, err := parse(folder, name, text)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source)
	}
	return sources, nil
}

var version = regexp.MustCompile(`^v[0-9]+$`)

func parse(folder, name string, text []byte) (Source, error) {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, text, parser.SkipObjectResolution)
	if err != nil {
		return Source{}, fmt.Errorf("parse %s/%s: %w", folder, name, err)
	}
	source := Source{Folder: folder, Name: name, Lines: bytes.Count(text, []byte("\n")), Imports: map[string]string{}}
	if ast.IsGenerated(file) {
		source.Lines = 0
	}
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return Source{}, fmt.Errorf("parse %s/%s: import %s: %w", folder, name, spec.Path.Value, err)
		}
		source.Paths = append(source.Paths, path)
		local := filepath.Base(path)
		if version.MatchString(local) { // a major version is no name: math/rand/v2 is rand
			local = filepath.Base(filepath.Dir(path))
		}
		if spec.Name != nil {
			local = spec.Name.Name
		}
		source.Imports[local] = path
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		ident, ok := selector.X.(*ast.Ident)
		if !ok {
			return true
		}
		if path, ok := source.Imports[ident.Name]; ok {
			source.Calls = append(source.Calls, Call{Name: path + "." + selector.Sel.Name, Line: positions.Position(selector.Pos()).Line})
		}
		return true
	})
	return source, nil
}

// CheckUses reports calls from where they may not be made.
func CheckUses(uses []Use, sources []Source) []string {
	var found []string
	for _, use := range uses {
		for _, source := range sources {
			in := func(folder string) bool { return within(source.Folder, folder) }
			if slices.ContainsFunc(use.OnlyIn, in) || len(use.NotIn) > 0 && !slices.ContainsFunc(use.NotIn, in) {
				continue
			}
			for _, call := range source.Calls {
				if slices.Contains(use.Calls, call.Name) {
					found = append(found, fmt.Sprintf("%s/%s:%d uses %s: %s", source.Folder, source.Name, call.Line, call.Name, use.Why))
				}
			}
		}
	}
	return found
}

// CheckSingle reports packages that more than one file imports, or one in the wrong folder.
func CheckSingle(single map[string]string, sources []Source) []string {
	var found []string
	for path, folder := range single {
		var importers []string
		for _, source := range sources {
			if slices.Contains(source.Paths, path) {
				importers = append(importers, source.Folder+"/"+source.Name)
				if !within(source.Folder, folder) {
					found = append(found, fmt.Sprintf("%s/%s imports %s, which only a file in %s may", source.Folder, source.Name, path, folder))
				}
			}
		}
		if len(importers) > 1 {
			found = append(found, fmt.Sprintf("%s is imported by %v: keep it in one file", path, importers))
		}
	}
	return found
}

// CheckLines reports files that are too long, and warns of those that are getting there.
func CheckLines(sources []Source) (found, warnings []string) {
	for _, source := range sources {
		switch {
		case source.Lines > HardLines:
			found = append(found, fmt.Sprintf("%s/%s has %d lines: a file is about one thing and has at most %d", source.Folder, source.Name, source.Lines, HardLines))
		case source.Lines > SoftLines:
			warnings = append(warnings, fmt.Sprintf("%s/%s has %d lines; about %d is the habit here", source.Folder, source.Name, source.Lines, SoftLines))
		}
	}
	return found, warnings
}
