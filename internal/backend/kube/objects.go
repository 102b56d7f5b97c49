package kube

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Objects gives resource templates what they act with: the kinds that the cluster knows, and clients with the rights of the
// workflows' service accounts.
type Objects interface {
	meta.RESTMapper
	As(namespace, serviceAccount string) (dynamic.Interface, error)
}

// maxClients is how many clients are kept for the next template of the same account.
const maxClients = 256

type objects struct {
	meta.RESTMapper
	base *rest.Config

	mu      sync.Mutex
	clients map[string]dynamic.Interface
}

// NewObjects gives [Objects] that impersonate the service accounts: whoever base belongs to needs the right to, and no
// other right on what workflows act on.
func NewObjects(base *rest.Config) (Objects, error) {
	base = rest.CopyConfig(base)
	base.QPS, base.Burst = -1, 0
	base.ContentType, base.AcceptContentTypes = "", "" // objects of any kind are JSON
	client, err := discovery.NewDiscoveryClientForConfig(base)
	if err != nil {
		return nil, fmt.Errorf("kube backend: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	return &objects{
		RESTMapper: restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil),
		base:       base, clients: map[string]dynamic.Interface{},
	}, nil
}

func (o *objects) As(namespace, serviceAccount string) (dynamic.Interface, error) {
	user := "system:serviceaccount:" + namespace + ":" + serviceAccount
	o.mu.Lock()
	defer o.mu.Unlock()
	if c := o.clients[user]; c != nil {
		return c, nil
	}
	cfg := rest.CopyConfig(o.base)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user} // the API server adds the account's groups
	c, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	if len(o.clients) >= maxClients {
		clear(o.clients)
	}
	o.clients[user] = c
	return c, nil
}
