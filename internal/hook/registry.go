package hook

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// Registry holds the hooks that are registered now. It may be replaced while it is in use: what a run has selected stays
// with the run, how the plugin is reached is looked up at every call.
type Registry struct {
	hooks atomic.Pointer[[]Hook] // in Pre order, immutable
}

// NewRegistry makes a registry of hooks, which must be valid. The error names every clash of names.
func NewRegistry(hooks []Hook) (*Registry, error) {
	r := &Registry{}
	if err := r.Replace(hooks); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace puts a whole new set of hooks in place of the old one, or none of it where names clash.
func (r *Registry) Replace(hooks []Hook) error {
	if err := errors.Join(checkNames(hooks)...); err != nil {
		return err
	}
	ordered := slices.Clone(hooks)
	slices.SortStableFunc(ordered, preOrder)
	r.hooks.Store(&ordered)
	return nil
}

// preOrder is the order at Pre: cluster hooks first, then by order, then by name; the cache is asked last of all, since
// what it decides upon is what all others have made of the task.
func preOrder(a, b Hook) int {
	return cmp.Or(
		cmp.Compare(rank(&a.Spec), rank(&b.Spec)),
		boolCompare(!a.Cluster(), !b.Cluster()),
		cmp.Compare(a.Spec.Order, b.Spec.Order),
		cmp.Compare(a.Name(), b.Name()),
		cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace),
	)
}

func rank(spec *v1alpha1.TaskHookSpec) int {
	if spec.Builtin != nil && spec.Builtin.Name == "cache" {
		return 1
	}
	return 0
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// checkNames finds hooks whose names clash: two of the same scope, or a namespaced one with a cluster hook's name.
func checkNames(hooks []Hook) []error {
	var faults []error
	cluster := map[string]Hook{}
	for _, h := range hooks {
		if h.Cluster() {
			if other, taken := cluster[h.Name()]; taken {
				faults = append(faults, fmt.Errorf("%s: ClusterTaskHook %s: is registered already, by %s", h.Origin, h.Name(), other.Origin))
			}
			cluster[h.Name()] = h
		}
	}
	type key struct{ namespace, name string }
	namespaced := map[key]Hook{}
	for _, h := range hooks {
		if h.Cluster() {
			continue
		}
		if other, taken := cluster[h.Name()]; taken {
			faults = append(faults, fmt.Errorf("%s: TaskHook %s: the name belongs to a ClusterTaskHook (%s)", h.Origin, h.Name(), other.Origin))
		}
		k := key{h.Metadata.Namespace, h.Name()}
		if other, taken := namespaced[k]; taken {
			faults = append(faults, fmt.Errorf("%s: TaskHook %s: is registered already, by %s", h.Origin, h.Name(), other.Origin))
		}
		namespaced[k] = h
	}
	return faults
}

// Hooks gives all hooks in Pre order.
func (r *Registry) Hooks() []Hook {
	if hooks := r.hooks.Load(); hooks != nil {
		return slices.Clone(*hooks)
	}
	return nil
}

// Lookup finds a hook by name for a run of a namespace.
func (r *Registry) Lookup(namespace, name string) (Hook, bool) {
	if hooks := r.hooks.Load(); hooks != nil {
		for _, h := range *hooks {
			if h.Name() == name && visible(h, namespace) {
				return h, true
			}
		}
	}
	return Hook{}, false
}

// Select gives the hooks for a workflow of a namespace with these labels, as the engine needs them, in Pre order.
func (r *Registry) Select(namespace string, labels map[string]string) ([]engine.Hook, error) {
	var selected []engine.Hook
	hooks := r.hooks.Load()
	if hooks == nil {
		return nil, nil
	}
	taken := map[string]bool{} // without a namespace, several may be visible under one name
	for _, h := range *hooks {
		if !visible(h, namespace) || taken[h.Name()] || !selects(h.Spec.Selector, labels) {
			continue
		}
		taken[h.Name()] = true
		snapshot, err := engineHook(h)
		if err != nil {
			return nil, fmt.Errorf("hook %s: %w", h.Name(), err)
		}
		selected = append(selected, snapshot)
	}
	return selected, nil
}

// visible says whether a hook is there for a namespace. Documents of local mode rarely have one; they are for every run.
func visible(h Hook, namespace string) bool {
	return h.Cluster() || h.Metadata.Namespace == "" || namespace == "" || h.Metadata.Namespace == namespace
}
