package argoexpr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// stores are the kinds of artifact locations: Argo's, and ours.
var stores = []string{"s3", "gcs", "azure", "oss", "hdfs", "http", "git", "artifactory", "raw", "plugin", "folder"}

// EncodeArtifact gives an artifact's JSON as Argo has it, the store block among its fields ({"name": ..., "s3": {...}}),
// with uri, type, metadata and what else is known of it besides.
func (l *Language) EncodeArtifact(a program.Artifact) (string, error) { return encodeArtifact(a) }

func encodeArtifact(a program.Artifact) (string, error) {
	data, err := json.Marshal(artifactMap(a))
	if err != nil {
		return "", fmt.Errorf("artifact %q: %w", a.Name, err)
	}
	return string(data), nil
}

// artifactMap is an artifact as a JSON value in Argo's form.
func artifactMap(a program.Artifact) map[string]any {
	m := map[string]any{}
	text := func(key, value string) {
		if value != "" {
			m[key] = value
		}
	}
	text("name", a.Name)
	text("uri", a.URI)
	text("type", a.Type)
	text("typeVersion", a.TypeVersion)
	text("subPath", a.SubPath)
	text("customPath", a.CustomPath)
	text("digest", a.Digest)
	if a.Size != 0 {
		m["size"] = a.Size
	}
	if len(a.Metadata) > 0 {
		m["metadata"] = deepCopy(a.Metadata)
	}
	if a.Archive != "" {
		m["archive"] = map[string]any{a.Archive: map[string]any{}}
	}
	var block map[string]any
	if json.Unmarshal(a.Store, &block) == nil {
		maps.Copy(m, block)
	}
	return m
}

// artifactKey is the key under which a store has an artifact; empty where there is none.
func artifactKey(a program.Artifact) string {
	var block map[string]struct {
		Key  string `json:"key"`
		Blob string `json:"blob"`
		Path string `json:"path"`
	}
	if json.Unmarshal(a.Store, &block) != nil {
		return ""
	}
	for _, b := range block {
		for _, key := range []string{b.Key, b.Blob, b.Path} {
			if key != "" {
				return key
			}
		}
	}
	return ""
}

