// Package hook puts task reviews to hook plugins: it loads and selects the registered hooks, and its [Dispatcher] asks
// them, by HTTP or in the same process, until each has answered or has failed for good. DESIGN.md's "The hook protocol"
// is its specification, docs/hooks.md the reference for users.
//
// The way of a review: the runner hands over an engine.AskHook; it joins the queue of its hook's lane; a call takes it,
// alone or in a list, to a caller (HTTP or built-in); the answer is checked and told to the sink as engine.Answered.
// A failed call waits and goes back into the queue, a pending one, too. What a lane does for one hook never holds up
// another.
package hook

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// Hook is a registered hook: a valid document and where it was found.
type Hook struct {
	v1alpha1.TaskHook
	// Origin is where the document stands, for messages: "hooks.yaml:12". Files that it names are beside it.
	Origin string
	// Refused, where it is set, says why the plugin may not be asked: each call fails with it, and then what the hook's
	// failurePolicy says happens.
	Refused string
}

// Name is the hook's name: the <hook> in {{hooks.<hook>.<key>}}.
func (h Hook) Name() string { return h.Metadata.Name }

// dir is the folder that relative files of the document start from.
func (h Hook) dir() string {
	name, _, _ := strings.Cut(h.Origin, ":")
	if name == "" {
		return ""
	}
	return filepath.Dir(name)
}

// policy is how a hook is asked, with all defaults filled in.
type policy struct {
	timeout     time.Duration
	deadline    time.Duration
	limit       int
	backoff     backoff
	concurrency int
	batch       int
}

// The defaults of a hook's spec; docs/hooks.md has them.
const (
	defaultTimeout     = 10 * time.Second
	defaultDeadline    = 24 * time.Hour
	defaultRetryLimit  = 5
	defaultConcurrency = 8
	defaultMaxRetries  = 1
)

func policyOf(spec *v1alpha1.TaskHookSpec) policy {
	p := policy{
		timeout:     defaultTimeout,
		deadline:    defaultDeadline,
		limit:       defaultRetryLimit,
		backoff:     backoff{first: time.Second, factor: 2, limit: time.Minute},
		concurrency: defaultConcurrency,
		batch:       max(1, int(spec.Batch)),
	}
	if spec.TimeoutSeconds > 0 {
		p.timeout = time.Duration(spec.TimeoutSeconds) * time.Second
	}
	if spec.DeadlineSeconds > 0 {
		p.deadline = time.Duration(spec.DeadlineSeconds) * time.Second
	}
	if spec.MaxConcurrency > 0 {
		p.concurrency = int(spec.MaxConcurrency)
	}
	if r := spec.Retry; r != nil {
		if r.Limit != nil {
			p.limit = int(*r.Limit)
		}
		if b := r.Backoff; b != nil {
			p.backoff = backoffOf(b, p.backoff)
		}
	}
	return p
}

// engineHook is the snapshot that the engine keeps for a run: what it needs itself, and in Settings the spec as it is
// now, apart from how the plugin is reached, which is read when it is called.
func engineHook(h Hook) (engine.Hook, error) {
	points, scopes := h.Spec.Points, h.Spec.Scope
	if len(points) == 0 {
		points = []v1alpha1.Point{v1alpha1.Pre, v1alpha1.Post}
	}
	if len(scopes) == 0 {
		scopes = []v1alpha1.Scope{v1alpha1.ScopeTask}
	}
	out := engine.Hook{
		Name:       h.Name(),
		Pre:        slices.Contains(points, v1alpha1.Pre),
		Post:       slices.Contains(points, v1alpha1.Post),
		Task:       slices.Contains(scopes, v1alpha1.ScopeTask),
		Graph:      slices.Contains(scopes, v1alpha1.ScopeGraph),
		Workflow:   slices.Contains(scopes, v1alpha1.ScopeWorkflow),
		Ignore:     h.Spec.FailurePolicy == v1alpha1.IgnoreFailure,
		MaxRetries: defaultMaxRetries,
		Cache:      declaredCache(&h.Spec),
	}
	for _, c := range h.Spec.MatchConditions {
		out.Match = append(out.Match, c.Expression)
	}
	if h.Spec.MaxRetries != nil {
		out.MaxRetries = int(*h.Spec.MaxRetries)
	}
	settings := v1alpha1.TaskHookSpec{
		TimeoutSeconds:  h.Spec.TimeoutSeconds,
		DeadlineSeconds: h.Spec.DeadlineSeconds,
		Retry:           h.Spec.Retry,
		MaxConcurrency:  h.Spec.MaxConcurrency,
		Batch:           h.Spec.Batch,
	}
	data, err := json.Marshal(settings)
	if err != nil {
		return engine.Hook{}, err
	}
	out.Settings = data
	return out, nil
}

// declaredCache says whether the hook is the cache plugin in its usual role: asked last, for calls that ask for a cache.
func declaredCache(spec *v1alpha1.TaskHookSpec) bool {
	if spec.Builtin == nil || spec.Builtin.Name != "cache" {
		return false
	}
	var settings struct {
		Mode string `json:"mode"`
	}
	// Settings that cannot be read are refused by the plugin itself when the hook is registered.
	if len(spec.Builtin.Settings) > 0 && json.Unmarshal(spec.Builtin.Settings, &settings) != nil {
		return false
	}
	return settings.Mode == "" || settings.Mode == "declared"
}
