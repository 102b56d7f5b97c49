package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/program"
)

// artifactFlags reads --artifact flags: name=URI, name=path of this machine, or name={...}, an artifact's description with
// its type and metadata. A name that is given several times is a list.
func artifactFlags(texts []string) (map[string][]program.Artifact, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	out := map[string][]program.Artifact{}
	for _, text := range texts {
		name, where, ok := strings.Cut(text, "=")
		if !ok || name == "" || where == "" {
			return nil, usage("--artifact %s: give it as name=URI, name=path or name={\"uri\": ...}", text)
		}
		one, err := readArtifact(where)
		if err != nil {
			return nil, usage("--artifact %s: %w", name, err)
		}
		one.Name = name
		out[name] = append(out[name], one)
	}
	return out, nil
}

func readArtifact(where string) (program.Artifact, error) {
	a := program.Artifact{URI: where}
	if strings.HasPrefix(where, "{") {
		a = program.Artifact{}
		d := json.NewDecoder(strings.NewReader(where))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return a, fmt.Errorf("is not the description of an artifact, such as {\"uri\": ..., \"type\": ..., \"metadata\": {...}}: %w", err)
		}
		if a.URI == "" && a.Store == nil {
			return a, fmt.Errorf("its description has neither uri nor store")
		}
	}
	path, isFile := strings.CutPrefix(a.URI, "file://")
	if a.URI != "" && (isFile || !strings.Contains(a.URI, "://")) {
		abs, err := filepath.Abs(path)
		if err == nil {
			_, err = os.Stat(abs)
		}
		if err != nil {
			return a, fmt.Errorf("%w; give a URI, or the path of a file or folder", err)
		}
		a.URI = abs
	}
	if a.Store == nil {
		if block, err := artifact.BlockOf(a.URI); err == nil { // of others only the URI is known
			a.Store = block
		}
	}
	return a, nil
}
