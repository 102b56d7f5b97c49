package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestProgramsThatStandIn(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "trainer"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	vars := &environment{values: map[string]string{"PATH": bin}}
	a := &attempt{cmd: engine.StartTask{ArtifactPaths: map[string][]string{"tool": {"/in/trainer"}}}}
	c := program.Container{Mounts: []program.Mount{{Path: "/volume/"}}}
	tests := map[string]struct{ name, want string }{
		"of the same name on PATH":        {"/opt/app/trainer", "trainer"},
		"nothing of that name":            {"/opt/app/server", "/opt/app/server"},
		"there is one at that place":      {filepath.Join(bin, "trainer"), filepath.Join(bin, "trainer")},
		"an input brings it":              {"/in/trainer", "/in/trainer"},
		"a volume brings it":              {"/volume/bin/trainer", "/volume/bin/trainer"},
		"a name that is looked up anyway": {"trainer", "trainer"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := a.stand(c, test.name, vars); got != test.want {
				t.Errorf("stand(%q) = %q, want %q", test.name, got, test.want)
			}
		})
	}
}
