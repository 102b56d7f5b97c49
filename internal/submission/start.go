package submission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
)

// ScheduledTime is the annotation by which a workflow says for when it was scheduled, as Argo's cron controller writes it.
const ScheduledTime = "workflows.argoproj.io/scheduled-time"

// Suffix is what makes a generated name unique, of the letters that Kubernetes uses for it.
func Suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, 5)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// CheckName refuses what would not be a name in Kubernetes: pods and objects are named after the run.
func CheckName(name string) error {
	const longest = 253
	bad := strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.")
	if name == "" || bad != "" || name != strings.ToLower(name) || strings.Trim(name, "-.") != name || len(name) > longest {
		return fmt.Errorf("name %q: must be lower-case letters, digits, - and ., at most %d, with a letter or digit at both ends; give another with --name", name, longest)
	}
	return nil
}

// Labels resolves the placeholders in a program's labels and annotations.
func Labels(m *Manifest, run engine.Run) (labels, annotations map[string]string, err error) {
	env := expr.Env{Scope: &runScope{m: m, run: run}, Now: run.Created, Seed: rand.Uint64()}
	resolve := func(what string, in map[string]string) map[string]string {
		if len(in) == 0 {
			return nil
		}
		out := make(map[string]string, len(in))
		for k, v := range in {
			text, e := m.Lang.Text(v, env)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("%s %s: %w", what, k, e))
			}
			if problems := validation.IsValidLabelValue(text); e == nil && what == "label" && m.Language == "argo" && problems != nil {
				err = errors.Join(err, fmt.Errorf("label %s: %q is not a label's value: %s", k, text, strings.Join(problems, "; ")))
			}
			out[k] = text
		}
		return out
	}
	labels, annotations = resolve("label", m.Program.Labels), resolve("annotation", m.Program.Annotations)
	return labels, annotations, err
}

// runScope is what labels may read before a run has started: facts of the workflow and its parameters.
type runScope struct {
	m   *Manifest
	run engine.Run
	all map[string]any
}

// Lookup implements [expr.Scope].
func (s *runScope) Lookup(path []string) (any, expr.Presence) {
	if s.all == nil {
		parameters := map[string]any{}
		if machine, err := engine.New(s.m.Program, s.m.Lang, nil); err == nil { // what is wrong with them shows when it starts
			state := engine.NewState()
			if _, err := machine.Step(state, engine.Event{Time: s.run.Created, Seed: 1, Start: &engine.Start{Run: s.run}}); err == nil {
				parameters = state.Parameters
			}
		}
		s.all = map[string]any{"workflow": map[string]any{
			"name": s.run.Name, "namespace": s.run.Namespace, "uid": s.run.UID, "parameters": parameters,
			"serviceAccountName": s.m.Program.ServiceAccount, "mainEntrypoint": s.m.Program.Entry.Template.Name,
			"creationTimestamp": s.run.Created,
		}}
	}
	return expr.Tree(s.all).Lookup(path)
}
