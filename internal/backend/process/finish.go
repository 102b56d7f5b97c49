package process

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
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
	out := &engine.Result{
		Phase: engine.Phase(r.Phase), ExitCode: r.ExitCode, Message: r.Message, Started: r.Started,
		Transient: r.Phase == spec.Error && !r.Ran,
		Outputs:   engine.Outputs{Parameters: r.Parameters, Result: r.Stdout},
	}
	for _, c := range r.Containers {
		out.Containers = append(out.Containers, engine.ContainerResult{
			Name: c.Name, Phase: engine.Phase(c.Phase), ExitCode: c.ExitCode, Message: c.Message, Started: c.Started, Finished: c.Finished,
		})
	}
	a.usage(r, out)
	a.mu.Lock()
	stopped := a.stopped
	a.mu.Unlock()
	if r.Stopped && stopped != nil {
		out.Phase, out.Message = engine.FailedPhase, stopMessage(*stopped)
	}
	stored, err := a.storeOutputs(r, out)
	if err != nil {
		if a.b.ctx.Err() != nil {
			return nil, err
		}
		// A failed command is what people want to hear of first.
		if out.Phase == engine.SucceededPhase {
			out.Phase, out.Message = engine.ErrorPhase, err.Error()
		}
	}
	if !stored {
		return out, nil // the executor's result says all; nothing to remember
	}
	root, err := os.OpenRoot(a.folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return out, spec.Write(root, reportedFile, out)
}

// usage is what the commands used: seconds of processor time, bytes of memory times seconds.
func (a *attempt) usage(r *spec.Result, out *engine.Result) {
	if !r.Ran || r.Started.IsZero() {
		return
	}
	seconds := r.Finished.Sub(r.Started).Seconds()
	out.Resources = map[string]int64{
		"cpu":    int64(r.CPU.Seconds() + 0.5),
		"memory": int64(float64(r.MaxMemory) * seconds),
	}
}

// storeOutputs stores every output artifact that the task left. It says whether there were any.
func (a *attempt) storeOutputs(r *spec.Result, out *engine.Result) (stored bool, err error) {
	var broken []error
	for _, decl := range a.cmd.Outputs.Artifacts {
		found, there := r.Artifacts[decl.Name]
		artifacts, err := a.output(decl, found, there, r.Reported[decl.Name])
		if err != nil {
			broken = append(broken, fmt.Errorf("output artifact %s: %w", decl.Name, err))
			continue
		}
		if len(artifacts) == 0 {
			continue
		}
		stored = stored || there
		if out.Outputs.Artifacts == nil {
			out.Outputs.Artifacts = map[string][]program.Artifact{}
		}
		out.Outputs.Artifacts[decl.Name] = artifacts
	}
	return stored, errors.Join(broken...)
}

// output makes an output's artifacts from what was found of it.
func (a *attempt) output(decl program.OutputArtifact, found spec.Found, there bool, reported []program.Artifact) ([]program.Artifact, error) {
	base := a.cmd.OutputArtifacts[decl.Name]
	if base.Name == "" {
		base.Name = decl.Name
	}
	if base.Type == "" {
		base.Type = decl.Type
	}
	if base.Archive == "" {
		base.Archive = decl.Archive
	}
	base.Metadata = merge(decl.Metadata, base.Metadata)
	switch {
	case found.Key != nil || found.Metadata != nil:
		described, err := a.described(base, found)
		return []program.Artifact{described}, err
	case len(reported) > 0:
		return a.reportedOutput(base, found, reported)
	case found.Staged != "":
		saved, err := artifact.Save(a.b.ctx, filepath.Join(a.folder, found.Staged), nameOf(decl.Path, decl.Name), base, a.b.cfg.Artifacts)
		return []program.Artifact{saved}, err
	case !there && decl.Type != "" && !decl.List:
		// KFP's artifacts exist as descriptions, with or without bytes.
		return []program.Artifact{base}, nil
	}
	return nil, nil
}

// reportedOutput merges what a component says of its artifacts over what was declared, and stores their bytes.
func (a *attempt) reportedOutput(base program.Artifact, found spec.Found, reported []program.Artifact) ([]program.Artifact, error) {
	var out []program.Artifact
	for i, r := range reported {
		one := base
		if r.Name != "" {
			one.Name = r.Name
		}
		if r.Type != "" {
			one.Type, one.TypeVersion = r.Type, r.TypeVersion
		}
		one.Metadata = merge(base.Metadata, r.Metadata)
		one.CustomPath = r.CustomPath
		if r.URI != "" && r.URI != base.URI {
			one = chosen(one, base, r.URI)
		}
		if i < len(found.Items) && found.Items[i] != "" && one.Store != nil {
			var err error
			if one, err = artifact.Save(a.b.ctx, filepath.Join(a.folder, found.Items[i]), nameOf(r.CustomPath, base.Name), one, a.b.cfg.Artifacts); err != nil {
				return nil, err
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// chosen puts an artifact at a URI that its component chose. Beside the place that it was given, in the task's own folder of
// the store (KFP's dsl.get_uri), its bytes are stored as any output's; elsewhere the component has put them itself.
func chosen(a, given program.Artifact, uri string) program.Artifact {
	a.URI, a.Store, a.Digest, a.Size = uri, nil, "", 0
	own := strings.HasPrefix(uri, strings.TrimSuffix(given.URI, path.Base(given.URI))) && !strings.Contains(uri, "..")
	if !own || given.URI == "" {
		a.Archive = ""
		return a
	}
	if block, err := artifact.BlockOf(uri); err == nil {
		a.Store = block
	}
	return a
}

// nameOf is what the top of an archive is called: the last part of the path in the task.
func nameOf(p, otherwise string) string {
	if name := path.Base(p); name != "." && name != "/" {
		return name
	}
	return otherwise
}

// merge gives the keys of both, the second's where both have one.
func merge(a, b map[string]any) map[string]any {
	if len(a) == 0 {
		return b
	}
	merged := maps.Clone(a)
	maps.Copy(merged, b)
	return merged
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
