package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lister lists and watches one kind through a client. It asks for a list and then a watch, which every API server and
// every fake of one understands.
type lister struct {
	client client.WithWatch
	list   func() client.ObjectList
	opts   []client.ListOption
}

func (l lister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := l.list()
	if err := l.client.List(ctx, list, l.with(o)...); err != nil {
		return nil, err
	}
	return list, nil
}

func (l lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.client.Watch(ctx, l.list(), l.with(o)...)
}

func (l lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

func (l lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// IsWatchListSemanticsUnSupported tells the reflector how it may ask.
func (l lister) IsWatchListSemanticsUnSupported() bool { return true }

func (l lister) with(o metav1.ListOptions) []client.ListOption {
	return append([]client.ListOption{&client.ListOptions{Raw: &o}}, l.opts...)
}

// informer watches one kind; changed is told the key of what changed, after the store has it.
func informer(l lister, example runtime.Object, transform cache.TransformFunc, changed func(key string)) (cache.SharedIndexInformer, error) {
	inf := cache.NewSharedIndexInformer(l, example, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if transform != nil {
		if err := inf.SetTransform(transform); err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
	}
	tell := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			changed(key)
		}
	}
	_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }, DeleteFunc: tell,
	})
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	return inf, nil
}
