package taskhook

import (
	"encoding/json"
	"sync"
)

// maxTemplateBytes bounds what is kept of templates; beyond it the older half is forgotten, and Sluice sends those anew.
const maxTemplateBytes = 64 << 20

// templates keeps the templates that were sent in full, by their digests, in two generations.
type templates struct {
	mu       sync.Mutex
	now, old map[string]json.RawMessage
	size     int
}

func newTemplates() *templates { return &templates{now: map[string]json.RawMessage{}} }

// keep remembers a template under its digest, which is a name: the sender has computed it over bytes of its own.
func (t *templates) keep(digest string, spec json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.now[digest]; there {
		return
	}
	if t.size > maxTemplateBytes/2 {
		t.old, t.now, t.size = t.now, map[string]json.RawMessage{}, 0
	}
	t.now[digest] = spec
	t.size += len(spec)
}

// complete fills in the template of a request that came by digest; it is false where that is not known.
func (t *templates) complete(r *Request) bool {
	if r.Task.TemplateDigest == "" {
		return true // a task without a template, or one whose template is not shown
	}
	if len(r.Task.TemplateSpec) > 0 {
		t.keep(r.Task.TemplateDigest, r.Task.TemplateSpec)
		return true
	}
	t.mu.Lock()
	spec, there := t.now[r.Task.TemplateDigest]
	if !there {
		spec, there = t.old[r.Task.TemplateDigest]
	}
	t.mu.Unlock()
	r.Task.TemplateSpec = spec
	return there
}
