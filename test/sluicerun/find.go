package sluicerun

import (
	"os"
	"path/filepath"
	"testing"
)

// Find gives the program under test, bin/sluice of this tree or what SLUICE_BIN names, with a fresh home folder. It
// ends what is left running at the end of the test, and reports it as a failure.
func Find(t testing.TB) Program {
	t.Helper()
	binary := os.Getenv("SLUICE_BIN")
	if binary == "" {
		binary = filepath.Join(Root(t), "bin", "sluice")
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("no program to test at %s: make build", binary)
	}
	p := Program{Binary: binary, Home: t.TempDir()}
	t.Cleanup(func() {
		if rest := p.Rest(); len(rest) > 0 {
			t.Errorf("left running: processes %v", rest)
			p.KillRest()
		}
	})
	return p
}

// Root is the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("there is no go.mod above the test")
		}
		folder = parent
	}
}
