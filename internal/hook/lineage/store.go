package lineage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/metadata"
)

// Store records into the metadata store, as Kubeflow Pipelines' driver and launcher do: contexts system.Pipeline and
// system.PipelineRun, an execution, its artifacts with their events. Each of the two methods is one transaction.
type Store struct {
	Metadata *metadata.Store
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Start records a running execution.
func (s Store) Start(ctx context.Context, e Execution) (int64, error) {
	return s.put(ctx, e, s.inputs(e))
}

// Finish records how it ended and what it wrote.
func (s Store) Finish(ctx context.Context, e Execution) (int64, error) {
	return s.put(ctx, e, append(s.inputs(e), outputs(e)...))
}

func (s Store) put(ctx context.Context, e Execution, artifacts []metadata.ArtifactEvent) (int64, error) {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	recorded, err := s.Metadata.PutExecution(ctx, metadata.Record{
		Execution: metadata.Execution{
			ID:     e.ID,
			Type:   typeOf(e),
			Name:   e.Key,
			State:  metadata.ExecutionState(e.State),
			Custom: properties(e),
		},
		Artifacts: artifacts,
		Contexts:  contexts(e.Workflow),
	}, now())
	return recorded.ExecutionID, err
}

func typeOf(e Execution) string {
	if e.Scope != v1alpha1.ScopeTask {
		return metadata.DAGExecution
	}
	return metadata.ContainerExecution
}

func contexts(w v1alpha1.Workflow) []metadata.Context {
	run := metadata.Context{
		Type: metadata.PipelineRunContext,
		Name: w.UID,
		Custom: metadata.Properties{
			"namespace": w.Namespace, "resource_name": w.Name, "pipeline_root": w.ArtifactRoot, "display_name": w.Name,
		},
	}
	if w.Pipeline == "" {
		return []metadata.Context{run}
	}
	return []metadata.Context{{Type: metadata.PipelineContext, Name: w.Pipeline}, run}
}

// properties are the custom properties of an execution, under the names that Kubeflow Pipelines has for them.
func properties(e Execution) metadata.Properties {
	p := metadata.Properties{
		"display_name": e.Task.Name,
		"task_name":    e.Task.Name,
		"task_path":    e.Task.Path,
		"namespace":    e.Workflow.Namespace,
		"workflow":     e.Workflow.Name,
	}
	if e.Task.Template != "" {
		p["template"] = e.Task.Template
	}
	if e.Task.TemplateDigest != "" {
		p["template_digest"] = e.Task.TemplateDigest
	}
	if e.Task.Attempt > 0 {
		p["attempt"] = int64(e.Task.Attempt)
	}
	if len(e.Task.Inputs.Parameters) > 0 {
		p["inputs"] = e.Task.Inputs.Parameters
	}
	r := e.Result
	if r == nil {
		return p
	}
	if len(r.Outputs.Parameters) > 0 {
		p["outputs"] = r.Outputs.Parameters
	}
	if r.Message != "" {
		p["message"] = r.Message
	}
	if r.ExitCode != nil {
		p["exit_code"] = int64(*r.ExitCode)
	}
	return p
}

// inputs are the artifacts that an execution reads: those that are known by their URI, others are recorded now.
func (s Store) inputs(e Execution) []metadata.ArtifactEvent {
	return events(e.Task.Inputs.Artifacts, metadata.Input, true)
}

// outputs are those it wrote. A reused execution has the artifacts of the one that made them.
func outputs(e Execution) []metadata.ArtifactEvent {
	if e.Result == nil {
		return nil
	}
	return events(e.Result.Outputs.Artifacts, metadata.Output, e.Result.Reused)
}

func events(artifacts map[string][]v1alpha1.Artifact, typ metadata.EventType, adopt bool) []metadata.ArtifactEvent {
	var list []metadata.ArtifactEvent
	for _, name := range slices.Sorted(maps.Keys(artifacts)) {
		for i, a := range artifacts[name] {
			path := []any{name}
			if len(artifacts[name]) > 1 {
				path = append(path, i)
			}
			list = append(list, metadata.ArtifactEvent{Artifact: artifact(name, a), Type: typ, Path: path, Adopt: adopt})
		}
	}
	return list
}

func artifact(name string, a v1alpha1.Artifact) metadata.Artifact {
	custom := metadata.Properties{"display_name": name}
	maps.Copy(custom, a.Metadata)
	if a.Size > 0 {
		custom["size"] = a.Size
	}
	return metadata.Artifact{Type: a.Type, URI: uriOf(a), Digest: a.Digest, Custom: custom}
}

// uriOf is an artifact's URI, or, for one that has only a store block, a URI made from that: it names the same bytes
// wherever it appears.
func uriOf(a v1alpha1.Artifact) string {
	uri := a.URI
	if uri == "" {
		uri = storeURI(a.Store)
	}
	if uri != "" && a.SubPath != "" {
		uri = strings.TrimSuffix(uri, "/") + "/" + strings.TrimPrefix(a.SubPath, "/")
	}
	return uri
}

func storeURI(block json.RawMessage) string {
	var store map[string]struct {
		Bucket   string `json:"bucket"`
		Key      string `json:"key"`
		Path     string `json:"path"`
		URL      string `json:"url"`
		Repo     string `json:"repo"`
		Revision string `json:"revision"`
	}
	if len(block) == 0 || json.Unmarshal(block, &store) != nil {
		return ""
	}
	for kind, s := range store {
		switch {
		case kind == "folder" && s.Path != "":
			return "file://" + s.Path
		case s.Bucket != "" && s.Key != "":
			return kind + "://" + s.Bucket + "/" + s.Key
		case s.URL != "":
			return s.URL
		case s.Repo != "":
			return kind + "+" + s.Repo + "@" + s.Revision
		}
	}
	// Nothing that reads as a place: the block itself is the identity.
	sum := sha256.Sum256(block)
	return "store:" + hex.EncodeToString(sum[:16])
}
