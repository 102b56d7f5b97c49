package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// cacheKey says under what a task's outputs are kept; no key is that it has no part in the cache.
type cacheKey struct {
	scope, key string
	maxAge     time.Duration
}

// badKeyError says that the author's cache request makes no sense; the task fails with it.
type badKeyError struct{ message string }

func (e *badKeyError) Error() string { return e.message }

// memoizeKey is what Argo takes for a key.
var memoizeKey = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9]*$`)

func (p *plugin) keyOf(r *v1alpha1.TaskReviewRequest) (cacheKey, error) {
	if p.content {
		return contentKey(r)
	}
	c := r.Task.Cache
	if c == nil {
		return cacheKey{}, nil
	}
	switch c.Scheme {
	case "key":
		return authorsKey(r, c)
	case "kfp":
		if p.cfg.Fingerprint == nil {
			return cacheKey{}, nil
		}
		fingerprint, err := p.cfg.Fingerprint(r)
		if err != nil {
			return cacheKey{}, fmt.Errorf("fingerprint: %w", err)
		}
		return cacheKey{scope: join("kfp", r.Workflow.Namespace, r.Workflow.Pipeline), key: fingerprint}, nil
	}
	return cacheKey{}, &badKeyError{fmt.Sprintf("cache: unknown scheme %q", c.Scheme)}
}

// authorsKey is Argo's memoize: the key as the author wrote it, in the cache that he named.
func authorsKey(r *v1alpha1.TaskReviewRequest, c *v1alpha1.Cache) (cacheKey, error) {
	switch {
	case c.Key == "":
		return cacheKey{}, &badKeyError{"invalid cache key: it is empty, or something in it has no value"}
	case !memoizeKey.MatchString(c.Key):
		return cacheKey{}, &badKeyError{fmt.Sprintf("invalid cache key: %s: letters, digits and \"-\" only, the first no \"-\"", c.Key)}
	}
	k := cacheKey{scope: join(KeyScope, r.Workflow.Namespace, c.Name), key: c.Key}
	if c.MaxAge != "" {
		age, err := parseAge(c.MaxAge)
		if err != nil {
			return cacheKey{}, &badKeyError{"invalid maxAge: " + err.Error()}
		}
		k.maxAge = age
	}
	return k, nil
}

// contentKey is made from all that decides what a task does: its template and its inputs. Artifacts count by their
// digest where it is known, else by where they lie. Names of task and workflow, labels and attempts do not count.
func contentKey(r *v1alpha1.TaskReviewRequest) (cacheKey, error) {
	if r.Scope != v1alpha1.ScopeTask || r.Task.TemplateDigest == "" || suspends(r.Task.TemplateSpec) {
		return cacheKey{}, nil
	}
	type input struct {
		Digest   string         `json:"digest,omitempty"`
		URI      string         `json:"uri,omitempty"`
		Store    any            `json:"store,omitempty"`
		SubPath  string         `json:"subPath,omitempty"`
		Type     string         `json:"type,omitempty"`
		Metadata map[string]any `json:"metadata,omitempty"`
	}
	content := struct {
		Template   string             `json:"template"`
		Parameters map[string]any     `json:"parameters,omitempty"`
		Artifacts  map[string][]input `json:"artifacts,omitempty"`
	}{Template: r.Task.TemplateDigest, Parameters: r.Task.Inputs.Parameters, Artifacts: map[string][]input{}}
	for name, list := range r.Task.Inputs.Artifacts {
		inputs := make([]input, len(list))
		for i, a := range list {
			in := input{Digest: a.Digest, SubPath: a.SubPath, Type: a.Type, Metadata: a.Metadata}
			if a.Digest == "" {
				in.URI = a.URI
				if len(a.Store) > 0 {
					if err := json.Unmarshal(a.Store, &in.Store); err != nil {
						return cacheKey{}, fmt.Errorf("input artifact %s: store: %w", name, err)
					}
				}
			}
			inputs[i] = in
		}
		content.Artifacts[name] = inputs
	}
	data, err := json.Marshal(content) // keys of maps are sorted
	if err != nil {
		return cacheKey{}, err
	}
	sum := sha256.Sum256(data)
	return cacheKey{scope: join("content", r.Workflow.Namespace), key: hex.EncodeToString(sum[:])}, nil
}

// suspends says whether a template waits for a person: that is never the same twice.
func suspends(spec json.RawMessage) bool {
	var template struct {
		Suspend *json.RawMessage `json:"suspend"`
	}
	return json.Unmarshal(spec, &template) == nil && template.Suspend != nil
}

// KeyScope is the kind of scopes of Argo's memoize. Its parts are a namespace and the name of a cache; the first part of the
// other kinds is a namespace, too.
const KeyScope = "key"

// ParseScope takes a scope apart into its kind and parts.
func ParseScope(scope string) (kind string, parts []string, err error) {
	kind, rest, _ := strings.Cut(scope, "/")
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", nil, fmt.Errorf("cache: %q is no scope: %w", scope, err)
		}
		part, err := strconv.Unquote(quoted)
		if err != nil {
			return "", nil, fmt.Errorf("cache: %q is no scope: %w", scope, err)
		}
		parts = append(parts, part)
		rest = strings.TrimPrefix(rest[len(quoted):], "/")
	}
	return kind, parts, nil
}

// join builds a scope whose parts cannot run into each other.
func join(kind string, parts ...string) string {
	for _, part := range parts {
		kind += "/" + strconv.Quote(part)
	}
	return kind
}

// parseAge reads a duration above zero: Go's form or whole seconds.
func parseAge(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numberErr := strconv.ParseInt(text, 10, 32)
		if numberErr != nil {
			return 0, fmt.Errorf(`must be a duration such as "10s", "24h" or "3600" (seconds), not %q`, text)
		}
		d = time.Duration(seconds) * time.Second
	}
	if d <= 0 {
		return 0, fmt.Errorf("must be above zero, not %q", text)
	}
	return d, nil
}

// strict reads JSON and refuses unknown fields.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("has something after its end")
	}
	return nil
}
