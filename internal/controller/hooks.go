package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
)

// watchHooks keeps the registry up to date with the objects of the cluster, and waits until it has all of them once.
func (c *Controller) watchHooks(ctx context.Context, watch func(cache.SharedIndexInformer)) error {
	if c.Registry == nil {
		return nil
	}
	kinds := []string{v1alpha1.KindTaskHook}
	if !c.NoClusterScope {
		kinds = append(kinds, v1alpha1.KindClusterTaskHook)
	}
	changed := make(chan struct{}, 1)
	var stores []cache.Store
	var synced []cache.InformerSynced
	for _, k := range kinds {
		gvk := schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: k}
		l := lister{client: c.client, list: func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return list
		}}
		if k == v1alpha1.KindTaskHook && c.Namespace != "" {
			l.opts = append(l.opts, client.InNamespace(c.Namespace))
		}
		inf, err := informer(l, newObject(gvk), nil, func(string) {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
		if err != nil {
			return err
		}
		watch(inf)
		stores, synced = append(stores, inf.GetStore()), append(synced, inf.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	said := map[string]string{}
	c.replaceHooks(stores, said)
	watcher := func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				c.replaceHooks(stores, said)
			}
		}
	}
	c.loops.Go(watcher)
	return nil
}

// replaceHooks puts all hook objects into the registry. What is wrong with one is said once, in the log and as an event
// of the object.
func (c *Controller) replaceHooks(stores []cache.Store, said map[string]string) {
	var objects []*unstructured.Unstructured
	for _, s := range stores {
		for _, o := range s.List() {
			if u, ok := o.(*unstructured.Unstructured); ok {
				objects = append(objects, u)
			}
		}
	}
	hooks, faults := hooksOf(objects, c.HookHosts, c.Own)
	for _, u := range objects {
		id := string(u.GetUID())
		fault := faults[id]
		if fault != "" && said[id] != fault {
			c.Log.Warn("a hook is not as it should be", "hook", u.GetNamespace()+"/"+u.GetName(), "reason", fault)
			c.recorder.warn(u, "HookRefused", fault)
		}
		said[id] = fault
	}
	if err := c.Registry.Replace(hooks); err != nil {
		c.Log.Error("the hooks could not be replaced", "error", err)
	}
}

// hooksOf reads hook objects, and says what is wrong with which, by UID. A document that makes no sense, or that takes a
// cluster hook's name, is left out; one that may not reach its plugin is registered, and fails by its failurePolicy. Our own
// are among the hooks, but where a cluster hook has the name.
func hooksOf(objects []*unstructured.Unstructured, hosts []string, own []hook.Hook) (hooks []hook.Hook, faults map[string]string) {
	faults = map[string]string{}
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { // cluster hooks first
		return strings.Compare(a.GetKind()+"/"+a.GetNamespace()+"/"+a.GetName(), b.GetKind()+"/"+b.GetNamespace()+"/"+b.GetName())
	})
	cluster := map[string]bool{}
	for _, u := range objects {
		h, err := hookOf(u)
		switch {
		case err != nil:
			faults[string(u.GetUID())] = err.Error()
			continue
		case !h.Cluster() && slices.ContainsFunc(own, func(o hook.Hook) bool { return o.Name() == h.Name() }):
			faults[string(u.GetUID())] = "its name belongs to a hook of the controller; it is not asked. Give it another name"
			continue
		case !h.Cluster() && cluster[h.Name()]:
			faults[string(u.GetUID())] = "its name belongs to a ClusterTaskHook; it is not asked. Give it another name"
			continue
		}
		cluster[h.Name()] = cluster[h.Name()] || h.Cluster()
		if h.Refused = address(&h, hosts); h.Refused != "" {
			faults[string(u.GetUID())] = h.Refused
		}
		hooks = append(hooks, h)
	}
	for _, h := range own {
		if !cluster[h.Name()] {
			hooks = append(hooks, h)
		}
	}
	return hooks, faults
}

// choose gives the hooks of a new workflow: of our own ones those in whose place nobody has registered another.
func (c *Controller) choose(namespace string, labels map[string]string) ([]engine.Hook, error) {
	if c.Select == nil {
		return nil, nil
	}
	selected, err := c.Select(namespace, labels)
	if err != nil || c.Registry == nil {
		return selected, err
	}
	all := c.Registry.Hooks()
	return slices.DeleteFunc(selected, func(s engine.Hook) bool {
		i := slices.IndexFunc(c.Own, func(h hook.Hook) bool { return h.Name() == s.Name })
		return i >= 0 && slices.ContainsFunc(all, func(h hook.Hook) bool {
			there := h.Cluster() || h.Metadata.Namespace == namespace
			return there && h.Name() != s.Name && h.Spec.Builtin != nil && h.Spec.Builtin.Name == c.Own[i].Spec.Builtin.Name
		})
	}), nil
}

