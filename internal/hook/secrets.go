package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
)

// Secrets reads the secrets that hooks refer to. It is asked at every use, so that a secret can be replaced.
type Secrets interface {
	// Secret gives a secret's value; hook is who refers to it. Errors never contain the value.
	Secret(ctx context.Context, hook Hook, from v1alpha1.SecretSource) ([]byte, error)
}

// Tokens gives bearer tokens by which plugins know us.
type Tokens interface {
	// Token gives a token for an audience that is good for at least a minute. It is asked at every use.
	Token(ctx context.Context, audience string) (string, error)
}

// LocalSecrets reads secrets from files and, through Getenv, from environment variables.
type LocalSecrets struct {
	// Getenv is os.LookupEnv; nil where the environment is not to be read.
	Getenv func(name string) (string, bool)
}

// CheckSecrets says which secrets of a run's hooks cannot be read, a line each, so that a run is not started only to find out
// at its first task. namespace is the run's.
func (r *Registry) CheckSecrets(ctx context.Context, secrets Secrets, namespace string, selected []engine.Hook) error {
	var faults []error
	for i := range selected {
		h, ok := r.Lookup(namespace, selected[i].Name)
		if !ok || h.Spec.HTTP == nil || h.Spec.HTTP.Auth == nil || h.Spec.HTTP.Auth.HMAC == nil {
			continue
		}
		if _, err := secrets.Secret(ctx, h, h.Spec.HTTP.Auth.HMAC.SecretFrom); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s %s: spec.http.auth.hmac.secretFrom: %w", h.Origin, h.Kind, h.Name(), err))
		}
	}
	return errors.Join(faults...)
}

// maxSecretBytes bounds a secret's file.
const maxSecretBytes = 64 << 10

// Secret reads a file, whose last line break is dropped, or a variable.
func (s LocalSecrets) Secret(_ context.Context, hook Hook, from v1alpha1.SecretSource) ([]byte, error) {
	var value []byte
	switch {
	case from.File != "":
		path := from.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(hook.dir(), path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		if info.Size() > maxSecretBytes {
			return nil, fmt.Errorf("secret: %s is larger than 64 KiB", path)
		}
		if value, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("secret: %w", err)
		}
		value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	case from.Env != "":
		if s.Getenv == nil {
			return nil, errors.New("secret: environment variables are not read here")
		}
		text, set := s.Getenv(from.Env)
		if !set {
			return nil, fmt.Errorf("secret: environment variable %s is not set", from.Env)
		}
		value = []byte(text)
	default:
		return nil, errors.New("secret: secretKeyRef needs a cluster")
	}
	if len(value) == 0 {
		return nil, errors.New("secret: is empty")
	}
	return value, nil
}
