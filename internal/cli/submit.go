package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
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
	if start.Run.Hooks, err = a.hooksOf(ctx, reg, run); err != nil {
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
func (a *app) warn(m *submission.Manifest) {
	for _, w := range m.Warnings {
		fmt.Fprintf(a.logs, "%s %s\n", a.paint(yellow, "warning:"), w)
	}
}

// load compiles a submission; what is wrong with it goes to standard error, and to standard output in the form asked for
// where there is one.
func (a *app) load(sub store.Submission, opts options, output string) (*submission.Manifest, error) {
	m, err := submission.Compile(sub, opts.Options)
	if err != nil {
		if r, ok := errors.AsType[submission.Refusal](err); ok {
			if r.Object != nil && (output == "json" || output == "yaml") {
				if e := a.printObject(output, r.Object); e != nil {
					return nil, errors.Join(usageError{err}, e)
				}
			}
			return nil, usageError{err}
		}
		return nil, err
	}
	if opts.Parallelism > 0 {
		m.Program.Parallelism = opts.Parallelism
	}
	return m, nil
}

// newRun makes up what a run has besides its program.
func (a *app) newRun(m *submission.Manifest, sub store.Submission, opts options, file string) (store.Run, engine.Start, error) {
	args, err := json.Marshal(opts)
	if err != nil {
		return store.Run{}, engine.Start{}, fmt.Errorf("keep the options: %w", err)
	}
	sub.Args = args
	name := m.Name
	if name == "" {
		name = m.Generate + submission.Suffix()
	}
	if err := submission.CheckName(name); err != nil {
		return store.Run{}, engine.Start{}, err
	}
	root := opts.ArtifactRoot
	uid := uuid.NewString()
	if root == "" {
		root = a.folder("artifacts", uid)
	}
	run := store.Run{
		UID: uid, Name: name, Namespace: m.Namespace, Language: m.Language,
		Created: time.Now().UTC(), File: file, Submission: sub, Status: store.Status{Phase: engine.Pending},
	}
	start := engine.Start{Run: engine.Run{
		Name: name, UID: uid, Namespace: m.Namespace, Title: m.Title, Created: run.Created, Parameters: m.Parameters, Artifacts: m.Artifacts,
		ArtifactRoot: root,
	}}
	if start.Run.Labels, start.Run.Annotations, err = submission.Labels(m, start.Run); err != nil {
		return run, start, usageError{fmt.Errorf("%s: %w", file, err)}
	}
	run.Labels = start.Run.Labels
	if at, err := time.Parse(time.RFC3339, start.Run.Annotations[submission.ScheduledTime]); err == nil {
		start.Run.Scheduled = &at
	}
	return run, start, nil
}

// kindOf is what people call a manifest of a language.
func kindOf(language string) string {
	if language == "kfp" {
		return "a Kubeflow pipeline"
	}
	return "an Argo workflow"
}

// dryRun checks a submission and shows what would be run.
func (a *app) dryRun(ctx context.Context, sub store.Submission, opts options, file, output string) error {
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
	hooks, err := a.hooksOf(ctx, reg, run)
	if err != nil {
		return err
	}
	switch output {
	case "name":
		fmt.Fprintln(a.Stdout, run.Name)
		return nil
	case "json", "yaml":
		return a.printObject(output, m.Program)
	}
	fmt.Fprintf(a.Stdout, "%s: %s that would run as %s\n", file, kindOf(m.Language), run.Name)
	fmt.Fprintf(a.Stdout, "  templates: %d\n", len(m.Program.Templates))
	for _, p := range m.Program.Parameters {
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
