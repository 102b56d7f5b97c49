package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// importer records an artifact that lies somewhere as an output. Its URI may also be an artifact's whole description in
// JSON, ours or KFP's RuntimeArtifact: then the artifact is the described one, with the importer's type and metadata
// where they are declared. Whether an earlier record of the same artifact is to be taken (reimport false) is for whoever
// records lineage.
func importer(cmd engine.StartTask) engine.Result {
	imp := cmd.Body.Import
	if imp == nil || imp.URI.Text == nil {
		return broken(errors.New("the importer has no URI"))
	}
	a := program.Artifact{URI: *imp.URI.Text}
	if strings.HasPrefix(strings.TrimSpace(a.URI), "{") {
		var err error
		if a, err = described(a.URI); err != nil {
			return broken(fmt.Errorf("the importer's URI looks like the description of an artifact: %w", err))
		}
	}
	a.Name = imp.Output
	if imp.Type != "" {
		a.Type = imp.Type
	}
	if len(imp.Metadata) > 0 {
		all := maps.Clone(a.Metadata)
		if all == nil {
			all = map[string]any{}
		}
		maps.Copy(all, imp.Metadata)
		a.Metadata = all
	}
	// An address that nothing here can read is still an artifact; who needs its bytes will be told.
	if block, err := artifact.BlockOf(a.URI); err == nil && a.Store == nil {
		a.Store = block
	}
	return engine.Result{
		Phase:   engine.SucceededPhase,
		Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{imp.Output: {a}}},
	}
}

// described reads an artifact's description.
func described(text string) (program.Artifact, error) {
	var form struct {
		program.Artifact
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal([]byte(text), &form); err != nil {
		return program.Artifact{}, err
	}
	a := form.Artifact
	var schema struct {
		SchemaTitle    string `json:"schemaTitle"`
		InstanceSchema string `json:"instanceSchema"`
	}
	if json.Unmarshal(form.Type, &a.Type) != nil && json.Unmarshal(form.Type, &schema) == nil {
		a.Type = schema.SchemaTitle + schema.InstanceSchema // a oneof
	}
	if a.URI == "" && a.Store == nil {
		return a, errors.New("it has neither a uri nor a store")
	}
	return a, nil
}
