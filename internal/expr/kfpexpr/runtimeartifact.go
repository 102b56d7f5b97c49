package kfpexpr

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// runtimeArtifact writes an artifact as KFP's RuntimeArtifact.
func runtimeArtifact(a program.Artifact) map[string]any {
	m := map[string]any{"name": a.Name, "uri": a.URI}
	if a.Type != "" {
		t := map[string]any{"schemaTitle": a.Type}
		if isInstanceSchema(a.Type) {
			t = map[string]any{"instanceSchema": a.Type}
		}
		if a.TypeVersion != "" {
			t["schemaVersion"] = a.TypeVersion
		}
		m["type"] = t
	}
	if len(a.Metadata) > 0 {
		m["metadata"] = a.Metadata
	} else {
		m["metadata"] = map[string]any{}
	}
	if a.CustomPath != "" {
		m["customPath"] = a.CustomPath
	}
	return m
}

// isInstanceSchema tells a schema in YAML from a title such as "system.Model".
func isInstanceSchema(t string) bool { return strings.ContainsAny(t, "\n:") }

// EncodeArtifact writes an artifact as KFP's RuntimeArtifact in JSON.
func (l *language) EncodeArtifact(a program.Artifact) (string, error) {
	return compact(runtimeArtifact(a)), nil
}

// DecodeArtifact reads a RuntimeArtifact, an ArtifactList (its first), or our own form of an artifact.
func (l *language) DecodeArtifact(src string) (program.Artifact, error) {
	var doc struct {
		program.Artifact
		Type            json.RawMessage   `json:"type"`
		SnakeCustomPath string            `json:"custom_path"`
		Artifacts       []json.RawMessage `json:"artifacts"`
	}
	if err := json.Unmarshal([]byte(src), &doc); err != nil {
		return program.Artifact{}, fmt.Errorf("an artifact's description: %w", err)
	}
	if len(doc.Artifacts) > 0 {
		return l.DecodeArtifact(string(doc.Artifacts[0]))
	}
	a := doc.Artifact
	if a.CustomPath == "" {
		a.CustomPath = doc.SnakeCustomPath
	}
	if len(doc.Type) > 0 && string(doc.Type) != "null" {
		if err := decodeType(doc.Type, &a); err != nil {
			return program.Artifact{}, err
		}
	}
	if a.URI == "" && len(a.Store) == 0 {
		return program.Artifact{}, fmt.Errorf("an artifact's description has neither a uri nor a store: %s", short(src))
	}
	if m, ok := normalise(a.Metadata).(map[string]any); ok {
		a.Metadata = m
	}
	if len(a.Store) == 0 {
		a.Store = StoreOf(a.URI)
	}
	return a, nil
}

// decodeType reads a type: our text, or KFP's ArtifactTypeSchema in either spelling.
func decodeType(raw json.RawMessage, a *program.Artifact) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, &a.Type)
	}
	var fields map[string]string
	if err := json.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("an artifact's type: %w", err)
	}
	for _, key := range []string{"instanceSchema", "instance_schema", "schemaTitle", "schema_title", "schemaUri", "schema_uri"} {
		if a.Type == "" {
			a.Type = fields[key]
		}
	}
	for _, key := range []string{"schemaVersion", "schema_version"} {
		if a.TypeVersion == "" {
			a.TypeVersion = fields[key]
		}
	}
	return nil
}
