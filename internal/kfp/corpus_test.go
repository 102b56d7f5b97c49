package kfp

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-ml/sluice/internal/program"
)

// corpusFile is a line of the conformance corpus's index.
type corpusFile struct {
	path, class string
	inputs      map[string]any
}

// corpus reads the index; the test is skipped where the corpus is not there.
func corpus(t *testing.T) (string, []corpusFile) {
	t.Helper()
	root := os.Getenv("CONFORMANCE")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	dir := filepath.Join(root, "kfp")
	f, err := os.Open(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Skipf("no conformance corpus at %s: set CONFORMANCE to its folder", root)
	}
	defer f.Close()
	var files []corpusFile
	for lines := bufio.NewScanner(f); lines.Scan(); {
		cols := strings.Split(lines.Text(), "\t")
		if len(cols) < 4 || cols[0] == "file" {
			continue
		}
		c := corpusFile{path: cols[0], class: cols[1]}
		if err := json.Unmarshal([]byte(cols[3]), &c.inputs); err != nil {
			t.Fatalf("%s: inputs: %v", c.path, err)
		}
		files = append(files, c)
	}
	if len(files) == 0 {
		t.Fatal("the corpus's index is empty")
	}
	return dir, files
}

func TestCorpusCompiles(t *testing.T) {
	dir, files := corpus(t)
	for _, c := range files {
		t.Run(c.path, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, c.path))
			if err != nil {
				t.Fatal(err)
			}
			if c.class == "argo" {
				if IsIR(data) {
					t.Error("an Argo manifest is taken for a compiled pipeline")
				}
				return
			}
			if !IsIR(data) {
				t.Error("it is not taken for a compiled pipeline")
			}
			p, err := Load(Source{Name: c.path, Data: data})
			if c.class == "invalid" {
				if err == nil {
					t.Fatal("it is accepted")
				}
				if !strings.HasPrefix(err.Error(), c.path+":") || !strings.Contains(err.Error(), "; ") {
					t.Errorf("the error does not say where and what to do: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			artifacts := map[string][]program.Artifact{}
			for n := range p.Spec.Root.InputDefinitions.Artifacts {
				artifacts[n] = []program.Artifact{{Name: n, URI: "/given/" + n}}
			}
			prog, err := p.Compile(Options{Parameters: c.inputs, Artifacts: artifacts})
			if err != nil {
				t.Fatal(err)
			}
			checkProgram(t, prog)
			if _, err := p.Compile(Options{Lint: true}); err != nil {
				t.Errorf("lint: %v", err)
			}
		})
	}
}

// checkProgram checks what holds for every program: it survives JSON, and all that it refers to is there.
func checkProgram(t *testing.T, p *program.Program) {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatalf("the program is no JSON: %v", err)
	}
	var again program.Program
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatalf("the program cannot be read back: %v", err)
	}
	check := func(where string, c program.Call) {
		target := p.Templates[c.Template.Scope+"/"+c.Template.Name]
		if target == nil {
			t.Errorf("%s: no template %s/%s", where, c.Template.Scope, c.Template.Name)
			return
		}
		declared := map[string]bool{}
		for _, in := range target.Inputs.Parameters {
			declared[in.Name] = true
		}
		for _, a := range c.Arguments.Parameters {
			if !declared[a.Name] {
				t.Errorf("%s: gives %s, which %s does not declare", where, a.Name, target.Key)
			}
		}
	}
	check("entry", p.Entry)
	for key, tmpl := range p.Templates {
		if (tmpl.Task == nil) == (tmpl.Graph == nil) {
			t.Errorf("template %s is not exactly one of task and graph", key)
		}
		if tmpl.Graph == nil {
			continue
		}
		for _, c := range tmpl.Graph.Calls {
			check(key+"."+c.Name, c)
			for _, n := range c.Needs {
				if n < 0 || n >= len(tmpl.Graph.Calls) {
					t.Errorf("%s.%s needs call %d", key, c.Name, n)
				}
			}
		}
	}
}
