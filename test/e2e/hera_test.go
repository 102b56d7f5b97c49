//go:build whole

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/test/pythonenv"
)

// What Hera builds runs as it is: script templates, a loop over what a task printed, and an aggregate of its outputs. (Hera
// itself submits to an Argo server, which is not there; its to_yaml goes to kubectl.)
func TestHeraWorkflow(t *testing.T) {
	ns := namespace(t, "e2e-hera")
	folder, err := filepath.Abs("../../build/python")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := pythonenv.With(t.Context(), "requirements.txt", folder)
	if err != nil {
		t.Skipf("hera cannot be installed here (no Python or package index?): %v", err)
	}
	text, err := exec.CommandContext(t.Context(), filepath.Join(bin, "python3"), "testdata/hera_workflow.py").Output()
	if err != nil {
		t.Fatalf("hera: %v", err)
	}
	w := finish(t, ns, submit(t, ns, string(text)), 2*time.Minute)
	w.succeeded(t)
	if got := w.result("total"); got != "5" {
		t.Errorf("the total is %q, want 5", got)
	}
}
