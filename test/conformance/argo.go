package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/test/conformance/argocheck"
	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

// argoSuite runs Argo manifests and compares with the recorded runs of upstream's controller.
type argoSuite struct {
	options
	// programs is the corpus' folder of programs that stand in for those of images.
	programs string
	// env are further variables for sluice.
	env []string
}

func (s *argoSuite) prepare(ctx context.Context) (string, error) {
	if s.runtime == "" {
		return "", nil
	}
	e, err := openEngine(ctx, s.runtime, filepath.Join(s.work, "containers"))
	if err != nil {
		return "", err
	}
	s.env = append(s.env, e.env...)
	return e.pack(ctx, s.programs)
}

func (s *argoSuite) check(ctx context.Context, m corpus.Manifest) []string {
	want, err := argocheck.ReadExpected(m.ExpectedPath())
	if err != nil {
		return []string{err.Error()}
	}
	path := []string{s.programs}
	if s.runtime != "" {
		path = nil // the images have the corpus' programs
	}
	program, done, err := s.home(path, s.env...)
	if err != nil {
		return []string{err.Error()}
	}
	found := s.run(ctx, program, m, want)
	if text := done(len(found) > 0); text != "" {
		found = append(found, text)
	}
	return found
}

func (s *argoSuite) run(ctx context.Context, p sluicerun.Program, m corpus.Manifest, want *argocheck.Expected) []string {
	args, err := submission(p.Dir, m, want)
	if err != nil {
		return []string{err.Error()}
	}
	if s.runtime != "" {
		args = append([]string{"--runtime", s.runtime}, args...)
	}
	args = append([]string{"run", "-o", "json", "--no-progress", "--limits"}, args...) // a cluster enforces limits
	if want.Suspended {
		return s.suspended(ctx, p, args, want)
	}
	out, err := p.Run(ctx, s.limit, args...)
	if err != nil {
		return []string{err.Error()}
	}
	if found := trouble(out); len(found) > 0 {
		return found
	}
	if want.Invalid() && out.Exit == 2 {
		return refused(out)
	}
	got, err := argocheck.ReadWorkflow(out.Stdout)
	if err != nil {
		return []string{fmt.Sprintf("%v\nexit code %d: %s", err, out.Exit, out.Last(10))}
	}
	found := argocheck.Compare(want, got)
	if code := exitCode(got.Phase); out.Exit != code {
		found = append(found, fmt.Sprintf("exit code: want %d for phase %s, got %d", code, got.Phase, out.Exit))
	}
	return found
}

// refused checks that a refusal explains itself and that nothing was started.
func refused(out sluicerun.Output) []string {
	var found []string
	if len(out.Stderr) == 0 {
		found = append(found, "refused without a word on standard error")
	}
	if got, err := argocheck.ReadWorkflow(out.Stdout); err == nil && len(got.Nodes) > 0 {
		found = append(found, fmt.Sprintf("refused, but has %d nodes", len(got.Nodes)))
	}
	return found
}

func exitCode(phase string) int {
	if phase == "Succeeded" {
		return 0
	}
	return 1
}

// submission gives the arguments that run a manifest as upstream ran it: with the files that it needs, and a template
// through a workflow that refers to it.
func submission(dir string, m corpus.Manifest, want *argocheck.Expected) ([]string, error) {
	var args []string
	for _, need := range m.Needs {
		args = append(args, "-f", need)
	}
	if want.Via != "workflowTemplateRef" {
		return append(args, m.Path), nil
	}
	wrapper := fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: %s-
spec:
  workflowTemplateRef:
    name: %s
    clusterScope: %v
`, want.Name, want.Name, want.Kind == "ClusterWorkflowTemplate")
	path := filepath.Join(dir, "submitted.yaml")
	if err := os.WriteFile(path, []byte(wrapper), 0o644); err != nil {
		return nil, fmt.Errorf("write the workflow that refers to the template: %w", err)
	}
	return append(args, "-f", m.Path, path), nil
}

// suspended runs a manifest that ends waiting for a person: it must come to the recorded state, wait there, and end as
// Failed when it is stopped.
func (s *argoSuite) suspended(ctx context.Context, p sluicerun.Program, args []string, want *argocheck.Expected) []string {
	out, err := p.Run(ctx, s.limit, append(args, "--exit-when-suspended")...)
	if err != nil {
		return []string{err.Error()}
	}
	if found := trouble(out); len(found) > 0 {
		return found
	}
	got, err := argocheck.ReadWorkflow(out.Stdout)
	if err != nil {
		return []string{fmt.Sprintf("%v\nexit code %d: %s", err, out.Exit, out.Last(10))}
	}
	found := argocheck.Compare(want, got)
	if out.Exit != 0 {
		found = append(found, fmt.Sprintf("exit code: want 0 for a run that waits, got %d", out.Exit))
	}
	for _, step := range [][]string{{"stop", got.Name}, {"get", got.Name, "-o", "json"}} {
		if out, err = p.Run(ctx, s.limit, step...); err != nil {
			return append(found, err.Error())
		}
		found = append(found, trouble(out)...)
	}
	got, err = argocheck.ReadWorkflow(out.Stdout)
	if err != nil {
		return append(found, fmt.Sprintf("after stop: %v: %s", err, out.Last(5)))
	}
	if got.Phase != "Failed" || !got.Finished {
		found = append(found, fmt.Sprintf("after stop: want a finished workflow of phase Failed, got %q", got.Phase))
	}
	return found
}
