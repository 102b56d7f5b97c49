package memo

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/expr/argoexpr"
	"github.com/sluice-ml/sluice/internal/hook/cache"
	"github.com/sluice-ml/sluice/internal/program"
)

// form is how entries are written.
type form interface {
	encode(e cache.Entry) (string, error)
	decode(text string) (*cache.Entry, error)
	// hit is the text of an entry that was used.
	hit(text string, at time.Time) (string, error)
	// used is when an entry was made or used last; zero where that cannot be read.
	used(text string) time.Time
}

// errElsewhere says that an entry's artifacts lie where this controller cannot say where that is.
var errElsewhere = errors.New("an artifact's location does not name its store")

// ours is the whole entry as JSON.
type ours struct{}

func (ours) encode(e cache.Entry) (string, error) {
	if e.LastHit.IsZero() {
		e.LastHit = e.Created
	}
	data, err := json.Marshal(e)
	return string(data), err
}

func (ours) decode(text string) (*cache.Entry, error) {
	e := &cache.Entry{}
	return e, json.Unmarshal([]byte(text), e)
}

func (f ours) hit(text string, at time.Time) (string, error) {
	e, err := f.decode(text)
	if err != nil {
		return "", err
	}
	e.Hits++
	e.LastHit = at
	return f.encode(*e)
}

func (f ours) used(text string) time.Time {
	e, err := f.decode(text)
	if err != nil {
		return time.Time{}
	}
	return later(e.Created, e.LastHit)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// argos is the form of Argo's controller. It keeps the ID of the node, and neither its workflow nor how often it was used.
type argos struct{}

// argoEntry is an entry as Argo has it. Times are whole seconds in UTC.
type argoEntry struct {
	NodeID   string          `json:"nodeID"`
	Outputs  json.RawMessage `json:"outputs"`
	Creation time.Time       `json:"creationTimestamp"`
	LastHit  time.Time       `json:"lastHitTimestamp"`
}

// argoOutputs are a node's outputs. Artifacts are read by what also reads descriptions of them in manifests.
type argoOutputs struct {
	Parameters []argoParameter   `json:"parameters,omitempty"`
	Artifacts  []json.RawMessage `json:"artifacts,omitempty"`
	Result     *string           `json:"result,omitempty"`
	ExitCode   *string           `json:"exitCode,omitempty"`
}

type argoParameter struct {
	Name  string          `json:"name"`
	Value *argo.AnyString `json:"value,omitempty"`
}

func (argos) encode(e cache.Entry) (string, error) {
	success := "0" // only what succeeded is kept
	out := argoOutputs{Result: e.Outputs.Result, ExitCode: &success}
	for _, name := range slices.Sorted(maps.Keys(e.Outputs.Parameters)) {
		text, ok := e.Outputs.Parameters[name].(string)
		if !ok {
			data, err := json.Marshal(e.Outputs.Parameters[name])
			if err != nil {
				return "", fmt.Errorf("output parameter %s: %w", name, err)
			}
			text = string(data)
		}
		value := argo.AnyString(text)
		out.Parameters = append(out.Parameters, argoParameter{name, &value})
	}
	for _, name := range slices.Sorted(maps.Keys(e.Outputs.Artifacts)) {
		list := e.Outputs.Artifacts[name]
		if len(list) != 1 {
			return "", fmt.Errorf("output artifact %s: %d of one name cannot be written in Argo's form", name, len(list))
		}
		a := program.Artifact(list[0])
		a.Name = name
		text, err := argoexpr.New().EncodeArtifact(a)
		if err != nil {
			return "", err
		}
		out.Artifacts = append(out.Artifacts, json.RawMessage(text))
	}
	outputs, err := json.Marshal(out)
	if err != nil {
		return "", err
	}
	at := e.Created.UTC().Truncate(time.Second)
	last := at
	if !e.LastHit.IsZero() {
		last = e.LastHit.UTC().Truncate(time.Second)
	}
	data, err := json.Marshal(argoEntry{NodeID: program.NodeID(e.Workflow, e.Task), Outputs: outputs, Creation: at, LastHit: last})
	return string(data), err
}

func (argos) decode(text string) (*cache.Entry, error) {
	var entry argoEntry
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return nil, err
	}
	out := argoOutputs{}
	if len(entry.Outputs) > 0 {
		if err := json.Unmarshal(entry.Outputs, &out); err != nil {
			return nil, fmt.Errorf("outputs: %w", err)
		}
	}
	e := &cache.Entry{Created: entry.Creation, LastHit: entry.LastHit, Task: entry.NodeID}
	e.Outputs.Result = out.Result
	for _, p := range out.Parameters {
		if p.Value == nil {
			continue
		}
		if e.Outputs.Parameters == nil {
			e.Outputs.Parameters = map[string]any{}
		}
		e.Outputs.Parameters[p.Name] = string(*p.Value)
	}
	for _, raw := range out.Artifacts {
		a, err := argoexpr.New().DecodeArtifact(string(raw))
		if err != nil {
			return nil, fmt.Errorf("outputs: %w", err)
		}
		if !located(a) {
			return nil, errElsewhere
		}
		if e.Outputs.Artifacts == nil {
			e.Outputs.Artifacts = map[string][]v1alpha1.Artifact{}
		}
		e.Outputs.Artifacts[a.Name] = []v1alpha1.Artifact{v1alpha1.Artifact(a)}
	}
	return e, nil
}

// located says whether an artifact's location is whole. Argo's controller keeps the key only of what is in the workflow's own
// repository, and which that was is not said.
func located(a program.Artifact) bool {
	kind, body, err := artifact.Kind(a.Store)
	if err != nil {
		return a.URI != ""
	}
	var l struct{ Bucket, Container, Name string }
	if json.Unmarshal(body, &l) != nil {
		return false
	}
	switch kind {
	case "s3", "gcs", "oss":
		return l.Bucket != ""
	case "azure":
		return l.Container != ""
	case "plugin":
		return l.Name != ""
	}
	return true
}

// hit leaves what it does not know as it is.
func (argos) hit(text string, at time.Time) (string, error) {
	var entry map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return "", err
	}
	if entry == nil {
		return "", errors.New("it is null")
	}
	now, err := json.Marshal(at.UTC().Truncate(time.Second))
	if err != nil {
		return "", err
	}
	entry["lastHitTimestamp"] = now
	data, err := json.Marshal(entry)
	return string(data), err
}

func (argos) used(text string) time.Time {
	var e argoEntry
	if json.Unmarshal([]byte(text), &e) != nil {
		return time.Time{}
	}
	return later(e.Creation, e.LastHit)
}

// shrink takes entries away that were not used for the longest time, until a ConfigMap is small enough to be written; never
// the one of key.
func shrink(o *corev1.ConfigMap, f form, key string) {
	size := 0
	for _, v := range o.Data {
		size += len(v)
	}
	for _, v := range o.BinaryData {
		size += len(v)
	}
	if size <= maxData {
		return
	}
	type aged struct {
		key  string
		last time.Time
	}
	var others []aged
	for k, text := range o.Data {
		if k == key {
			continue
		}
		others = append(others, aged{k, f.used(text)}) // what cannot be read goes first
	}
	slices.SortFunc(others, func(a, b aged) int { return a.last.Compare(b.last) })
	for _, a := range others {
		if size <= maxData {
			return
		}
		size -= len(o.Data[a.key])
		delete(o.Data, a.key)
	}
}
