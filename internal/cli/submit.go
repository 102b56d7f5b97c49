package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/expr"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
)

// submit starts a run and goes on with it until its end.
func (a *app) submit(ctx context.Context, sub store.Submission, opts options, file string, view viewFlags) error {
	m, err := a.load(sub, opts, view.output)
	if err != nil {
		return err
	}
	a.warn(m)
	reg, err := a.registry(sub.Hooks)
	if err != nil {
		return err
	}
	st, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	run, start, err := a.newRun(m, sub, opts, file)
	if err != nil {
		return err
	}
	if start.Run.Hooks, err = reg.Select(run.Namespace, run.Labels); err != nil {
		return err
	}
	if err := os.MkdirAll(a.runFolder(run.UID), 0o700); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	// The owner's lock comes first: a run that is in the list without an owner counts as interrupted.
	owner, err := a.own(run.UID)
	if err != nil {
		return err
	}
	if err := st.Create(ctx, run, engine.Event{Time: run.Created, Seed: rand.Uint64(), Start: &start}); err != nil {
		return errors.Join(err, owner.Release())
	}
	e := &execution{a: a, run: run, manifest: m, options: opts, registry: reg, view: view, owner: owner}
	return e.execute(ctx, nil)
}

// warn prints what is odd about a manifest, once: when it is submitted.
func (a *app) warn(m *manifest) {
	for _, w := range m.warnings {
		fmt.Fprintf(a.logs, "%s %s\n", a.paint(yellow, "warning:"), w)
	}
}

// load compiles a submission; what is wrong with it goes to standard error, and to standard output in the form asked for
// where there is one.
func (a *app) load(sub store.Submission, opts options, output string) (*manifest, error) {
	m, err := compile(sub, opts)
	if err != nil {
		if r, ok := errors.AsType[refusal](err); ok {
			if r.object != nil && (output == "json" || output == "yaml") {
				if e := a.printObject(output, r.object); e != nil {
					return nil, errors.Join(usageError{err}, e)
				}
			}
			return nil, usageError{err}
		}
		return nil, err
	}
	if opts.Parallelism > 0 {
		m.program.Parallelism = opts.Parallelism
	}
	return m, nil
}

// newRun makes up what a run has besides its program.
func (a *app) newRun(m *manifest, sub store.Submission, opts options, file string) (store.Run, engine.Start, error) {
	args, err := json.Marshal(opts)
	if err != nil {
		return store.Run{}, engine.Start{}, fmt.Errorf("keep the options: %w", err)
	}
	sub.Args = args
	name := m.name
	if name == "" {
		name = m.generate + suffix()
	}
	if err := checkName(name); err != nil {
		return store.Run{}, engine.Start{}, err
	}
	root := opts.ArtifactRoot
	uid := uuid.NewString()
	if root == "" {
		root = a.folder("artifacts", uid)
	}
	run := store.Run{
		UID: uid, Name: name, Namespace: m.namespace, Language: m.language,
		Created: time.Now().UTC(), File: file, Submission: sub, Status: store.Status{Phase: engine.Pending},
	}
	start := engine.Start{Run: engine.Run{
		Name: name, UID: uid, Namespace: m.namespace, Title: m.title, Created: run.Created, Parameters: m.parameters, ArtifactRoot: root,
	}}
	if start.Run.Labels, start.Run.Annotations, err = labelsOf(m, start.Run); err != nil {
		return run, start, usageError{fmt.Errorf("%s: %w", file, err)}
	}
	run.Labels = start.Run.Labels
	if at, err := time.Parse(time.RFC3339, start.Run.Annotations[scheduledTime]); err == nil {
		start.Run.Scheduled = &at
	}
	return run, start, nil
}

// scheduledTime is the annotation by which a workflow says for when it was scheduled, as Argo's cron controller writes it.
const scheduledTime = "workflows.argoproj.io/scheduled-time"

// suffix is what makes a generated name unique, of the letters that Kubernetes uses for it.
func suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	b := make([]byte, 5)
	for i := range b {
		b[i] = letters[rand.IntN(len(letters))]
	}
	return string(b)
}

// checkName refuses what would not be a name in Kubernetes: pods and objects are named after the run.
func checkName(name string) error {
	const longest = 253
	bad := strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.")
	if name == "" || bad != "" || name != strings.ToLower(name) || strings.Trim(name, "-.") != name || len(name) > longest {
		return usage("name %q: must be lower-case letters, digits, - and ., at most %d, with a letter or digit at both ends; give another with --name", name, longest)
	}
	return nil
}