// artifactField gives a part of an artifact that the scope holds as a whole: uri, key, json, type, metadata.<k>.
func artifactField(v any, field []string) (any, bool) {
	var a program.Artifact
	switch t := v.(type) {
	case program.Artifact:
		a = t
	case []program.Artifact:
		if len(t) != 1 {
			return nil, false
		}
		a = t[0]
	default:
		return nil, false
	}
	if len(field) == 1 {
		switch field[0] {
		case "uri":
			return a.URI, a.URI != ""
		case "key":
			key := artifactKey(a)
			return key, key != ""
		case "type":
			return a.Type, true
		case "name":
			return a.Name, true
		case "json":
			text, err := encodeArtifact(a)
			return text, err == nil
		case "metadata":
			if a.Metadata == nil {
				return map[string]any{}, true
			}
			return deepCopy(a.Metadata), true
		}
		return nil, false
	}
	if field[0] != "metadata" {
		return nil, false
	}
	v, ok := a.Metadata[strings.Join(field[1:], ".")]
	if ok || len(field) == 2 {
		return v, ok
	}
	v = any(a.Metadata)
	for _, key := range field[1:] {
		m, isMap := v.(map[string]any)
		if !isMap {
			return nil, false
		}
		if v, ok = m[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

// ignoredFields are those of Argo's artifacts that say how a template uses one, not what it is. The path and the key
// among them are shown to expressions.
var ignoredFields = []string{"path", "from", "fromExpression", "globalName", "optional", "deleted", "artifactGC",
	"artifactGc", "mode", "recurseMode", "archiveLogs"}

// flatFields are what an s3 location may consist of when it stands without its block.
var flatFields = []string{"endpoint", "bucket", "region", "insecure", "accessKeySecret", "secretKeySecret",
	"sessionTokenSecret", "roleARN", "useSDKCreds", "createBucketIfNotPresent", "encryptionOptions", "caSecret",
	"addressingStyle", "key"}

// DecodeArtifact reads an artifact's JSON: Argo's form with its store block ({"name": ..., "s3": {"bucket": ..., "key":
// ...}}), the same without the block ({"name": ..., "bucket": ..., "key": ...}, which is s3), and [program.Artifact]'s
// own ({"name": ..., "uri": ..., "store": {...}}).
func (l *Language) DecodeArtifact(text string) (program.Artifact, error) {
	a, err := decodeArtifact(text)
	if err != nil {
		return program.Artifact{}, fmt.Errorf("an artifact's description %s: %w", shorten(strings.TrimSpace(text)), err)
	}
	return a, nil
}

func decodeArtifact(text string) (program.Artifact, error) {
	var a program.Artifact
	if strings.TrimSpace(text) == "" {
		return a, errors.New("it is empty, and a JSON object is needed")
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return a, fmt.Errorf("it is no JSON object: %w", err)
	}
	if fields == nil {
		return a, errors.New("it is null, and a JSON object is needed")
	}
	d := artifactDecoder{fields: fields}
	d.read("name", &a.Name)
	d.read("uri", &a.URI)
	d.read("type", &a.Type)
	d.read("typeVersion", &a.TypeVersion)
	d.read("subPath", &a.SubPath)
	d.read("customPath", &a.CustomPath)
	d.read("digest", &a.Digest)
	d.read("size", &a.Size)
	a.Archive = d.archive()
	a.Metadata = d.metadata()
	a.Store = d.store()
	for _, name := range ignoredFields {
		delete(fields, name)
	}
	if len(fields) > 0 {
		unknown := make([]string, 0, len(fields))
		for name := range fields {
			unknown = append(unknown, name)
		}
		sort.Strings(unknown)
		d.fail(fmt.Errorf("unknown fields: %s", shorten(strings.Join(unknown, ", "))))
	}
	if len(d.errs) > 0 {
		return program.Artifact{}, errors.Join(d.errs...)
	}
	if a.URI == "" && a.Store == nil {
		return program.Artifact{}, errors.New(`it says nowhere where the artifact is: a "uri", a store block such as "s3", or a "key" is needed`)
	}
	if a.URI == "" {
		a.URI = storeURI(a.Store)
	}
	return a, nil
}

// artifactDecoder takes fields out one by one and keeps what is wrong with them.
type artifactDecoder struct {
	fields map[string]json.RawMessage
	errs   []error
}

func (d *artifactDecoder) fail(err error) { d.errs = append(d.errs, err) }

func (d *artifactDecoder) take(name string) (json.RawMessage, bool) {
	raw, ok := d.fields[name]
	delete(d.fields, name)
	return raw, ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

func (d *artifactDecoder) read(name string, into any) {
	if raw, ok := d.take(name); ok {
		if err := json.Unmarshal(raw, into); err != nil {
			d.fail(fmt.Errorf("%q: %w", name, err))
		}
	}
}

// archive reads "tar", or Argo's {"tar": {}}.
func (d *artifactDecoder) archive() string {
	raw, ok := d.take("archive")
	if !ok {
		return ""
	}
	var name string
	if json.Unmarshal(raw, &name) != nil {
		var block map[string]json.RawMessage
		if err := json.Unmarshal(raw, &block); err != nil || len(block) > 1 {
			d.fail(errors.New(`"archive" must be one of tar, zip and none`))
			return ""
		}
		for name = range block {
		}
	}
	switch name {
	case "", "tar", "zip", "none":
		return name
	}
	d.fail(fmt.Errorf(`"archive" must be one of tar, zip and none, not %q`, shorten(name)))
	return ""
}

func (d *artifactDecoder) metadata() map[string]any {
	raw, ok := d.take("metadata")
	if !ok {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var m map[string]any
	if err := decoder.Decode(&m); err != nil {
		d.fail(fmt.Errorf(`"metadata": %w`, err))
		return nil
	}
	v, err := normalise(m)
	if err != nil {
		d.fail(fmt.Errorf(`"metadata": %w`, err))
		return nil
	}
	m, _ = v.(map[string]any)
	return m
}

// store reads the one store block, our "store", or the fields of s3 without their block.
func (d *artifactDecoder) store() program.JSON {
	var found []string
	var block program.JSON
	if raw, ok := d.take("store"); ok {
		var m map[string]json.RawMessage
		if err := json.Unmarshal(raw, &m); err != nil || len(m) != 1 {
			d.fail(errors.New(`"store" must be an object with one key, such as {"s3": {...}}`))
			return nil
		}
		for kind, body := range m {
			if !slices.Contains(stores, kind) || !isObject(body) {
				d.fail(fmt.Errorf(`"store": %q is no kind of store, or no object`, shorten(kind)))
			}
		}
		found, block = append(found, "store"), raw
	}
	for _, kind := range stores {
		raw, ok := d.take(kind)
		if !ok {
			continue
		}
		if !isObject(raw) {
			d.fail(fmt.Errorf("%q must be an object", kind))
			continue
		}
		found, block = append(found, kind), storeBlock(kind, raw)
	}
	flat := map[string]json.RawMessage{}
	for _, name := range flatFields {
		if raw, ok := d.take(name); ok {
			flat[name] = raw
		}
	}
	// A key beside a block is what the expressions of Argo manifests see of it.
	if len(flat) > 0 && (len(found) == 0 || len(flat) > 1 || flat["key"] == nil) {
		body, err := json.Marshal(flat)
		if err != nil {
			d.fail(err)
			return nil
		}
		if flat["key"] == nil {
			d.fail(errors.New(`"key" is missing beside "bucket"`))
		}
		found, block = append(found, "bucket"), storeBlock("s3", body)
	}
	if len(found) > 1 {
		d.fail(fmt.Errorf("it names several stores: %s", strings.Join(found, ", ")))
	}
	return block
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// storeBlock is {"<kind>": body}.
func storeBlock(kind string, body json.RawMessage) program.JSON {
	return program.JSON(`{"` + kind + `":` + string(body) + `}`)
}
