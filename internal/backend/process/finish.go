package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// finish stores the outputs of an attempt that has ended and makes its result. Doing it again stores the same again.
func (a *attempt) finish(r *spec.Result, err error) (*engine.Result, error) {
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings {
		a.b.cfg.Log.Warn("the task ran, but", "task", a.cmd.Path, "warning", w)
	}
	a.mu.Lock()
	stopped := a.stopped
	a.mu.Unlock()
	out, stored, err := result.Of(r, a.cmd, result.Options{
		Stopped: stopped, Decode: a.b.cfg.DecodeArtifact,
		Save: func(staged, name string, one program.Artifact) (program.Artifact, error) {
			return artifact.Save(a.b.ctx, filepath.Join(a.folder, staged), name, one, a.b.cfg.Artifacts)
		},
	})
	if err != nil && a.b.ctx.Err() != nil {
		return nil, err
	}
	if !stored {
		return &out, nil // the executor's result says all; nothing to remember
	}
	root, err := os.OpenRoot(a.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return &out, spec.Write(root, reportedFile, out)
}

// forget removes the folder of an attempt but for its logs.
func forget(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() == spec.LogFile || strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		err = errors.Join(err, removeAll(filepath.Join(folder, e.Name())))
	}
	return err
}
