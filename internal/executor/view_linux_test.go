package executor

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A mount that is gone from the machine is no loss to a task; one that could not be shown is.
func TestLayersThatAreMissing(t *testing.T) {
	var b viewBuilder
	here := t.TempDir()
	b.missing(filepath.Join(here, "gone"), errors.New("no such folder"))
	b.missing(here, errors.New("not permitted"))
	if d := cmp.Diff([]string{here + " is not there for the task: not permitted"}, b.warnings); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
