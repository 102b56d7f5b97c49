package artifact

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// Kind gives the one key of a store block, such as "s3", and what is under it.
func Kind(block program.JSON) (kind string, body program.JSON, err error) {
	var kinds map[string]json.RawMessage
	if err := json.Unmarshal(block, &kinds); err != nil {
		return "", nil, fmt.Errorf("artifact store block is not an object: %w", err)
	}
	// Argo's own settings beside the location are no kind.
	delete(kinds, "archiveLogs")
	names := slices.Sorted(maps.Keys(kinds))
	if len(names) != 1 {
		return "", nil, fmt.Errorf("artifact store block needs exactly one kind of store, has %d: %s", len(names), strings.Join(names, ", "))
	}
	return names[0], kinds[names[0]], nil
}

// Open gives the store that a block describes. Nothing is contacted yet.
func Open(block program.JSON, opts Options) (Store, error) {
	kind, body, err := Kind(block)
	if err != nil {
		return nil, err
	}
	var s Store
	switch kind {
	case "folder":
		s, err = openFolder(body, opts)
	case "raw":
		s, err = openRaw(body)
	case "http":
		s, err = openHTTP(body, opts)
	case "git":
		s, err = openGit(body, opts)
	case "s3":
		s, err = openS3(body, opts)
	default:
		return opts.StandIn.open(kind, body, fmt.Errorf("%w %q: known are %s", ErrUnknownKind, kind, strings.Join(Kinds(), ", ")))
	}
	if err != nil {
		return opts.StandIn.open(kind, body, fmt.Errorf("artifact store %s: %w", kind, err))
	}
	return s, nil
}

// OpenArtifact opens the store of an artifact: by its block, or by its URI where it has none.
func OpenArtifact(a program.Artifact, opts Options) (Store, error) {
	block := a.Store
	if block == nil {
		var err error
		if block, err = BlockOf(a.URI); err != nil {
			return nil, err
		}
	}
	return Open(block, opts)
}

// BlockOf makes a store block from a URI: an absolute path, or file, s3, minio, http and https URLs.
func BlockOf(uri string) (program.JSON, error) {
	if uri == "" {
		return nil, fmt.Errorf("artifact has neither a store nor a URI")
	}
	if strings.HasPrefix(uri, "/") {
		return json.Marshal(map[string]any{"folder": folderBlock{Path: uri}})
	}
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("artifact URI: %w", err)
	}
	switch u.Scheme {
	case "file":
		return json.Marshal(map[string]any{"folder": folderBlock{Path: u.Path}})
	case "http", "https":
		return json.Marshal(map[string]any{"http": map[string]any{"url": uri}})
	case "s3", "minio":
		block := map[string]any{"bucket": u.Host, "key": strings.TrimPrefix(u.Path, "/")}
		query := u.Query()
		for _, name := range []string{"endpoint", "region"} {
			if v := query.Get(name); v != "" {
				block[name] = v
			}
		}
		if query.Get("disableSSL") == "true" || query.Get("disable_https") == "true" {
			block["insecure"] = true
		}
		if query.Get("s3ForcePathStyle") == "true" || query.Get("use_path_style") == "true" {
			block["addressingStyle"] = "path"
		}
		return json.Marshal(map[string]any{"s3": block})
	}
	return nil, fmt.Errorf("%w for URI %q: use a path, file, http, https, s3 or minio", ErrUnknownKind, uri)
}
