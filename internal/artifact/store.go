// Package artifact brings the bytes of artifacts from and to where they lie. What an artifact is called and described as
// is program.Artifact; where its bytes are says its store block, Argo's ArtifactLocation with one key, or
// {"folder":{"path":"/abs/path"}}. Everything is streamed: memory use does not grow with an artifact.
package artifact

import (
	"context"
	"errors"
	"io/fs"
	"net/http"

	"github.com/sluice-ml/sluice/internal/artifact/transfer"
	"github.com/sluice-ml/sluice/internal/program"
)

// What moves the bytes, and what it calls a store.
type (
	// Store is one location.
	Store = transfer.Store
	// Info describes an object.
	Info = transfer.Info
	// TreeStore is a [Store] that moves whole trees better than object by object.
	TreeStore = transfer.TreeStore
	// Limits bound what archives may unpack to.
	Limits = transfer.Limits
)

// Errors of stores.
var (
	// ErrTree says that a tree was asked for as an object.
	ErrTree = transfer.ErrTree
	// ErrReadOnly says that a kind of store cannot be written.
	ErrReadOnly = transfer.ErrReadOnly
	// ErrTooLarge says that an archive unpacks to more than the limits allow.
	ErrTooLarge = transfer.ErrTooLarge
	// ErrUnknownKind says that nothing here can reach a store.
	ErrUnknownKind = errors.New("unknown kind of artifact store")
)

// SecretFunc gives a key of a Secret.
type SecretFunc func(name, key string) (string, error)

// Options are what stores need besides their block. The zero value is useful.
type Options struct {
	// Secrets answers the secret references in store blocks; nil knows none. An error that is [ErrNotNow] may pass, any other
	// is as lasting as the Secret.
	Secrets SecretFunc
	// Roots are the absolute paths of the folders that folder stores may be in; nil is anywhere. Whoever opens stores for
	// others, who may not read this machine's files, must set them.
	Roots []string
	// OwnCredentials says whether S3 buckets whose blocks name no Secrets are reached with the credentials of this machine or
	// pod; nil is always. Whoever opens stores for others, who may not use its credentials, must set it.
	OwnCredentials func(bucket string) bool
	// Transport connects to HTTP stores where there is no Client; nil is [http.DefaultTransport]. It says who may be reached.
	Transport *http.Transport
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
	if err != nil && !errors.Is(err, ErrNotNow) {
		err = secretError{err}
	}
	return value, err
}

// ErrOutside says that a folder store is in none of the folders where it may be.
var ErrOutside = errors.New("folders of this machine are no place for artifacts here, but for the one that it keeps them in")

// ErrNotNow says that something which a store needs cannot be had at the moment, but perhaps later.
var ErrNotNow = errors.New("not to be had at the moment")

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
