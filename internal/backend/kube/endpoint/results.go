package endpoint

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// resultsFolder is where results lie in a run's store.
const resultsFolder = "sluice-results"

// StoredResults keeps results in the artifact store of each run, below a folder of the run's own.
type StoredResults struct {
	// Options are those by which a run's stores are opened.
	Options func(run engine.Run) artifact.Options
}

// Put implements [Results].
func (s StoredResults) Put(ctx context.Context, run engine.Run, path string, data []byte) error {
	store, err := s.open(run, path)
	if err == nil {
		err = store.Put(ctx, "", bytes.NewReader(data), int64(len(data)))
	}
	if err != nil {
		return fmt.Errorf("keep the result of %s: %w", path, err)
	}
	return nil
}

// Get implements [Results].
func (s StoredResults) Get(ctx context.Context, run engine.Run, path string) ([]byte, error) {
	data, err := s.get(ctx, run, path)
	if err != nil {
		return nil, fmt.Errorf("get the result of %s: %w", path, err)
	}
	return data, nil
}

func (s StoredResults) get(ctx context.Context, run engine.Run, path string) (data []byte, err error) {
	store, err := s.open(run, path)
	if err != nil {
		return nil, err
	}
	r, err := store.Get(ctx, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if data, err = io.ReadAll(io.LimitReader(r, spec.MaxStored+1)); err == nil && len(data) > spec.MaxStored {
		err = fmt.Errorf("it has more than %d bytes", spec.MaxStored)
	}
	return data, err
}

// open gives the place of one attempt's result.
func (s StoredResults) open(run engine.Run, attempt string) (artifact.Store, error) {
	sum := sha256.Sum256([]byte(attempt))
	// The run's name is for people who look into the store.
	key := path.Join(resultsFolder, run.Namespace, run.Name+"-"+run.UID, hex.EncodeToString(sum[:16])+".json")
	block, err := place(run, key)
	if err != nil {
		return nil, err
	}
	return artifact.Open(block, s.Options(run))
}

// place is a key in a run's repository.
func place(run engine.Run, key string) (program.JSON, error) {
	if run.Repository != nil {
		var fields map[string]map[string]json.RawMessage
		if err := json.Unmarshal(run.Repository, &fields); err != nil {
			return nil, fmt.Errorf("artifact repository: %w", err)
		}
		for name := range fields {
			delete(fields[name], "keyFormat")
		}
		block, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("artifact repository: %w", err)
		}
		return artifact.WithKey(block, key)
	}
	if run.ArtifactRoot == "" {
		return nil, refuse(http.StatusUnprocessableEntity, "the result is too long for a termination message, and the run has no artifact repository to keep it in: configure one")
	}
	root, query, _ := strings.Cut(run.ArtifactRoot, "?")
	uri := strings.TrimSuffix(root, "/") + "/" + key
	if query != "" {
		uri += "?" + query
	}
	return artifact.BlockOf(uri)
}
