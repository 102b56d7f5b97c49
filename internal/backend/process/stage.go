package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// stageInputs brings the input artifacts into the task folder, or says where the executor can take them from.
func (a *attempt) stageInputs() ([]spec.Input, error) {
	if len(a.cmd.Inputs.Artifacts) == 0 {
		return nil, nil
	}
	staged := filepath.Join(a.folder, spec.StagedIn)
	if err := errors.Join(removeAll(staged), os.Mkdir(staged, 0o700)); err != nil {
		return nil, fmt.Errorf("stage inputs: %w", err)
	}
	var declared map[string]program.InputArtifact
	if t := a.cmd.Template; t != nil {
		declared = make(map[string]program.InputArtifact, len(t.Inputs.Artifacts))
		for _, in := range t.Inputs.Artifacts {
			declared[in.Name] = in
		}
	}
	var inputs []spec.Input
	for _, name := range slices.Sorted(maps.Keys(a.cmd.Inputs.Artifacts)) {
		paths := a.cmd.ArtifactPaths[name]
		for i, art := range a.cmd.Inputs.Artifacts[name] {
			if i >= len(paths) || paths[i] == "" {
				continue // described, but not wanted in the task
			}
			in, err := a.stageInput(art, path.Join(spec.StagedIn, strconv.Itoa(len(inputs))))
			if err != nil {
				return nil, fmt.Errorf("input artifact %s: %w", name, err)
			}
			in.Name, in.Path = name, paths[i]
			in.Mode, in.Recurse = declared[name].Mode, declared[name].Recurse
			inputs = append(inputs, in)
		}
	}
	return inputs, nil
}

func (a *attempt) stageInput(art program.Artifact, staged string) (spec.Input, error) {
	if art.Store != nil {
		kind, body, err := artifact.Kind(art.Store)
		if err != nil {
			return spec.Input{}, err
		}
		if kind == "raw" && art.SubPath == "" {
			var raw struct {
				Data string `json:"data"`
			}
			if err := json.Unmarshal(body, &raw); err != nil {
				return spec.Input{}, fmt.Errorf("raw artifact: %w", err)
			}
			return spec.Input{Data: &raw.Data}, nil
		}
	}
	if err := artifact.Fetch(a.ctx, art, filepath.Join(a.folder, staged), a.b.cfg.Artifacts); err != nil {
		return spec.Input{}, err
	}
	return spec.Input{From: staged}, nil
}

func unquote(data program.JSON) (string, error) {
	var text string
	err := json.Unmarshal(data, &text)
	return text, err
}
