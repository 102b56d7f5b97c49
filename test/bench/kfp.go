package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/test/pythonenv"
	"github.com/sluice-ml/sluice/test/sluicerun"
)

//go:embed pipeline.py
var pipeline []byte

// pythonCandidates run a loop of Python components by kfp.local and by sluice, both with the same interpreter.
func pythonCandidates(ctx context.Context, o options, folder string) ([]candidate, error) {
	bin, err := pythonenv.With(ctx, o.requirements, filepath.Join(o.work, "python"))
	if err != nil {
		return nil, err
	}
	script := filepath.Join(folder, "pipeline.py")
	compiled := filepath.Join(folder, "pipeline.yaml")
	if err := os.WriteFile(script, pipeline, 0o644); err != nil {
		return nil, err
	}
	python := filepath.Join(bin, "python3")
	count := fmt.Sprint(o.pythonTasks)
	if err := command(folder, python, script, "compile", compiled, count)(ctx); err != nil {
		return nil, fmt.Errorf("compile the pipeline: %w", err)
	}
	return []candidate{
		{name: "kfp.local", run: command(folder, python, script, "local", filepath.Join(folder, "outputs"), count)},
		{name: "sluice", run: func(ctx context.Context) error {
			home, err := os.MkdirTemp(folder, "home-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(home)
			p := sluicerun.Program{Binary: o.sluice, Home: home, Path: []string{bin}}
			out, err := p.Run(ctx, limit, "run", "--no-progress", compiled)
			if err == nil && out.Exit != 0 {
				err = fmt.Errorf("exit code %d: %s", out.Exit, out.Last(10))
			}
			return err
		}},
	}, nil
}
