package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// described makes an artifact from the files that a task wrote in place of its bytes.
func (o Options) described(base program.Artifact, found spec.Found) (program.Artifact, error) {
	if found.Metadata != nil {
		decode := o.Decode
		if decode == nil {
			decode = decodeArtifact
		}
		art, err := decode(strings.TrimSpace(*found.Metadata))
		if err != nil {
			return base, fmt.Errorf("metadataFrom: %w", err)
		}
		art.Name = base.Name
		if art.Type == "" {
			art.Type = base.Type
		}
		art.Metadata = merge(base.Metadata, art.Metadata)
		base = art
	}
	if found.Key != nil {
		art, err := located(base, strings.TrimSpace(*found.Key))
		if err != nil {
			return base, fmt.Errorf("keyFrom: %w", err)
		}
		base = art
	}
	return base, nil
}

func decodeArtifact(text string) (program.Artifact, error) {
	var art program.Artifact
	err := json.Unmarshal([]byte(text), &art)
	return art, err
}

// located puts an artifact where a text says: a store block, a URI or an absolute path, or else a key in the store that
// it was to go to.
func located(base program.Artifact, text string) (program.Artifact, error) {
	base.Digest, base.Size, base.Archive = "", 0, ""
	switch {
	case text == "":
		return base, errors.New("the file is empty: it must hold a location")
	case strings.HasPrefix(text, "{"):
		if _, _, err := artifact.Kind(program.JSON(text)); err != nil {
			return base, err
		}
		base.Store, base.URI = program.JSON(text), artifact.URI(program.JSON(text))
		return base, nil
	case strings.HasPrefix(text, "/") && kindOf(base.Store) != "s3", strings.Contains(text, "://"):
		base.URI = text
		block, err := artifact.BlockOf(text)
		if errors.Is(err, artifact.ErrUnknownKind) {
			base.Store = nil // only a description; whoever needs the bytes will be told
			return base, nil
		}
		base.Store = block
		return base, err
	}
	block, err := artifact.WithKey(base.Store, text)
	if err != nil {
		return base, err
	}
	base.Store, base.URI = block, artifact.URI(block)
	return base, nil
}

func kindOf(block program.JSON) string {
	kind, _, err := artifact.Kind(block)
	if err != nil {
		return ""
	}
	return kind
}
