package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// reach is what artifacts that a hook names may refer to. A hook is a stranger: what it names is read with the rights of
// whoever runs the workflow, and must not be more than the workflow could read without it.
type reach struct {
	// folders are absolute paths; what is in them may be read.
	folders []string
	// known are the artifacts that the workflow itself speaks of: they may be named again, and what lies below them.
	known []program.Artifact
}

// check says why an artifact may not be read; nil if it may.
//
//   - A path of this machine (a URI without a scheme or with "file", a folder store) must be in a folder, or a known
//     artifact or below one.
//   - A store that refers to Secrets must be a known artifact's, but for the key in it: otherwise a hook could send them
//     to an address of its own.
//   - An address of the link-local network (a cloud's metadata service is one) is refused.
//   - All else, s3://bucket/key and https://host/path for two, may be read: what opens it asks for rights itself.
func (r reach) check(a program.Artifact) error {
	for _, k := range r.known {
		if k.URI == a.URI && sameJSON(k.Store, a.Store) {
			return nil
		}
	}
	if err := r.checkURI(a.URI); err != nil {
		return err
	}
	if len(a.Store) == 0 {
		return nil
	}
	return r.checkStore(a.Store)
}

func (r reach) checkURI(uri string) error {
	if uri == "" {
		return nil
	}
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || strings.Contains(scheme, "/") {
		return r.checkPath(uri)
	}
	u, err := url.Parse(uri)
	if err != nil {
		return fmt.Errorf("its URI cannot be read: %w", err)
	}
	if u.Scheme == "file" {
		// Some read it as it stands, some with its escapes resolved.
		if err := r.checkPath(strings.TrimPrefix(rest, "//")); err != nil {
			return err
		}
		return r.checkPath(u.Path)
	}
	return checkHost(u.Hostname())
}

func (r reach) checkStore(store program.JSON) error {
	var block map[string]map[string]any
	if err := json.Unmarshal(store, &block); err != nil {
		return fmt.Errorf("its store is no store block: %w", err)
	}
	if refersToSecrets(block) && !r.knowsStore(store) {
		return fmt.Errorf("its store refers to Secrets and is none that the workflow speaks of")
	}
	for kind, body := range block {
		for field, value := range body {
			text, ok := value.(string)
			if !ok {
				continue
			}
			switch {
			case strings.EqualFold(kind, "folder"):
				if err := r.checkPath(text); err != nil {
					return err
				}
			case strings.EqualFold(field, "url"), strings.EqualFold(field, "repo"):
				if err := r.checkURI(text); err != nil {
					return err
				}
			case strings.EqualFold(field, "endpoint"):
				host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(text, "https://"), "http://"), "/")
				if err := checkHost((&url.URL{Host: host}).Hostname()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkPath holds a path against the folders and the known artifacts.
func (r reach) checkPath(p string) error {
	if !path.IsAbs(p) {
		return fmt.Errorf("%s is no absolute path", brief(p))
	}
	clean := path.Clean(p)
	for _, folder := range r.folders {
		if inFolder(clean, folder) {
			return nil
		}
	}
	for _, k := range r.known {
		for _, place := range localPaths(k) {
			if inFolder(clean, place) {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is outside of what the workflow may read: %s, and what it names itself",
		brief(clean), or(strings.Join(r.folders, ", "), "no folder"))
}

func inFolder(clean, folder string) bool {
	return clean == folder || folder == "/" || strings.HasPrefix(clean, folder+"/")
}

// localPaths are where an artifact lies on this machine; none for one that lies elsewhere.
func localPaths(a program.Artifact) []string {
	var out []string
	if p := strings.TrimPrefix(a.URI, "file://"); path.IsAbs(p) {
		out = append(out, path.Clean(p))
	}
	var block struct {
		Folder struct {
			Path string `json:"path"`
		} `json:"folder"`
	}
	if json.Unmarshal(a.Store, &block) == nil && path.IsAbs(block.Folder.Path) {
		out = append(out, path.Clean(block.Folder.Path))
	}
	return out
}

// checkHost refuses addresses that only reach the machine's own network segment.
func checkHost(host string) error {
	if ip, err := netip.ParseAddr(host); err == nil && (ip.Unmap().IsLinkLocalUnicast() || ip.IsLinkLocalMulticast()) {
		return fmt.Errorf("%s is a link-local address", host)
	}
	return nil
}

// refersToSecrets says whether a store block names Secrets anywhere: their fields all have it in their name.
func refersToSecrets(block map[string]map[string]any) bool {
	for _, body := range block {
		for field, value := range body {
			if value != nil && strings.Contains(strings.ToLower(field), "secret") || namesSecret(value) {
				return true
			}
		}
	}
	return false
}

func namesSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for field, value := range v {
			if strings.Contains(strings.ToLower(field), "secret") || namesSecret(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, namesSecret)
	}
	return false
}

// knowsStore says whether a known artifact is in the same store: all the same but for the key.
func (r reach) knowsStore(store program.JSON) bool {
	want := withoutKey(store)
	return slices.ContainsFunc(r.known, func(k program.Artifact) bool { return len(k.Store) > 0 && bytes.Equal(withoutKey(k.Store), want) })
}

// withoutKey is a store block without its key, in one form for all that are equal.
func withoutKey(store program.JSON) []byte {
	var block map[string]any
	if json.Unmarshal(store, &block) != nil {
		return store
	}
	delete(block, "archiveLogs") // an artifact repository's
	for _, body := range block {
		if fields, ok := body.(map[string]any); ok {
			delete(fields, "key")
			delete(fields, "keyFormat")
		}
	}
	data, err := json.Marshal(block)
	if err != nil {
		return store
	}
	return data
}

func sameJSON(a, b program.JSON) bool {
	var x, y any
	switch {
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	case json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil:
		return false
	}
	return asJSON(x) == asJSON(y)
}

// reachOf is what a hook may name for a node: the folder of the runs' artifacts, those of other runs included, since
// reuse is about them; and the artifacts that the workflow, the node's inputs and its own outputs name.
func (x *step) reachOf(n *Node) reach {
	var r reach
	if root := strings.TrimPrefix(x.s.Run.ArtifactRoot, "file://"); path.IsAbs(root) {
		root = path.Clean(root)
		if up := path.Dir(root); path.Base(root) == x.s.Run.UID && up != "/" { // a folder for each run, beside each other
			root = up
		}
		r.folders = append(r.folders, root)
	}
	add := func(m artifactMap) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			r.known = append(r.known, m[name]...)
		}
	}
	if len(x.s.Run.Repository) > 0 {
		r.known = append(r.known, program.Artifact{Store: x.s.Run.Repository})
	}
	add(x.s.Artifacts)
	add(n.Inputs.Artifacts)
	if n.work.Result != nil {
		add(n.work.Result.Outputs.Artifacts)
	}
	if n.Kind == Leaf {
		if places, _, err := x.places(n); err == nil {
			for _, name := range slices.Sorted(maps.Keys(places)) {
				r.known = append(r.known, places[name])
			}
		}
	}
	return r
}

// allowed says why an artifact that a hook names may not be read; nil if all may. The cache is trusted: what it has kept
// are outputs that a task had.
func (x *step) allowed(n *Node, h *Hook, named artifactMap) error {
	if len(named) == 0 || h.Cache {
		return nil
	}
	r := x.reachOf(n)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		for _, a := range named[name] {
			if err := r.check(a); err != nil {
				return fmt.Errorf("artifact %q: %w", name, err)
			}
		}
	}
	return nil
}
