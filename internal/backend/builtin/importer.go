package builtin

import (
	"errors"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// importer records an artifact that lies somewhere as an output. Whether an earlier record of the same artifact is to be
// taken (reimport false) is for whoever records lineage.
func importer(cmd engine.StartTask) engine.Result {
	imp := cmd.Body.Import
	if imp == nil || imp.URI.Text == nil {
		return broken(errors.New("the importer has no URI"))
	}
	a := program.Artifact{Name: imp.Output, URI: *imp.URI.Text, Type: imp.Type, Metadata: imp.Metadata}
	// An address that nothing here can read is still an artifact; who needs its bytes will be told.
	if block, err := artifact.BlockOf(a.URI); err == nil {
		a.Store = block
	}
	return engine.Result{
		Phase:   engine.SucceededPhase,
		Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{imp.Output: {a}}},
	}
}