func hookOf(u *unstructured.Unstructured) (hook.Hook, error) {
	meta := map[string]any{"name": u.GetName()}
	if ns := u.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}
	if labels := u.GetLabels(); len(labels) > 0 {
		meta["labels"] = labels
	}
	data, err := json.Marshal(map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": meta, "spec": u.Object["spec"]})
	if err != nil {
		return hook.Hook{}, err
	}
	doc, err := v1alpha1.DecodeTaskHook(data)
	if err != nil {
		return hook.Hook{}, err
	}
	if err := hook.Validate(doc).Err(); err != nil {
		return hook.Hook{}, err
	}
	return hook.Hook{TaskHook: *doc, Origin: strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")}, nil
}

// address turns a Service reference into a URL, and says why a hook may not reach where it wants to, "" if it may: a
// namespaced hook reaches Services of its own namespace, and hosts that the administrator has listed.
func address(h *hook.Hook, hosts []string) string {
	spec := h.Spec.HTTP
	if spec == nil {
		return ""
	}
	own := h.Metadata.Namespace
	copied := *spec
	h.Spec.HTTP = &copied
	if s := spec.Service; s != nil {
		namespace, port, path := s.Namespace, s.Port, s.Path
		if namespace == "" {
			namespace = own
		}
		if namespace == "" {
			return "spec.http.service.namespace: a ClusterTaskHook must say it"
		}
		if port == 0 {
			port = 443
		}
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		copied.URL = fmt.Sprintf("https://%s.%s.svc:%d%s", s.Name, namespace, port, path)
		copied.Service = nil
	}
	if h.Cluster() {
		return ""
	}
	u, err := url.Parse(copied.URL)
	if err != nil {
		return "spec.http.url: " + err.Error()
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if !slices.Contains(hosts, host) && !serviceIn(host, own) {
		return fmt.Sprintf("a TaskHook may reach Services of its own namespace (NAME.%s.svc) and hosts that the controller allows, not %s", own, host)
	}
	if auth := copied.Auth; auth != nil && auth.ServiceAccountToken != nil && !names(auth.ServiceAccountToken.Audience, host) {
		return fmt.Sprintf("spec.http.auth.serviceAccountToken.audience: a TaskHook gets tokens for its own plugin only: it must be %s or https://%s", host, host)
	}
	return ""
}

// names says whether a token's audience is the host that the token is sent to. Whoever may write a TaskHook reads what it
// is sent: a token for anybody else would let them speak there as the controller, to the API server first of all.
func names(audience, host string) bool {
	return audience == host || audience == "https://"+host
}

// serviceIn says whether a host name is that of a Service in a namespace.
func serviceIn(host, namespace string) bool {
	for _, suffix := range []string{".svc", ".svc.cluster.local"} {
		if name, ok := strings.CutSuffix(host, "."+namespace+suffix); ok && name != "" && !strings.Contains(name, ".") {
			return true
		}
	}
	return false
}

// HookSecrets reads the secrets of hooks from Secret objects: of the hook's own namespace, for cluster hooks of the one
// that they name.
type HookSecrets struct{ Client client.Reader }

// Secret implements hook.Secrets.
func (s HookSecrets) Secret(ctx context.Context, h hook.Hook, from v1alpha1.SecretSource) ([]byte, error) {
	ref := from.SecretKeyRef
	if ref == nil {
		return nil, fmt.Errorf("secret: on a cluster only secretKeyRef is read")
	}
	namespace := h.Metadata.Namespace
	if h.Cluster() {
		if namespace = ref.Namespace; namespace == "" {
			return nil, fmt.Errorf("secret: a ClusterTaskHook must say the namespace of Secret %s", ref.Name)
		}
	} else if ref.Namespace != "" && ref.Namespace != namespace {
		return nil, fmt.Errorf("secret: a TaskHook reads Secrets of its own namespace only")
	}
	var o corev1.Secret
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, &o); err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	value := o.Data[ref.Key]
	if len(value) == 0 {
		return nil, fmt.Errorf("secret: Secret %s has no key %q, or it is empty", ref.Name, ref.Key)
	}
	return value, nil
}
