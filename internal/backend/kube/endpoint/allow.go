package endpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// maxKey bounds a key in bytes, as S3 does.
const maxKey = 1024

// allowed are the operations in each direction. A task reads what it was given and writes what it declares: never the other
// way round, so that it can neither change what others read nor read what others wrote.
func allowed(d spec.Direction) []spec.Op {
	switch d {
	case spec.In:
		return []spec.Op{spec.OpStat, spec.OpList, spec.OpGet}
	case spec.Out:
		return []spec.Op{spec.OpStat, spec.OpList, spec.OpPut, spec.OpPart, spec.OpFinish, spec.OpAbort, spec.OpDelete}
	}
	return nil
}

// open gives the store of the artifact that a question is about, if the attempt may ask it.
func (a Attempt) open(ask spec.Ask) (artifact.Store, error) {
	may := allowed(ask.Direction)
	switch {
	case may == nil:
		return nil, refuse(http.StatusBadRequest, "there is no direction %q: use %s or %s", ask.Direction, spec.In, spec.Out)
	case !slices.Contains(may, ask.Op):
		return nil, refuse(http.StatusForbidden, "%q is no operation for an artifact that goes %s: a task reads its inputs and writes its outputs", ask.Op, ask.Direction)
	}
	if err := checkKey(ask.Key); err != nil {
		return nil, err
	}
	art, err := a.find(ask)
	if err != nil {
		return nil, err
	}
	return artifact.OpenArtifact(art, a.Artifacts)
}

// checkKey lets only keys through that stay below their artifact.
func checkKey(key string) error {
	if key == "" {
		return nil
	}
	if len(key) > maxKey || !fs.ValidPath(key) || key == "." || strings.ContainsAny(key, "\\\x00") {
		return refuse(http.StatusForbidden, "key %.100q leaves its artifact, or is none: it must be relative, without . or .. in it", key)
	}
	return nil
}

func (a Attempt) find(ask spec.Ask) (program.Artifact, error) {
	if ask.Direction == spec.In {
		list := a.Cmd.Inputs.Artifacts[ask.Name]
		if ask.Index < 0 || ask.Index >= len(list) {
			return program.Artifact{}, refuse(http.StatusForbidden, "this task has no input artifact %q with number %d", ask.Name, ask.Index)
		}
		return list[ask.Index], nil
	}
	if !slices.ContainsFunc(a.Cmd.Outputs.Artifacts, func(o program.OutputArtifact) bool { return o.Name == ask.Name }) {
		return program.Artifact{}, refuse(http.StatusForbidden, "this task has no output artifact %q", ask.Name)
	}
	given := a.Cmd.OutputArtifacts[ask.Name]
	if given.Store == nil && given.URI == "" {
		return given, refuse(http.StatusUnprocessableEntity,
			"output artifact %q has no place to go to: configure an artifact repository, or say in the template where it is to be stored", ask.Name)
	}
	if ask.URI == "" || ask.URI == given.URI {
		return given, nil
	}
	block, beside := artifact.Beside(given, ask.URI)
	if !beside {
		return given, &problem{
			status: http.StatusConflict, code: spec.CodeElsewhere,
			text: fmt.Sprintf("%s is not beside the place of output artifact %q: what is there its component has stored by itself", ask.URI, ask.Name),
		}
	}
	return program.Artifact{Name: given.Name, URI: ask.URI, Store: block}, nil
}

// storeProblem says in HTTP's words what a store has said.
func storeProblem(err error) *problem {
	p := &problem{status: http.StatusBadGateway, text: "the artifact's store: " + err.Error(), cause: err}
	switch {
	case errors.Is(err, artifact.ErrUploadGone):
		p.status, p.code = http.StatusConflict, spec.CodeUploadGone
	case errors.Is(err, fs.ErrNotExist):
		p.status, p.code = http.StatusNotFound, spec.CodeAbsent
	case errors.Is(err, artifact.ErrTree):
		p.status, p.code = http.StatusConflict, spec.CodeTree
	case errors.Is(err, artifact.ErrReadOnly):
		p.status, p.code = http.StatusForbidden, spec.CodeReadOnly
	case errors.Is(err, artifact.ErrNoSecret):
		p.status, p.text = http.StatusUnprocessableEntity, p.text+": check the secret that the artifact's store names"
	case artifact.Lasting(err):
		p.status = http.StatusUnprocessableEntity
	}
	return p
}
