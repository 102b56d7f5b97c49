// Package fingerprint computes the key under which Kubeflow Pipelines keeps the outputs of a task: equal keys mean that
// earlier outputs may be reused. It is the same key as upstream's for the same task, image, command and given inputs,
// apart from the names of input artifacts, which upstream takes from its metadata store.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Key is what decides whether two tasks do the same work: upstream's CacheKey. Environment variables, resources and secrets
// are no part of it. Nil and empty mean the same everywhere but in Artifact.Metadata.
type Key struct {
	// InputArtifactNames are the identities of the input artifacts by input.
	InputArtifactNames map[string][]string
	// InputParameterValues are the parameters that the task was given; defaults of the component are left out.
	InputParameterValues map[string]any
	// OutputArtifactsSpec and OutputParametersSpec declare the outputs; a parameter's is the name of its type.
	OutputArtifactsSpec  map[string]Artifact
	OutputParametersSpec map[string]string
	// Image, CmdArgs (command and arguments, placeholders unresolved) and PVCNames describe the container.
	Image    string
	CmdArgs  []string
	PVCNames []string
}

// Artifact declares an output artifact. At most one of SchemaTitle, SchemaURI and InstanceSchema is set. A Metadata that is
// empty but not nil counts.
type Artifact struct {
	Name                                                  string
	SchemaTitle, SchemaURI, InstanceSchema, SchemaVersion string
	Metadata                                              map[string]any
}

// Sum gives the fingerprint: the hexadecimal SHA-256 of the key's protojson, written again by encoding/json.
func (k Key) Sum() (string, error) {
	// What protojson leaves out (empty lists, maps and texts) is left out here.
	doc := map[string]any{}
	if len(k.InputArtifactNames) > 0 {
		lists := make(map[string]any, len(k.InputArtifactNames))
		for name, ids := range k.InputArtifactNames {
			list := map[string]any{}
			if len(ids) > 0 {
				list["artifactNames"] = ids
			}
			lists[name] = list
		}
		doc["inputArtifactNames"] = lists
	}
	if len(k.InputParameterValues) > 0 {
		doc["inputParameterValues"] = k.InputParameterValues
	}
	if len(k.OutputArtifactsSpec) > 0 {
		specs := make(map[string]any, len(k.OutputArtifactsSpec))
		for name, a := range k.OutputArtifactsSpec {
			specs[name] = a.protojson()
		}
		doc["outputArtifactsSpec"] = specs
	}
	if len(k.OutputParametersSpec) > 0 {
		doc["outputParametersSpec"] = k.OutputParametersSpec
	}
	container := map[string]any{}
	if k.Image != "" {
		container["image"] = k.Image
	}
	if len(k.CmdArgs) > 0 {
		container["cmdArgs"] = k.CmdArgs
	}
	if len(k.PVCNames) > 0 {
		container["pvcNames"] = k.PVCNames
	}
	doc["containerSpec"] = container
	return sum(doc)
}

func (a Artifact) protojson() map[string]any {
	out := map[string]any{}
	if a.Name != "" {
		out["name"] = a.Name
	}
	schema := map[string]any{}
	for field, v := range map[string]string{
		"schemaTitle": a.SchemaTitle, "schemaUri": a.SchemaURI, "instanceSchema": a.InstanceSchema, "schemaVersion": a.SchemaVersion,
	} {
		if v != "" {
			schema[field] = v
		}
	}
	if len(schema) > 0 {
		out["type"] = schema
	}
	if a.Metadata != nil {
		out["metadata"] = a.Metadata
	}
	return out
}

// sum hashes a document after its numbers have become doubles, as upstream's second pass makes them.
func sum(doc map[string]any) (string, error) {
	first, err := json.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("cache key: %w", err)
	}
	var generic any
	if err := json.Unmarshal(first, &generic); err != nil {
		return "", fmt.Errorf("cache key: %w", err)
	}
	second, err := json.Marshal(generic)
	if err != nil {
		return "", fmt.Errorf("cache key: %w", err)
	}
	digest := sha256.Sum256(second)
	return hex.EncodeToString(digest[:]), nil
}

// Custom gives the fingerprint of a task with a cache key of the author's own (cachingOptions.cacheKey): the key counts,
// and the component, so that two components with the same key do not meet; nothing else does.
func Custom(component, cacheKey string) string {
	h := sha256.New()
	if component != "" {
		h.Write([]byte(component))
		h.Write([]byte{0})
	}
	h.Write([]byte(cacheKey))
	return hex.EncodeToString(h.Sum(nil))
}
