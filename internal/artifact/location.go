package artifact

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// location is what the kinds of store have in common, as far as keys and addresses go.
type location struct {
	Path     string `json:"path"`
	Bucket   string `json:"bucket"`
	Key      string `json:"key"`
	URL      string `json:"url"`
	Repo     string `json:"repo"`
	Endpoint string `json:"endpoint"`
}

// URI is the address of a store block for people; empty where it has none.
func URI(block program.JSON) string {
	kind, body, err := Kind(block)
	if err != nil {
		return ""
	}
	var l location
	if err := json.Unmarshal(body, &l); err != nil {
		return ""
	}
	switch kind {
	case "folder":
		return l.Path
	case "http":
		return l.URL
	case "git":
		return l.Repo
	case "raw":
		return ""
	case "s3", "gcs":
		if kind == "gcs" {
			kind = "gs"
		}
		return kind + "://" + path.Join(l.Bucket, l.Key)
	}
	return kind + "://" + l.Key
}

// WithKey gives a store block with another key in the same store: of s3 and its like the key, of http the last part of the
// URL, of folder the last part of the path, unless the key is an absolute path.
func WithKey(block program.JSON, key string) (program.JSON, error) {
	kind, body, err := Kind(block)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("artifact store %s: %w", kind, err)
	}
	switch kind {
	case "raw", "git":
		return nil, fmt.Errorf("a %s artifact has no key", kind)
	case "folder":
		old, _ := fields["path"].(string)
		fields["path"] = beside(old, key)
	case "http":
		old, _ := fields["url"].(string)
		fields["url"] = old[:strings.LastIndexByte(old, '/')+1] + strings.TrimPrefix(key, "/")
	default:
		fields["key"] = key
	}
	return json.Marshal(map[string]any{kind: fields})
}

// beside is an absolute key, or one relative to the folder that old lies in.
func beside(old, key string) string {
	if path.IsAbs(key) {
		return path.Clean(key)
	}
	return path.Join(path.Dir(old), path.Clean("/"+key))
}

// Kinds are the kinds of store block that [Open] knows.
func Kinds() []string { return []string{"folder", "git", "http", "raw", "s3"} }

// Key is a block's key or path in its store; empty where it has none.
func Key(block program.JSON) string {
	_, body, err := Kind(block)
	if err != nil {
		return ""
	}
	var l location
	if err := json.Unmarshal(body, &l); err != nil {
		return ""
	}
	if l.Path != "" {
		return l.Path
	}
	return l.Key
}
