//go:build whole

package examples

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/pythonenv"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

// example is a manifest, and lines that its tasks must print.
type example struct {
	file   string
	python bool
	args   []string
	lines  []string
	// noUpload are tasks that may leave nothing in the artifact store.
	noUpload []string
}

func TestExamples(t *testing.T) {
	tests := map[string]example{
		"argo hello":   {file: "argo/hello.yaml", args: []string{"-p", "name=you"}, lines: []string{"hello you"}},
		"argo fan-out": {file: "argo/fan-out.yaml", args: []string{"-p", "upto=4"}, lines: []string{"the sum of [1, 4, 9, 16] is 30"}},
		"kfp pipeline": {file: "kfp/pipeline.yaml", python: true, args: []string{"-p", "message=hi"}, lines: []string{"hi: the best model is off by"}},
		"artifacts by metadata, argo": {
			file: "artifacts-by-metadata/argo/workflow.yaml", lines: []string{"the model in production says 50.5"},
			noUpload: []string{"driver", "publish"},
		},
		"artifacts by metadata, kfp": {
			file: "artifacts-by-metadata/kfp/pipeline.yaml", python: true, lines: []string{"the model in production says 50.5"},
			noUpload: []string{"driver", "describe", "importer"},
		},
	}
	root := sluicerun.Root(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.run(t, root) })
	}
}

func (e example) run(t *testing.T, root string) {
	t.Helper()
	p := sluicerun.Find(t)
	if e.python {
		bin, err := pythonenv.With(t.Context(), filepath.Join(root, "test", "requirements.txt"), filepath.Join(root, "build", "conformance", "python"))
		if err != nil {
			t.Skipf("no Python with kfp: %v", err)
		}
		p.Path = []string{bin}
	}
	args := append([]string{"run", "--name", "example", "--no-progress", filepath.Join(root, "examples", filepath.FromSlash(e.file))}, e.args...)
	out, err := p.Run(t.Context(), 3*time.Minute, args...)
	if err != nil {
		t.Fatal(err)
	}
	if out.Exit != 0 {
		t.Fatalf("exit code %d\n%s\n%s", out.Exit, out.Stdout, out.Stderr)
	}
	logs, err := p.Run(t.Context(), time.Minute, "logs", "example")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range e.lines {
		if !strings.Contains(string(logs.Stdout), line) {
			t.Errorf("no task printed %q:\n%s", line, logs.Stdout)
		}
	}
	for _, file := range stored(t, p.Home) {
		for part := range strings.SplitSeq(file, "/") {
			if slices.ContainsFunc(e.noUpload, func(task string) bool { return strings.Contains(part, "-"+task+"-") || part == task }) {
				t.Errorf("the artifact store has %s, although that task only describes artifacts", file)
			}
		}
	}
}

// stored are the files of the artifact store, relative to it.
func stored(t *testing.T, home string) []string {
	t.Helper()
	var files []string
	root := filepath.Join(home, "artifacts")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // no store yet is no file
		}
		relative, err := filepath.Rel(root, path)
		files = append(files, filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
