package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

// Builtin makes a plugin that is linked in, for a hook that names it, from the hook's spec.builtin.settings (nil where
// there are none). The error says what is wrong with the settings.
type Builtin func(settings json.RawMessage) (taskhook.Plugin, error)

// Static is a built-in that takes no settings.
func Static(p taskhook.Plugin) Builtin {
	return func(settings json.RawMessage) (taskhook.Plugin, error) {
		if s := bytes.TrimSpace(settings); len(s) > 0 && !bytes.Equal(s, []byte("{}")) && !bytes.Equal(s, []byte("null")) {
			return nil, errors.New("takes no settings")
		}
		return p, nil
	}
}

// forgetter is a plugin that wants to know when nobody waits for a review any more, as the cache does: it may have promised
// work to that review's task.
type forgetter interface{ Forget(uid string) }

// forget tells a built-in plugin that a review was cancelled.
func (d *Dispatcher) forget(r *review) {
	h, ok := d.lookup(r.lane)
	if !ok || h.Spec.Builtin == nil {
		return
	}
	p, err := d.plugin(h)
	if err != nil {
		return // it was never asked
	}
	if f, ok := p.Plugin.(forgetter); ok {
		f.Forget(r.uid)
	}
}

// plugin is a built-in plugin as made for one hook.
type plugin struct {
	taskhook.Plugin
	made string // from what
}

// plugin gives the hook's built-in plugin, and makes it where it is new or its settings have changed.
func (d *Dispatcher) plugin(h Hook) (*plugin, error) {
	b := h.Spec.Builtin
	key := h.Metadata.Namespace + "/" + h.Name()
	made := b.Name + " " + string(b.Settings)
	d.mu.Lock()
	defer d.mu.Unlock()
	if p, ok := d.plugins[key]; ok && p.made == made {
		return p, nil
	}
	maker, known := d.cfg.Builtins[b.Name]
	if !known {
		names := slices.Sorted(maps.Keys(d.cfg.Builtins))
		return nil, fmt.Errorf("%s: hook %s: spec.builtin.name: there is no built-in plugin %q, only: %s", h.Origin, h.Name(), b.Name, strings.Join(names, ", "))
	}
	inner, err := maker(b.Settings)
	if err != nil {
		return nil, fmt.Errorf("%s: hook %s: spec.builtin.settings: %w", h.Origin, h.Name(), err)
	}
	p := &plugin{Plugin: inner, made: made}
	d.plugins[key] = p
	return p, nil
}

// ask puts one review. The answer has to keep the same rules as a stranger's.
func (p *plugin) ask(ctx context.Context, request *v1alpha1.TaskReviewRequest) (o outcome) {
	defer func() {
		if fault := recover(); fault != nil {
			o = outcome{err: fmt.Errorf("the plugin panicked: %v", fault)}
		}
	}()
	response, err := taskhook.Answer(ctx, p, request)
	if err != nil {
		return outcome{err: err}
	}
	if err := v1alpha1.CheckResponse(response, request.Point, request.UID, "response").Err(); err != nil {
		return outcome{err: fmt.Errorf("bad answer: %w", err)}
	}
	return outcome{response: response}
}
