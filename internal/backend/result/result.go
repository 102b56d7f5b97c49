// Package result turns what an executor left (spec.Result) into the result of an attempt (engine.Result). All backends
// share it. It decides; what has to be stored on the way is stored by a function that the backend gives.
package result

import (
	"errors"
	"fmt"
	"maps"
	"path"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// Options are what a backend knows and the executor does not. The zero value is useful.
type Options struct {
	// Stopped is the command that asked for the attempt's end; nil where nobody asked.
	Stopped *engine.StopTask
	// Save stores what lies in the task folder at a path relative to it where an artifact's description says, and gives
	// the description with digest and size; name is what the top of an archive is called. Nil where tasks store their
	// outputs themselves (spec.Found.Saved).
	Save func(staged, name string, a program.Artifact) (program.Artifact, error)
	// Decode reads the artifact JSON that a metadataFrom file holds; nil reads [program.Artifact].
	Decode func(text string) (program.Artifact, error)
}

// Of makes an attempt's result. stored says that output artifacts came with it. An error is about outputs that could not be
// taken; the result says so already, as an Error, unless the command failed: that is what people want to hear of first.
func Of(r *spec.Result, cmd engine.StartTask, o Options) (out engine.Result, stored bool, err error) {
	out = engine.Result{
		Phase: engine.Phase(r.Phase), ExitCode: r.ExitCode, Message: r.Message, Started: r.Started,
		Transient: r.Phase == spec.Error && !r.Ran,
		Outputs:   engine.Outputs{Parameters: r.Parameters, Result: r.Stdout},
		Resources: usage(r),
	}
	for _, c := range r.Containers {
		out.Containers = append(out.Containers, engine.ContainerResult{
			Name: c.Name, Phase: engine.Phase(c.Phase), ExitCode: c.ExitCode, Message: c.Message, Started: c.Started, Finished: c.Finished,
		})
	}
	if r.Stopped && o.Stopped != nil {
		out.Phase, out.Message = engine.FailedPhase, StopMessage(*o.Stopped)
	}
	out.Outputs.Artifacts, stored, err = outputs(r, cmd, o)
	if err != nil && out.Phase == engine.SucceededPhase {
		out.Phase, out.Message = engine.ErrorPhase, err.Error()
	}
	return out, stored, err
}

// StopMessage is the message of an attempt that was stopped.
func StopMessage(cmd engine.StopTask) string {
	if cmd.Message != "" {
		return cmd.Message
	}
	return "the task was stopped"
}

// Whole gives the whole numbers in a decoded result as int64, the form that values have everywhere in this program.
func Whole(r *spec.Result) {
	for name, value := range r.Parameters {
		r.Parameters[name] = spec.Whole(value)
	}
	spec.WholeArtifacts(r.Reported)
}

// usage is what the commands used: seconds of processor time, bytes of memory times seconds.
func usage(r *spec.Result) map[string]int64 {
	if !r.Ran || r.Started.IsZero() {
		return nil
	}
	seconds := r.Finished.Sub(r.Started).Seconds()
	return map[string]int64{
		"cpu":    int64(r.CPU.Seconds() + 0.5),
		"memory": int64(float64(r.MaxMemory) * seconds),
	}
}

// outputs makes every output artifact that the task left. It says whether there were any.
func outputs(r *spec.Result, cmd engine.StartTask, o Options) (all map[string][]program.Artifact, stored bool, err error) {
	var broken []error
	for _, decl := range cmd.Outputs.Artifacts {
		found, there := r.Artifacts[decl.Name]
		artifacts, err := o.output(base(cmd, decl), decl, found, there, r.Reported[decl.Name])
		if err != nil {
			broken = append(broken, fmt.Errorf("output artifact %s: %w", decl.Name, err))
			continue
		}
		if len(artifacts) == 0 {
			continue
		}
		stored = stored || there
		if all == nil {
			all = map[string][]program.Artifact{}
		}
		all[decl.Name] = artifacts
	}
	return all, stored, errors.Join(broken...)
}

// base is an output as it was declared, at the place that it was given.
func base(cmd engine.StartTask, decl program.OutputArtifact) program.Artifact {
	a := cmd.OutputArtifacts[decl.Name]
	if a.Name == "" {
		a.Name = decl.Name
	}
	if a.Type == "" {
		a.Type = decl.Type
	}
	if a.Archive == "" {
		a.Archive = decl.Archive
	}
	a.Metadata = merge(decl.Metadata, a.Metadata)
	return a
}

// output makes an output's artifacts from what was found of it.
func (o Options) output(base program.Artifact, decl program.OutputArtifact, found spec.Found, there bool, reported []program.Artifact) ([]program.Artifact, error) {
	switch {
	case found.Key != nil || found.Metadata != nil:
		described, err := o.described(base, found)
		return []program.Artifact{described}, err
	case len(reported) > 0:
		return o.reported(base, found, reported)
	case found.Staged != "" || len(found.Saved) == 1:
		saved, err := o.save(found.Staged, found.Saved, 0, nameOf(decl.Path, decl.Name), base)
		return []program.Artifact{saved}, err
	case !there && decl.Type != "" && !decl.List:
		// KFP's artifacts exist as descriptions, with or without bytes.
		return []program.Artifact{base}, nil
	}
	return nil, nil
}

// save takes the bytes that are staged, or what is known of those that the task has stored already.
func (o Options) save(staged string, saved []spec.Saved, i int, name string, a program.Artifact) (program.Artifact, error) {
	switch {
	case i < len(saved):
		a.Digest, a.Size = saved[i].Digest, saved[i].Size
		return a, nil
	case staged == "":
		return a, nil
	case o.Save == nil:
		return a, errors.New("its bytes were left in the pod")
	}
	return o.Save(staged, name, a)
}

// reported merges what a component says of its artifacts over what was declared, and stores their bytes.
func (o Options) reported(base program.Artifact, found spec.Found, reported []program.Artifact) ([]program.Artifact, error) {
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
		staged := ""
		if i < len(found.Items) {
			staged = found.Items[i]
		}
		if one.Store != nil {
			var err error
			if one, err = o.save(staged, found.Saved, i, nameOf(r.CustomPath, base.Name), one); err != nil {
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
	block, own := artifact.Beside(given, uri)
	if !own {
		a.Archive = ""
		return a
	}
	a.Store = block
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
