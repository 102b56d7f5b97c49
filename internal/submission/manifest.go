package submission

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

// Manifest is a submission that has been read and compiled, in whichever language it is.
type Manifest struct {
	Language string // "argo" or "kfp"
	Program  *program.Program
	Lang     expr.Language
	// Name is the run's fixed name; Generate the beginning of one that is still to be made up.
	Name, Generate string
	Namespace      string
	Title          string
	// Parameters and Artifacts are what the run starts with.
	Parameters map[string]any
	Artifacts  map[string][]program.Artifact
	// Spec is an Argo workflow's, with what it takes from a template; of a pipeline what it asks of a cluster in the same terms,
	// nil for nothing. Its placeholders are as written.
	Spec *argo.WorkflowSpec
	// Project gives the run in the form of its own tools.
	Project func(*engine.State) (any, error)

	// Secrets and ConfigMaps are the values that came with the manifest, by name and key.
	Secrets, ConfigMaps map[string]map[string]string
	Warnings            []string
}

// Refusal is a manifest that is wrong. Object, where there is one, is the run as its own tools would show it.
type Refusal struct {
	Err    error
	Object any
}

func (r Refusal) Error() string { return r.Err.Error() }

// Unwrap gives the cause.
func (r Refusal) Unwrap() error { return r.Err }

// Compile reads a submission. Its errors list everything that is wrong, a line each.
func Compile(sub store.Submission, opts Options) (*Manifest, error) {
	main := sub.Documents[0]
	switch {
	case argo.IsArgo(main.Data):
		return withDefaults(compileArgo(sub.Documents, opts))
	case kfp.IsIR(main.Data):
		return withDefaults(compileKFP(sub.Documents, opts))
	}
	// Something else: Argo's reader says best what is wrong with YAML that should be a Kubernetes object.
	if _, err := argo.Load(argo.Source{Name: main.Name, Data: main.Data}, nil); err != nil {
		return nil, Refusal{Err: err}
	}
	return nil, Refusal{Err: fmt.Errorf("%s: is neither an Argo manifest (apiVersion: argoproj.io/v1alpha1) nor a compiled Kubeflow pipeline; give one of these", main.Name)}
}

func withDefaults(m *Manifest, err error) (*Manifest, error) {
	if err == nil && m.Namespace == "" {
		m.Namespace = "default"
	}
	return m, err
}

// Eval evaluates an expression of the manifest's language over variables.
func (m *Manifest) Eval(source string, vars map[string]any) (any, error) {
	return m.Lang.Value(source, expr.Env{Scope: expr.Tree(vars), Now: time.Now(), Seed: rand.Uint64()})
}