// labelsOf resolves the placeholders in a program's labels and annotations.
func labelsOf(m *manifest, run engine.Run) (labels, annotations map[string]string, err error) {
	env := expr.Env{Scope: &runScope{m: m, run: run}, Now: run.Created, Seed: rand.Uint64()}
	resolve := func(what string, in map[string]string) map[string]string {
		if len(in) == 0 {
			return nil
		}
		out := make(map[string]string, len(in))
		for k, v := range in {
			text, e := m.lang.Text(v, env)
			if e != nil {
				err = errors.Join(err, fmt.Errorf("%s %s: %w", what, k, e))
			}
			out[k] = text
		}
		return out
	}
	labels, annotations = resolve("label", m.program.Labels), resolve("annotation", m.program.Annotations)
	return labels, annotations, err
}

// runScope is what labels may read before a run has started: facts of the workflow and its parameters.
type runScope struct {
	m   *manifest
	run engine.Run
	all map[string]any
}

// Lookup implements [expr.Scope].
func (s *runScope) Lookup(path []string) (any, expr.Presence) {
	if s.all == nil {
		parameters := map[string]any{}
		if machine, err := engine.New(s.m.program, s.m.lang, nil); err == nil { // what is wrong with them shows when it starts
			state := engine.NewState()
			if _, err := machine.Step(state, engine.Event{Time: s.run.Created, Seed: 1, Start: &engine.Start{Run: s.run}}); err == nil {
				parameters = state.Parameters
			}
		}
		s.all = map[string]any{"workflow": map[string]any{
			"name": s.run.Name, "namespace": s.run.Namespace, "uid": s.run.UID, "parameters": parameters,
			"serviceAccountName": s.m.program.ServiceAccount, "mainEntrypoint": s.m.program.Entry.Template.Name,
			"creationTimestamp": s.run.Created,
		}}
	}
	return tree(s.all).Lookup(path)
}

// tree is a scope of nested maps.
type tree map[string]any

// Lookup implements [expr.Scope].
func (t tree) Lookup(path []string) (any, expr.Presence) {
	var v any = map[string]any(t)
	for _, step := range path {
		in, ok := v.(map[string]any)
		if !ok {
			return nil, expr.Absent
		}
		if v, ok = in[step]; !ok {
			return nil, expr.Absent
		}
	}
	return v, expr.Present
}

// dryRun checks a submission and shows what would be run.
func (a *app) dryRun(_ context.Context, sub store.Submission, opts options, file, output string) error {
	m, err := a.load(sub, opts, output)
	if err != nil {
		return err
	}
	a.warn(m)
	reg, err := a.registry(sub.Hooks)
	if err != nil {
		return err
	}
	run, start, err := a.newRun(m, sub, opts, file)
	if err != nil {
		return err
	}
	hooks, err := reg.Select(run.Namespace, run.Labels)
	if err != nil {
		return err
	}
	switch output {
	case "name":
		fmt.Fprintln(a.Stdout, run.Name)
		return nil
	case "json", "yaml":
		return a.printObject(output, m.program)
	}
	fmt.Fprintf(a.Stdout, "%s: a %s pipeline that would run as %s\n", file, m.language, run.Name)
	fmt.Fprintf(a.Stdout, "  templates: %d\n", len(m.program.Templates))
	for _, p := range m.program.Parameters {
		value := "(no value)"
		if v, ok := start.Run.Parameters[p.Name]; ok {
			value = valueText(v)
		} else if p.Default != nil {
			value = bindingText(p.Default)
		}
		fmt.Fprintf(a.Stdout, "  parameter %s: %s\n", p.Name, clip(oneLine(value), 120))
	}
	for _, h := range hooks {
		fmt.Fprintf(a.Stdout, "  hook %s\n", h.Name)
	}
	return nil
}

// bindingText shows a parameter's default.
func bindingText(b *program.Binding) string {
	switch {
	case b.Text != nil:
		return *b.Text
	case len(b.Const) > 0:
		var text string
		if json.Unmarshal(b.Const, &text) == nil {
			return text
		}
		return string(b.Const)
	case b.ConfigMap != nil:
		return fmt.Sprintf("(key %s of ConfigMap %s)", b.ConfigMap.Key, b.ConfigMap.Name)
	case b.Expr != "":
		return "(" + b.Expr + ")"
	case b.Ref != "":
		return "(" + b.Ref + ")"
	}
	return "(computed)"
}
