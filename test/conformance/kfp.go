package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/conformance/kfpcheck"
	"github.com/sluice-ml/sluice/test/pythonenv"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

// kfpSuite runs compiled pipelines and checks their final states, their outputs, and that every task ended as the
// pipeline's own logic demands.
type kfpSuite struct {
	options
	// programs is the corpus' folder of programs that stand in for those of images.
	programs string
	python   string
}

func (s *kfpSuite) prepare(ctx context.Context) (string, error) {
	bin, err := pythonenv.With(ctx, s.requirements, filepath.Join(s.work, "python"))
	s.python = bin
	return "", err
}

func (s *kfpSuite) check(ctx context.Context, m corpus.Manifest) []string {
	program, done, err := s.home([]string{s.bin, s.python, s.programs})
	if err != nil {
		return []string{err.Error()}
	}
	found := s.run(ctx, program, m)
	if text := done(len(found) > 0); text != "" {
		found = append(found, text)
	}
	return found
}

func (s *kfpSuite) run(ctx context.Context, p sluicerun.Program, m corpus.Manifest) []string {
	args := []string{"run", "-o", "json"}
	if len(m.Inputs) > 0 {
		text, err := json.Marshal(m.Inputs)
		if err != nil {
			return []string{err.Error()}
		}
		path := filepath.Join(p.Dir, "parameters.json")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return []string{err.Error()}
		}
		args = append(args, "--parameter-file", path)
	}
	out, err := p.Run(ctx, s.limit, append(args, m.Path)...)
	if err != nil {
		return []string{err.Error()}
	}
	if found := trouble(out); len(found) > 0 {
		return found
	}
	if m.State == "rejected" {
		found := refused(out)
		if out.Exit != 2 {
			found = append(found, fmt.Sprintf("exit code: want 2 since it must be rejected, got %d", out.Exit))
		}
		return found
	}
	got, err := kfpcheck.ReadRun(out.Stdout)
	if err != nil {
		return []string{fmt.Sprintf("%v\nexit code %d: %s", err, out.Exit, out.Last(10))}
	}
	pipeline, err := kfpcheck.ReadPipeline(m.Path)
	if err != nil {
		return []string{err.Error()}
	}
	found := kfpcheck.Check(kfpcheck.Want{State: m.State, Outputs: m.Outputs, Inputs: m.Inputs}, pipeline, got)
	if code := kfpcheck.ExitCode(got.State); out.Exit != code {
		found = append(found, fmt.Sprintf("exit code: want %d for state %s, got %d", code, got.State, out.Exit))
	}
	if len(found) > 0 && got.State != m.State {
		found = append(found, out.Last(10))
	}
	return found
}
