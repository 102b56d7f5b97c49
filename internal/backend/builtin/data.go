package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// dataBlock is Argo's data template.
type dataBlock struct {
	Source struct {
		ArtifactPaths map[string]json.RawMessage `json:"artifactPaths"`
	} `json:"source"`
	Transformation []struct {
		Expression string `json:"expression"`
	} `json:"transformation"`
}

// data lists the paths of an artifact and transforms the list; each expression sees the list so far as data. The
// result is JSON.
func (b *Backend) data(ctx context.Context, cmd engine.StartTask, opts artifact.Options) engine.Result {
	value, err := b.listAndTransform(ctx, cmd.Body, opts)
	if err != nil {
		return broken(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return broken(fmt.Errorf("data: %w", err))
	}
	result := string(text)
	return engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Result: &result}}
}

func (b *Backend) listAndTransform(ctx context.Context, body program.Body, opts artifact.Options) (any, error) {
	var block dataBlock
	if err := json.Unmarshal(body.Data, &block); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	listed, err := paths(ctx, body.Source, opts, authorsKey(block.Source.ArtifactPaths))
	if err != nil {
		return nil, fmt.Errorf("data.source.artifactPaths: %w", err)
	}
	var value any = listed
	for i, t := range block.Transformation {
		if b.cfg.Eval == nil {
			return nil, errors.New("data: expressions cannot be evaluated here")
		}
		if value, err = b.cfg.Eval(t.Expression, map[string]any{"data": value}); err != nil {
			return nil, fmt.Errorf("data.transformation[%d]: %w", i, err)
		}
	}
	return value, nil
}

// authorsKey is the key that the author wrote; it may lie below the run's root.
func authorsKey(block map[string]json.RawMessage) string {
	for _, kind := range artifact.Kinds() {
		if body, there := block[kind]; there {
			if encoded, err := json.Marshal(map[string]json.RawMessage{kind: body}); err == nil {
				return artifact.Key(encoded)
			}
		}
	}
	return ""
}

// paths lists what lies below an artifact's location: keys in full, so that each names an artifact where the author's key
// named their folder.
func paths(ctx context.Context, source *program.Binding, opts artifact.Options, prefix string) ([]any, error) {
	if source == nil || len(source.Location) == 0 {
		return nil, errors.New("no location: name a store, such as s3")
	}
	s, err := artifact.Open(source.Location, opts)
	if err != nil {
		return nil, err
	}
	objects, err := s.List(ctx, "")
	if err != nil {
		return nil, err
	}
	if prefix == "" {
		prefix = artifact.Key(source.Location)
	}
	found := make([]any, len(objects))
	for i, o := range objects {
		found[i] = path.Join(prefix, o.Key)
	}
	return found, nil
}
