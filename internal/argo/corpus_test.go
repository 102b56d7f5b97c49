package argo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpusEntry is a line of the corpus' index.
type corpusEntry struct {
	file, class, phase string
	needs              []string
}

// corpus reads the index of the conformance corpus, or skips the test where there is none.
func corpus(t *testing.T) (string, []corpusEntry) {
	t.Helper()
	root := os.Getenv("CONFORMANCE")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "conformance")
	}
	root = filepath.Join(root, "argo")
	data, err := os.ReadFile(filepath.Join(root, "index.tsv"))
	if err != nil {
		t.Skipf("no conformance corpus: %v; set CONFORMANCE to its folder", err)
	}
	var out []corpusEntry
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if f := strings.Split(line, "\t"); i > 0 && len(f) >= 4 {
			out = append(out, corpusEntry{f[0], f[1], f[2], strings.Fields(f[3])})
		}
	}
	if len(out) < 100 {
		t.Fatalf("the index has only %d entries", len(out))
	}
	return root, out
}

// loadEntry reads an entry's file with those that it needs.
func loadEntry(t *testing.T, root string, e corpusEntry) (*Bundle, error) {
	t.Helper()
	read := func(name string) Source {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return Source{Name: name, Data: data}
	}
	var others []Source
	for _, n := range e.needs {
		others = append(others, read(n))
	}
	return Load(read(e.file), others)
}

// expectation is what upstream did with a file.
type expectation struct {
	Result  string
	Message string
	Nodes   []expectedNode
}

type expectedNode struct {
	Name          string
	DisplayName   string
	Type          string
	Phase         string
	TemplateName  string
	TemplateScope string
	Boundary      string
	Children      []string
	OutboundNodes []string
}

func readExpectation(t *testing.T, root, file string) expectation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "expected", strings.ReplaceAll(file, "/", "__")+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var out expectation
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCorpus reads every manifest of the corpus. Those that upstream refuses, or ends as an invalid spec, must give
// errors of that class; all others must be free of errors and compile.
func TestCorpus(t *testing.T) {
	root, entries := corpus(t)
	for _, e := range entries {
		t.Run(e.file, func(t *testing.T) {
			b, err := loadEntry(t, root, e)
			expected := readExpectation(t, root, e.file)
			invalid := strings.HasPrefix(expected.Message, "invalid spec: ")
			rejected := e.class == "rejected" || e.phase == "rejected"
			if err != nil {
				if !rejected {
					t.Errorf("Load: %v", err)
				}
				return
			}
			p, err := b.Compile(Options{})
			switch {
			case rejected && err == nil:
				t.Error("Compile gave no error for a manifest that upstream refuses")
			case invalid && err == nil:
				t.Errorf("Compile gave no error; upstream says %q", expected.Message)
			case !rejected && !invalid && err != nil:
				t.Errorf("Compile: %v", err)
			case err == nil:
				if _, err := json.Marshal(p); err != nil {
					t.Error(err)
				}
			}
			if err != nil {
				t.Log(err)
			}
		})
	}
}
