// Package cache is the hook plugin that gives a task the outputs of earlier work of the same kind: Argo's memoize (the
// author names a key), Kubeflow Pipelines' caching (a fingerprint of what the task is given), and a content key that is
// made from template and inputs. It is written against the interface that every plugin has, only linked in.
//
// Besides looking up and storing it checks that the artifacts of an entry still exist, and it lets a second task of the
// same key wait for the first instead of doing the work twice.
package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// Entry is remembered work.
type Entry struct {
	// Scope and Key are the identity: where a key counts, and the key.
	Scope, Key string
	Outputs    v1alpha1.Outputs
	Created    time.Time
	// Workflow, WorkflowUID and Task say who did the work. Entries of others may not know the first two.
	Workflow, WorkflowUID, Task string
	// Hits counts how often it was used, LastHit when the last time was.
	Hits    int64
	LastHit time.Time
}

// Entries keeps them. Implementations are safe for concurrent use, also by several processes.
type Entries interface {
	// Get gives an entry; nil where there is none.
	Get(ctx context.Context, scope, key string) (*Entry, error)
	// Put writes an entry in place of an earlier one.
	Put(ctx context.Context, e Entry) error
	// Hit notes that an entry was used.
	Hit(ctx context.Context, scope, key string, at time.Time) error
	// Delete takes an entry away; to delete nothing is no error.
	Delete(ctx context.Context, scope, key string) error
}

// UnusableError is what [Entries] say of a cache that the task's author has named and that is none. The task fails with it.
type UnusableError struct{ Message string }

func (e *UnusableError) Error() string { return e.Message }

// Work is what a task does under a key.
type Work struct {
	Scope, Key string
	// UID is the review whose task does it; Task and WorkflowUID say which that is.
	UID, Task, WorkflowUID string
	Since                  time.Time
}

// Flights knows what work is under way in any of the processes that share the entries. Implementations are safe for
// concurrent use, also by several processes.
type Flights interface {
	// Begin gives the work to w's review, which may have it already, and gives it back; else the work that is under way
	// instead. instead is work that does not count any more: it is replaced.
	Begin(ctx context.Context, w Work, instead *Work) (Work, error)
	// End ends the work of a review; where it is not that review's it is left alone.
	End(ctx context.Context, scope, key, uid string) error
}

