package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// ErrNoSecret says that a store's credentials are in a Secret that is not known here.
var ErrNoSecret = errors.New("secret not known")

// secretError keeps the words of whoever knows the secrets.
type secretError struct{ error }

func (e secretError) Is(target error) bool { return target == ErrNoSecret }
func (e secretError) Unwrap() error        { return e.error }

// StandIn lets a folder of this machine stand in for object stores that cannot be reached from it: those whose
// credentials were not given, and those for which there is no client here. So a manifest written for a cluster runs on a
// laptop, and its tasks still hand artifacts to each other by the places that it names.
type StandIn struct {
	// Folder holds the artifacts, as <kind>/<bucket>/<key>; empty is that nothing stands in.
	Folder string
	// Used is told each time, with the reason; nil is not told.
	Used func(place, folder string, reason error)
}

// remote are the kinds of stores that a folder can stand in for.
var remote = []string{"s3", "gcs", "azure", "oss", "hdfs", "artifactory", "plugin"}

// open gives the folder for a block that could not be opened; the reason is given back where nothing stands in.
func (s StandIn) open(kind string, body program.JSON, reason error) (Store, error) {
	if s.Folder == "" || !slices.Contains(remote, kind) || !(errors.Is(reason, ErrNoSecret) || errors.Is(reason, ErrUnknownKind)) {
		return nil, reason
	}
	var at struct {
		Bucket, Container, Name, Endpoint string
		Key, Blob, Path, URL              string
	}
	if err := json.Unmarshal(body, &at); err != nil {
		return nil, reason
	}
	place := first(at.Bucket, at.Container, at.Name)
	key := first(at.Key, at.Blob, at.Path)
	if u, err := url.Parse(at.URL); err == nil && at.URL != "" {
		place, key = u.Host, u.Path
	}
	local := filepath.Join(kind, first(place, "default"), filepath.FromSlash(strings.TrimPrefix(key, "/")))
	if key == "" || !filepath.IsLocal(local) {
		return nil, fmt.Errorf("%w; and %q is no place in a folder that could stand in", reason, key)
	}
	if s.Used != nil {
		s.Used(kind+" "+first(place, "default"), filepath.Join(s.Folder, kind), reason)
	}
	return folderStore{path: filepath.Join(s.Folder, local)}, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
