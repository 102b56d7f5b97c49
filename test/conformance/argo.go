package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-ml/sluice/test/conformance/argocheck"
	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

// argoSuite runs Argo manifests and compares with the recorded runs of upstream's controller.
type argoSuite struct {
	options
	bin string
	// env are further variables for sluice.
	env []string
}

func (s *argoSuite) prepare(ctx context.Context) (string, error) {
	if s.runtime == "" {
		return "", nil
	}
	reason, err := packImages(ctx, s.runtime, s.bin)
	if reason != "" || err != nil {
		return reason, err
	}
	variable, reason, err := workingEngine(ctx, s.runtime, s.work)
	if variable != "" {
		s.env = append(s.env, variable)
	}
	return reason, err
}

func (s *argoSuite) check(ctx context.Context, m corpus.Manifest) []string {
	want, err := argocheck.ReadExpected(m.ExpectedPath())
	if err != nil {
		return []string{err.Error()}
	}
	path := []string{s.bin}
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
	if want.Suspended {
		return s.suspended(ctx, p, args, want)
	}
	out, err := p.Run(ctx, s.limit, append([]string{"run", "-o", "json"}, args...)...)
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

// suspended runs a manifest that ends waiting for a person: it must come to the recorded state and stay there until it
// is stopped.
func (s *argoSuite) suspended(ctx context.Context, p sluicerun.Program, args []string, want *argocheck.Expected) []string {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	type ended struct {
		out sluicerun.Output
		err error
	}
	running := make(chan ended, 1)
	go func() {
		out, err := p.Run(ctx, s.limit, append([]string{"run", "-o", "json"}, args...)...)
		running <- ended{out, err}
	}()
	found := s.waits(ctx, p, want)
	name := s.onlyRun(ctx, p)
	out, err := p.Run(ctx, time.Minute, "stop", name)
	if err != nil || out.Exit != 0 {
		found = append(found, fmt.Sprintf("sluice stop %s: exit code %d, %v: %s", name, out.Exit, err, out.Last(3)))
		cancel()
	}
	end := <-running
	if end.err != nil {
		return append(found, end.err.Error())
	}
	found = append(found, trouble(end.out)...)
	got, err := argocheck.ReadWorkflow(end.out.Stdout)
	if err != nil {
		return append(found, fmt.Sprintf("after stop: %v: %s", err, end.out.Last(5)))
	}
	if got.Phase != "Failed" || !got.Finished {
		found = append(found, fmt.Sprintf("after stop: want a finished workflow of phase Failed, got %s", got.Phase))
	}
	return found
}

// waits asks for the run's state until it is as recorded, for as long as such a workflow may reasonably take.
func (s *argoSuite) waits(ctx context.Context, p sluicerun.Program, want *argocheck.Expected) []string {
	found := []string{"never seen"}
	for range 120 {
		if name := s.onlyRun(ctx, p); name != "" {
			out, err := p.Run(ctx, time.Minute, "get", name, "-o", "json")
			if err != nil {
				return []string{err.Error()}
			}
			got, err := argocheck.ReadWorkflow(out.Stdout)
			if err != nil {
				found = []string{fmt.Sprintf("sluice get %s: %v: %s", name, err, out.Last(5))}
			} else if found = argocheck.Compare(want, got); len(found) == 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return found
		case <-time.After(250 * time.Millisecond):
		}
	}
	return found
}

// onlyRun is the name of the one run in a home folder; empty while there is none.
func (s *argoSuite) onlyRun(ctx context.Context, p sluicerun.Program) string {
	out, err := p.Run(ctx, time.Minute, "list", "-o", "name")
	if err != nil {
		return ""
	}
	return firstWord(string(out.Stdout))
}
