// Package corpus reads the indices of the conformance corpora: which manifests there are, what class each is of, and
// what is known of how it must end.
package corpus

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Manifest is one file of a corpus.
type Manifest struct {
	// Suite is "argo" or "kfp"; File its path in the suite's folder; Path where it lies.
	Suite, File, Path string
	// Class says what it needs, see the corpus' README.
	Class string
	// State is how the run must end: a phase, or "rejected". Random runs only have to be consistent.
	State  string
	Random bool
	// Needs are the paths of files to have first (Argo).
	Needs []string
	// Inputs are the parameters to give and Outputs the root output parameters that must come out (KFP).
	Inputs, Outputs map[string]any
}

// Suite is a corpus: its manifests and the folder of programs to have on PATH.
type Suite struct {
	Name, Folder, Bin string
	Manifests         []Manifest
}

// Read reads the suites of a corpora folder.
func Read(root string) ([]Suite, error) {
	var suites []Suite
	for _, name := range []string{"argo", "kfp"} {
		folder := filepath.Join(root, name)
		rows, err := table(filepath.Join(folder, "index.tsv"))
		if err != nil {
			return nil, err
		}
		s := Suite{Name: name, Folder: folder, Bin: filepath.Join(folder, "bin")}
		for _, row := range rows {
			m, err := manifest(name, folder, row)
			if err != nil {
				return nil, err
			}
			s.Manifests = append(s.Manifests, m)
		}
		suites = append(suites, s)
	}
	return suites, nil
}

func manifest(suite, folder string, row map[string]string) (Manifest, error) {
	m := Manifest{Suite: suite, File: row["file"], Path: filepath.Join(folder, filepath.FromSlash(row["file"])), Class: row["class"]}
	state, note, _ := strings.Cut(row["phase"]+row["state"], " ")
	m.State, m.Random = state, note == "(random)"
	for need := range strings.FieldsSeq(row["needs"]) {
		m.Needs = append(m.Needs, filepath.Join(folder, filepath.FromSlash(need)))
	}
	for column, into := range map[string]*map[string]any{"inputs": &m.Inputs, "outputs": &m.Outputs} {
		if row[column] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(row[column]), into); err != nil {
			return m, fmt.Errorf("%s/index.tsv: %s of %s: %w", suite, column, m.File, err)
		}
	}
	return m, nil
}

// ExpectedPath is where the recorded run of an Argo manifest lies.
func (m Manifest) ExpectedPath() string {
	folder := strings.TrimSuffix(m.Path, filepath.FromSlash(m.File))
	return filepath.Join(folder, "expected", strings.ReplaceAll(m.File, "/", "__")+".json")
}

// table reads a file of tab-separated columns whose first line names them.
func table(path string) ([]map[string]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	defer file.Close()
	var header []string
	var rows []map[string]string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if header == nil {
			header = fields
			continue
		}
		row := map[string]string{}
		for i, name := range header {
			if i < len(fields) {
				row[name] = fields[i]
			}
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read index %s: %w", path, err)
	}
	return rows, nil
}
