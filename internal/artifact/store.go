// Package artifact brings the bytes of artifacts from and to where they lie. What an artifact is called and described as
// is program.Artifact; where its bytes are says its store block, Argo's ArtifactLocation with one key, or
// {"folder":{"path":"/abs/path"}}. Everything is streamed: memory use does not grow with an artifact.
package artifact

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"

	"github.com/sluice-ml/sluice/internal/program"
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
	// ErrUnknownKind says that nothing here can reach a store.
	ErrUnknownKind = errors.New("unknown kind of artifact store")
)

// SecretFunc gives a key of a Secret.
type SecretFunc func(name, key string) (string, error)

// Options are what stores need besides their block. The zero value is useful.
type Options struct {
	// Secrets answers the secret references in store blocks; nil knows none.
	Secrets SecretFunc
	// Client does HTTP requests; nil is a client without a timeout for the whole transfer.
	Client *http.Client
	// Limits bound what archives may unpack to; zero fields are the defaults.
	Limits Limits
	// Level is the gzip level of new archives, 1 to 9; 0 is fastest that still compresses.
	Level int
	// StandIn is used for object stores that cannot be reached from here.
	StandIn StandIn
	// Git is the git program; empty is "git" in PATH.
	Git string
}

func (o Options) secret(name, key string) (string, error) {
	if o.Secrets == nil {
		return "", secretError{errors.New("secret " + name + ": no secrets are known here")}
	}
	value, err := o.Secrets(name, key)
	if err != nil {
		return "", secretError{err}
	}
	return value, nil
}

// Exists says whether an artifact's bytes are where its description says.
func Exists(ctx context.Context, a program.Artifact, opts Options) (bool, error) {
	s, err := OpenArtifact(a, opts)
	if err != nil {
		return false, err
	}
	_, err = s.Stat(ctx, "")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
