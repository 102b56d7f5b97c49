// Package transfer moves the bytes of artifacts between a store and the local disk, packed or as they are. It knows no
// store itself, so that what only moves bytes need not link the clients of all of them.
package transfer

import (
	"context"
	"errors"
	"io"
)

// Store is one location, an object or a tree of them. A key is relative to the location and has slashes; "" is the
// location itself. What is not there is fs.ErrNotExist. Implementations are safe for concurrent use.
type Store interface {
	// Stat says what lies at a key.
	Stat(ctx context.Context, key string) (Info, error)
	// Get streams an object. The error is [ErrTree] for a tree.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// Put stores an object, whole or not at all. size is its length in bytes, -1 where that is not known before.
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	// Delete removes an object or a tree. To delete what is not there is no error.
	Delete(ctx context.Context, key string) error
	// List gives the objects below a key, relative to it, in lexical order.
	List(ctx context.Context, key string) ([]Info, error)
}

// Info describes an object.
type Info struct {
	// Key is relative to what was listed; empty for a Stat.
	Key string
	// Size in bytes; -1 where it is not known.
	Size int64
	// Tree is true where there is no object but others below.
	Tree bool
}

// TreeStore is a [Store] that moves whole trees better than object by object.
type TreeStore interface {
	Store
	// GetTree copies what lies at a key to a local path that does not exist; the key may also be an object.
	GetTree(ctx context.Context, key, local string) error
	// PutTree stores a local folder, in place of what is there.
	PutTree(ctx context.Context, key, local string) error
}

// Errors of stores.
var (
	// ErrTree says that a tree was asked for as an object.
	ErrTree = errors.New("is a tree, not an object")
	// ErrReadOnly says that a kind of store cannot be written.
	ErrReadOnly = errors.New("cannot be written")
)
