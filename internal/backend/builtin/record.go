package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// record is the file with the result of an attempt: <home>/runs/<run>/builtin/<hash of path>.json. It is there from
// before the end is told, so that a request whose answer came is not sent again after a crash.
func (b *Backend) record(id key) string {
	sum := sha256.Sum256([]byte(id.path))
	return filepath.Join(b.cfg.Home, "runs", filepath.Base(id.run), "builtin", hex.EncodeToString(sum[:12])+".json")
}

// recall reads a result; nil where there is none.
func (b *Backend) recall(id key) (*engine.Result, error) {
	if b.cfg.Home == "" {
		return nil, nil
	}
	data, err := os.ReadFile(b.record(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var result engine.Result
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", b.record(id), err)
	}
	spec.WholeArtifacts(result.Outputs.Artifacts)
	return &result, nil
}

func (b *Backend) remember(id key, result engine.Result) error {
	if b.cfg.Home == "" {
		return nil
	}
	file := b.record(id)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer root.Close()
	return spec.Write(root, filepath.Base(file), result)
}

func (b *Backend) forgetRecord(id key) error {
	if b.cfg.Home == "" {
		return nil
	}
	err := os.Remove(b.record(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
