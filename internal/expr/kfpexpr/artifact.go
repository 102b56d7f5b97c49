package kfpexpr

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
)

// artifacts gives the artifacts under a name of the task's inputs or outputs; none where there are none.
func artifacts(env expr.Env, side, name string) []program.Artifact {
	v, presence := env.Lookup([]string{side, "artifacts", name})
	if presence != expr.Present {
		return nil
	}
	return asArtifacts(v)
}

// asArtifacts reads what a scope gives for artifacts.
func asArtifacts(v any) []program.Artifact {
	switch v := v.(type) {
	case []program.Artifact:
		return v
	case program.Artifact:
		return []program.Artifact{v}
	case *program.Artifact:
		if v != nil {
			return []program.Artifact{*v}
		}
	case []any:
		var out []program.Artifact
		for _, e := range v {
			out = append(out, asArtifacts(e)...)
		}
		return out
	}
	return nil
}

// artifact resolves {{$.inputs.artifacts['x'].…}} and its like for outputs; of a list it is the first.
func (l *language) artifact(p placeholder, env expr.Env) (any, bool, error) {
	side, name, rest := p.steps[0], p.steps[2], p.steps[3:]
	if rest[0] == "path" && len(rest) == 1 {
		// The scope knows where it appears in the task better than the URI does.
		if v, presence := env.Lookup([]string{side, "artifacts", name, "path"}); presence == expr.Present {
			if s, ok := v.(string); ok && s != "" {
				return s, true, nil
			}
		}
	}
	list := artifacts(env, side, name)
	if len(list) == 0 {
		_, presence := env.Lookup([]string{side, "artifacts", name})
		return nil, true, &expr.UnresolvedError{Tag: p.tag, Skipped: presence == expr.Skipped}
	}
	a := list[0]
	if rest[0] == "metadata" {
		return metadata(a, p, rest[1:])
	}
	if len(rest) != 1 {
		return nil, false, nil
	}
	switch rest[0] {
	case "uri":
		return a.URI, true, nil
	case "path":
		return l.InputPath(a), true, nil
	case "name":
		return a.Name, true, nil
	case "type":
		return a.Type, true, nil
	case "key":
		return storeKey(a), true, nil
	case "json":
		s, err := l.EncodeArtifact(a)
		return s, true, err
	}
	return nil, false, nil
}

// metadata reads into an artifact's metadata; without steps it is all of it.
func metadata(a program.Artifact, p placeholder, steps []string) (any, bool, error) {
	var v any = a.Metadata
	if a.Metadata == nil {
		v = map[string]any{}
	}
	for _, s := range steps {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, true, &expr.UnresolvedError{Tag: p.tag}
		}
		if v, ok = m[s]; !ok {
			return nil, true, &expr.UnresolvedError{Tag: p.tag}
		}
	}
	return normalise(v), true, nil
}

// storeKey is the key of an artifact in its store: of a bucket's object its key, else what its URI says.
func storeKey(a program.Artifact) string {
	var blocks map[string]map[string]any
	if json.Unmarshal(a.Store, &blocks) == nil {
		for _, block := range blocks {
			for _, field := range []string{"key", "path"} {
				if s, ok := block[field].(string); ok && s != "" {
					return s
				}
			}
		}
	}
	if u, err := url.Parse(a.URI); err == nil && u.Scheme != "" {
		return strings.TrimPrefix(u.Path, "/")
	}
	return a.URI
}