// Config is what the plugin works with; Entries is needed.
type Config struct {
	Entries Entries
	// Flights makes tasks wait for the same work in other processes; nil where there are none.
	Flights Flights
	// Runs says whether a process runs a workflow now: work of one that is not run by any is not waited for. Needed with
	// Flights.
	Runs func(workflowUID string) bool
	// Fingerprint gives Kubeflow Pipelines' cache key for a task; "" for a task that has none. Without it tasks of scheme
	// "kfp" run.
	Fingerprint func(*v1alpha1.TaskReviewRequest) (string, error)
	// Exists says whether the bytes of an artifact of a namespace are still there; nil trusts that they are.
	Exists func(ctx context.Context, namespace string, a v1alpha1.Artifact) (bool, error)
	// Wake asks a waiting task's review again at once; nil leaves it to the next poll.
	Wake func(uid string)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Cache makes the plugin for each hook that names it. All of them share entries and what is under way.
type Cache struct {
	cfg    Config
	flight *flight
}

// New makes a cache.
func New(cfg Config) *Cache {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Cache{cfg: cfg, flight: &flight{busy: map[slot]*work{}}}
}

// Settings are a hook's spec.builtin.settings.
type Settings struct {
	// Mode is "declared" (the default: tasks whose author asked for it, by memoize or cachingOptions), or "content":
	// every task that the hook selects, by a key made from its template and inputs.
	Mode string `json:"mode,omitempty"`
	// TTL is how old an entry may be, a duration; empty is any age. An author's maxAge is obeyed besides.
	TTL string `json:"ttl,omitempty"`
	// CheckArtifacts makes sure that an entry's artifacts exist before it is used; true by default.
	CheckArtifacts *bool `json:"checkArtifacts,omitempty"`
	// Deduplicate lets a task wait for another of the same key that is under way; true by default.
	Deduplicate *bool `json:"deduplicate,omitempty"`
	// PollSeconds is how often a waiting task asks again where nobody wakes it; 15 by default.
	PollSeconds float64 `json:"pollSeconds,omitempty"`
}

// FromSettings makes the plugin for a hook.
func (c *Cache) FromSettings(raw json.RawMessage) (taskhook.Plugin, error) {
	p := &plugin{Cache: c, check: true, dedupe: true, poll: 15 * time.Second}
	var s Settings
	if len(raw) > 0 {
		if err := strict(raw, &s); err != nil {
			return nil, err
		}
	}
	switch s.Mode {
	case "", "declared":
	case "content":
		p.content = true
	default:
		return nil, fmt.Errorf("mode: must be declared or content, not %q", s.Mode)
	}
	if s.TTL != "" {
		ttl, err := parseAge(s.TTL)
		if err != nil {
			return nil, fmt.Errorf("ttl: %w", err)
		}
		p.ttl = ttl
	}
	if s.CheckArtifacts != nil {
		p.check = *s.CheckArtifacts
	}
	if s.Deduplicate != nil {
		p.dedupe = *s.Deduplicate
	}
	switch {
	case s.PollSeconds < 0 || s.PollSeconds > 3600:
		return nil, fmt.Errorf("pollSeconds: must be above 0 and at most 3600, not %v", s.PollSeconds)
	case s.PollSeconds > 0:
		p.poll = time.Duration(s.PollSeconds * float64(time.Second))
	}
	return p, nil
}

// plugin is the cache as one hook has it.
type plugin struct {
	*Cache
	content, check, dedupe bool
	ttl, poll              time.Duration
}

// state is what Pre hands to Post: under which key the outputs are to be stored.
type state struct {
	Scope string `json:"scope"`
	Key   string `json:"key"`
	UID   string `json:"uid"`
}

// Pre looks the task up.
func (p *plugin) Pre(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	response, err := p.lookUp(ctx, r)
	if unusable, ok := errors.AsType[*UnusableError](err); ok {
		return taskhook.Fail(unusable.Message), nil
	}
	return response, err
}

func (p *plugin) lookUp(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	k, err := p.keyOf(r)
	var bad *badKeyError
	switch {
	case errors.As(err, &bad):
		return taskhook.Fail(bad.Error()), nil
	case err != nil:
		return nil, err
	case k.key == "":
		return taskhook.Run(nil), nil
	}
	if hit, err := p.hit(ctx, k, r.Workflow.Namespace); hit != nil || err != nil {
		p.wake(p.flight.leave(slot{k.scope, k.key}, r.UID)) // it may have waited for another process in all others' name
		return hit, err
	}
	// A graph neither waits nor is waited for: what is in it may have its key.
	if p.dedupe && r.Scope != v1alpha1.ScopeGraph {
		by, err := p.enter(ctx, k, r)
		if err != nil {
			return nil, err
		}
		if by != "" {
			return taskhook.Pending(p.poll, "the same work is done by "+by), nil
		}
		// Whoever did it may have been done between the two looks.
		if hit, err := p.hit(ctx, k, r.Workflow.Namespace); hit != nil || err != nil {
			return hit, errors.Join(err, p.leave(ctx, slot{k.scope, k.key}, r.UID))
		}
	}
	data, err := json.Marshal(state{Scope: k.scope, Key: k.key, UID: r.UID})
	if err != nil {
		return nil, err
	}
	response := taskhook.Run(nil)
	response.State = data
	return response, nil
}

// hit is the answer where an entry can be used; nil where there is none.
func (p *plugin) hit(ctx context.Context, k cacheKey, namespace string) (*taskhook.Response, error) {
	entry, err := p.usable(ctx, k, namespace)
	if err != nil || entry == nil {
		return nil, err
	}
	if err := p.cfg.Entries.Hit(ctx, k.scope, k.key, p.cfg.Now()); err != nil {
		return nil, err
	}
	response := taskhook.Reuse(entry.Outputs)
	what := entry.Task
	if entry.Workflow != "" {
		what += " of " + entry.Workflow
	}
	response.Message = fmt.Sprintf("reused: %s, %s", what, entry.Created.UTC().Format(time.RFC3339))
	return response, nil
}

// enter gives the work to a review's task, or says who does it: first within the process, where it is woken at the end, then
// among all.
func (p *plugin) enter(ctx context.Context, k cacheKey, r *taskhook.Request) (by string, err error) {
	now := p.cfg.Now()
	if by, waits := p.flight.enter(slot{k.scope, k.key}, r.UID, r.Task.Path, now); waits {
		return by, nil
	}
	if p.cfg.Flights == nil {
		return "", nil
	}
	own := Work{Scope: k.scope, Key: k.key, UID: r.UID, Task: r.Task.Path, WorkflowUID: r.Workflow.UID, Since: now}
	other, err := p.cfg.Flights.Begin(ctx, own, nil)
	if err == nil && other.UID != own.UID && (!p.cfg.Runs(other.WorkflowUID) || now.Sub(other.Since) > lease) {
		other, err = p.cfg.Flights.Begin(ctx, own, &other)
	}
	if err != nil || other.UID == own.UID {
		return "", err
	}
	return other.Task + " in another process", nil // what waits in this process goes on waiting for us
}

// leave ends a review's work and lets those go on who wait for it.
func (p *plugin) leave(ctx context.Context, at slot, uid string) error {
	var err error
	if p.cfg.Flights != nil {
		err = p.cfg.Flights.End(ctx, at.scope, at.key, uid)
	}
	p.wake(p.flight.leave(at, uid))
	return err
}

func (p *plugin) wake(uids []string) {
	for _, uid := range uids {
		if p.cfg.Wake != nil {
			p.cfg.Wake(uid)
		}
	}
}

// Forget takes back what was promised to a review that nobody waits for any more.
func (p *plugin) Forget(uid string) {
	at, held, waiting := p.flight.forget(uid)
	if held && p.cfg.Flights != nil {
		// Where this fails others wait until the workflow has ended.
		_ = p.cfg.Flights.End(context.Background(), at.scope, at.key, uid)
	}
	p.wake(waiting)
}

// usable gives an entry that may be used, nil where there is none.
func (p *plugin) usable(ctx context.Context, k cacheKey, namespace string) (*Entry, error) {
	entry, err := p.cfg.Entries.Get(ctx, k.scope, k.key)
	if err != nil || entry == nil {
		return nil, err
	}
	age := p.cfg.Now().Sub(entry.Created)
	if (p.ttl > 0 && age > p.ttl) || (k.maxAge > 0 && age > k.maxAge) {
		return nil, nil //nolint:nilnil // no entry is no error
	}
	if !p.check || p.cfg.Exists == nil {
		return entry, nil
	}
	for name, list := range entry.Outputs.Artifacts {
		for _, a := range list {
			there, err := p.cfg.Exists(ctx, namespace, a)
			if err != nil {
				return nil, fmt.Errorf("look whether artifact %s exists: %w", name, err)
			}
			if !there {
				return nil, p.cfg.Entries.Delete(ctx, k.scope, k.key)
			}
		}
	}
	return entry, nil
}

// Post stores the outputs of work that succeeded, and lets those go on who wait for it.
func (p *plugin) Post(ctx context.Context, r *taskhook.Request) (*taskhook.Response, error) {
	if len(r.State) == 0 || r.Result == nil {
		return taskhook.Done(), nil // it was not run under a key of ours
	}
	var s state
	if err := json.Unmarshal(r.State, &s); err != nil {
		return nil, fmt.Errorf("the state of Pre cannot be read: %w", err)
	}
	if r.Result.Phase == "Succeeded" && !r.Result.Reused {
		err := p.cfg.Entries.Put(ctx, Entry{
			Scope: s.Scope, Key: s.Key, Outputs: r.Result.Outputs, Created: p.cfg.Now(),
			Workflow: r.Workflow.Name, WorkflowUID: r.Workflow.UID, Task: r.Task.Path,
		})
		if err != nil {
			return nil, err // those who wait go on when it is stored
		}
	}
	if err := p.leave(ctx, slot{s.Scope, s.Key}, s.UID); err != nil {
		return nil, err
	}
	return taskhook.Done(), nil
}
