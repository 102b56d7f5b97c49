package argoexpr

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// OutputArtifact says where an output artifact is stored, and its path in the task. Argo's default key is
// run/pod/name with the ending of its archive: .tgz, .zip, or none. A declared location is used as it is where it names a
// store of its own; one that has only a key is that key under the run's root.
func (l *Language) OutputArtifact(o expr.OutputSite, decl program.OutputArtifact) (program.Artifact, string, error) {
	a := program.Artifact{
		Name: decl.Name, Type: decl.Type, Metadata: maps.Clone(decl.Metadata), Archive: decl.Archive,
	}
	if a.Archive == "" {
		a.Archive = "tar"
	}
	key := path.Join(o.Run, o.Pod, decl.Name+ending(a.Archive))
	var declared string
	if len(decl.Location) > 0 {
		var own bool
		var err error
		declared, own, err = declaredKey(decl.Location)
		if err != nil {
			return program.Artifact{}, "", fmt.Errorf("output artifact %q: %w", decl.Name, err)
		}
		if own {
			a.Store, a.URI = decl.Location, storeURI(decl.Location)
			return a, decl.Path, nil
		}
	}
	var block program.JSON
	var err error
	if len(o.Repository) > 0 {
		block, err = inRepository(o.Repository, decl.Name+ending(a.Archive), key, declared)
	} else {
		block, err = under(o.Root, cmp.Or(declared, key))
	}
	if err != nil {
		return program.Artifact{}, "", fmt.Errorf("output artifact %q: %w", decl.Name, err)
	}
	a.Store, a.URI = block, storeURI(block)
	return a, decl.Path, nil
}

// InputPath is where an artifact without a declared path appears. Argo always declares one.
func (l *Language) InputPath(a program.Artifact) string {
	name := path.Base(path.Clean("/" + a.Name))
	if name == "/" {
		name = "artifact"
	}
	return "/tmp/" + name
}

func ending(archive string) string {
	switch archive {
	case "zip":
		return ".zip"
	case "none":
		return ""
	}
	return ".tgz"
}

// declaredKey looks at a store block: own is set where it names a store, and is not just a key in the run's.
func declaredKey(block program.JSON) (key string, own bool, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(block, &all); err != nil {
		return "", false, fmt.Errorf("its location is no JSON object: %w", err)
	}
	// A setting of Argo's that stands among the stores.
	delete(all, "archiveLogs")
	m := make(map[string]map[string]any, len(all))
	for kind, raw := range all {
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return "", false, fmt.Errorf("its location: %q must be an object: %w", kind, err)
		}
		m[kind] = fields
	}
	if len(m) > 1 {
		return "", false, fmt.Errorf("its location names several stores: %s", shorten(string(block)))
	}
	for kind, fields := range m {
		text := func(name string) string { s, _ := fields[name].(string); return s }
		switch kind {
		case "s3", "gcs", "oss":
			return text("key"), text("bucket") != "", nil
		case "azure":
			return text("blob"), text("container") != "", nil
		case "plugin":
			return text("key"), text("name") != "", nil
		}
		return "", true, nil
	}
	return "", false, nil
}

// inRepository is the store block of an output in an artifact repository: at the key that its author declared, else below
// the repository's keyFormat, else at the key that it has by default.
func inRepository(repository program.JSON, name, key, declared string) (program.JSON, error) {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(repository, &kinds); err != nil {
		return nil, fmt.Errorf("the artifact repository is no JSON object: %w", err)
	}
	delete(kinds, "archiveLogs")
	if len(kinds) != 1 {
		return nil, fmt.Errorf("the artifact repository must name one store, and names %d", len(kinds))
	}
	for kind, raw := range kinds {
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, fmt.Errorf("the artifact repository: %q must be an object: %w", kind, err)
		}
		keyField, formatField := "key", "keyFormat"
		if kind == "azure" {
			keyField, formatField = "blob", "blobNameFormat"
		}
		if format, _ := fields[formatField].(string); format != "" {
			key = path.Join(format, name)
		} else if prefix, _ := fields["keyPrefix"].(string); prefix != "" {
			key = path.Join(prefix, key)
		}
		delete(fields, formatField)
		delete(fields, "keyPrefix")
		fields[keyField] = cmp.Or(declared, key)
		return json.Marshal(map[string]any{kind: fields})
	}
	return nil, nil // there is one
}

// under is the store block of a key under a root: a folder's path, or the URI of a bucket and a prefix.
func under(root, key string) (program.JSON, error) {
	if clean := path.Clean("/" + key); clean == "/" || clean != "/"+strings.TrimSuffix(strings.TrimPrefix(key, "/"), "/") {
		return nil, fmt.Errorf("the key %q leads outside the artifact root", key)
	}
	scheme, rest, hasScheme := strings.Cut(root, "://")
	if !hasScheme || scheme == "file" {
		folder := root
		if hasScheme {
			folder = rest
		}
		if !path.IsAbs(folder) {
			return nil, fmt.Errorf("the artifact root %q is neither an absolute path nor a URI", root)
		}
		return block("folder", map[string]string{"path": path.Join(folder, key)})
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	if bucket == "" {
		return nil, fmt.Errorf("the artifact root %q names no bucket", root)
	}
	full := strings.TrimPrefix(path.Join(prefix, key), "/")
	switch scheme {
	case "s3", "minio":
		return block("s3", map[string]string{"bucket": bucket, "key": full})
	case "gs":
		return block("gcs", map[string]string{"bucket": bucket, "key": full})
	case "oss":
		return block("oss", map[string]string{"bucket": bucket, "key": full})
	}
	return nil, fmt.Errorf("the artifact root %q has a scheme that is not supported: use a folder, s3://, gs:// or oss://", root)
}

func block(kind string, fields map[string]string) (program.JSON, error) {
	data, err := json.Marshal(map[string]map[string]string{kind: fields})
	if err != nil {
		return nil, fmt.Errorf("the store block: %w", err)
	}
	return data, nil
}

// storeURI is the address of a store block, for people and for metadata; empty where it has none.
func storeURI(store program.JSON) string {
	var m map[string]struct {
		Bucket    string `json:"bucket"`
		Container string `json:"container"`
		Endpoint  string `json:"endpoint"`
		Key       string `json:"key"`
		Blob      string `json:"blob"`
		Path      string `json:"path"`
		URL       string `json:"url"`
		Repo      string `json:"repo"`
	}
	if json.Unmarshal(store, &m) != nil {
		return ""
	}
	for kind, b := range m {
		switch kind {
		case "folder":
			return b.Path
		case "http", "artifactory":
			return b.URL
		case "git":
			return b.Repo
		case "hdfs":
			return "hdfs://" + path.Clean("/"+b.Path)
		case "azure":
			return strings.TrimSuffix(b.Endpoint, "/") + "/" + path.Join(b.Container, b.Blob)
		case "s3", "oss":
			return kind + "://" + path.Join(b.Bucket, b.Key)
		case "gcs":
			return "gs://" + path.Join(b.Bucket, b.Key)
		}
	}
	return ""
}