// OutputArtifact places an output at <root>/<pipeline>/<run uid>/<task>/<id>/<output>, where the id stands for the node's
// path and attempt. Under a folder the URI is the plain path, so that the SDK's Artifact.path is that path.
func (l *language) OutputArtifact(o expr.OutputSite, decl program.OutputArtifact) (program.Artifact, string, error) {
	if o.Root == "" {
		return program.Artifact{}, "", fmt.Errorf("output artifact %q: the run has no artifact root", decl.Name)
	}
	// A query ("?endpoint=…") configures the store; it is no part of a name.
	root, query, configured := strings.Cut(o.Root, "?")
	id := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", o.Path, o.Attempt))
	task := o.Task
	if task == "" {
		task = "root"
	}
	var uri strings.Builder
	uri.WriteString(strings.TrimRight(root, "/"))
	for _, part := range []string{o.Program, o.UID, task, hex.EncodeToString(id[:4]), decl.Name} {
		uri.WriteString("/" + fileName(part))
	}
	a := program.Artifact{
		Name: decl.Name, URI: uri.String(), Type: decl.Type, TypeVersion: typeVersion(decl.Type), Metadata: maps.Clone(decl.Metadata),
		Archive: "none",
	}
	if configured {
		uri.WriteString("?" + query)
	}
	a.Store = StoreOf(uri.String())
	if decl.Path != "" {
		return a, decl.Path, nil
	}
	return a, l.InputPath(a), nil
}

// fileName makes a name safe as one part of a path.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r == 0 {
			return '-'
		}
		return r
	}, s)
	if s == "" || s == "." || s == ".." {
		return "_" + s
	}
	return s
}

func typeVersion(title string) string {
	if strings.HasPrefix(title, "system.") || strings.HasPrefix(title, "google.") {
		return "0.0.1"
	}
	return ""
}

// StoreOf gives the store block for a URI, nil for one that no store holds. The query of an S3 URI configures its store, as
// that of a KFP pipeline root does: endpoint, region, disableSSL (or disable_https) and s3ForcePathStyle (or use_path_style).
func StoreOf(uri string) program.JSON {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		if path.IsAbs(uri) {
			return block("folder", map[string]any{"path": uri})
		}
		return nil
	}
	rest, query, _ := strings.Cut(rest, "?")
	bucket, key, _ := strings.Cut(rest, "/")
	switch scheme {
	case "file":
		return block("folder", map[string]any{"path": strings.TrimPrefix(uri, "file://")})
	case "s3", "minio":
		return block("s3", s3Of(bucket, key, query))
	case "gs":
		return block("gcs", map[string]any{"bucket": bucket, "key": key})
	case "http", "https":
		return block("http", map[string]any{"url": uri})
	}
	return nil
}

// s3Of is an S3 store block. Settings of a query that it has no field for are left out.
func s3Of(bucket, key, query string) map[string]any {
	fields := map[string]any{"bucket": bucket, "key": key}
	settings, err := url.ParseQuery(query)
	if err != nil {
		return fields
	}
	for _, name := range []string{"endpoint", "region"} {
		if v := settings.Get(name); v != "" {
			fields[name] = v
		}
	}
	if settings.Get("disableSSL") == "true" || settings.Get("disable_https") == "true" {
		fields["insecure"] = true
	}
	if settings.Get("s3ForcePathStyle") == "true" || settings.Get("use_path_style") == "true" {
		fields["addressingStyle"] = "path"
	}
	return fields
}

func block(kind string, v map[string]any) program.JSON {
	return program.JSON(compact(map[string]any{kind: v}))
}

// InputPath is where an artifact appears in a task: where the task that made it kept it, else as its URI says.
func (l *language) InputPath(a program.Artifact) string {
	p := a.CustomPath
	if p == "" {
		p = pathOf(a.URI)
	}
	if ws, ok := a.Metadata["_kfp_workspace"].(bool); ok && ws {
		return path.Join(WorkspacePath, ".artifacts", p)
	}
	return p
}

// pathOf maps a URI to the path under which KFP's own tasks see it.
func pathOf(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	switch scheme {
	case "gs":
		return "/gcs/" + rest
	case "s3", "minio":
		return "/" + scheme + "/" + rest
	case "oci":
		return "/oci/" + strings.ReplaceAll(rest, "/", "_") + "/models"
	case "file":
		return rest
	}
	// No such scheme upstream: a folder of our own, distinct for each URI.
	sum := sha256.Sum256([]byte(uri))
	return "/tmp/kfp/inputs/" + hex.EncodeToString(sum[:6]) + "/" + fileName(path.Base(strings.TrimRight(rest, "/")))
}
