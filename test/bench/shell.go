package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// shellCandidates run the same tiny shell command by xargs, make, and sluice in both modes, two at a time each.
func shellCandidates(o options, folder string) ([]candidate, error) {
	workflow := filepath.Join(folder, "workflow.yaml")
	makefile := filepath.Join(folder, "Makefile")
	if err := os.WriteFile(workflow, fmt.Appendf(nil, `apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: bench-}
spec:
  entrypoint: main
  parallelism: 2
  templates:
  - name: main
    steps:
    - - name: echo
        template: echo
        arguments: {parameters: [{name: "n", value: "{{item}}"}]}
        withSequence: {count: "%d"}
  - name: echo
    inputs: {parameters: [{name: "n"}]}
    container: {image: busybox, command: [sh, -c, "echo {{inputs.parameters.n}}"]}
`, o.tasks), 0o644); err != nil {
		return nil, err
	}
	var rules, targets strings.Builder
	for i := range o.tasks {
		fmt.Fprintf(&targets, " t%d", i)
		fmt.Fprintf(&rules, "t%d:\n\t@echo %d\n", i, i)
	}
	if err := os.WriteFile(makefile, fmt.Appendf(nil, "SHELL := /bin/sh\nall:%s\n.PHONY: all%s\n%s", &targets, &targets, &rules), 0o644); err != nil {
		return nil, err
	}
	candidates := []candidate{
		{name: "xargs -P2", run: command(folder, "sh", "-c", fmt.Sprintf("seq %d | xargs -P2 -I{} sh -c 'echo {}' >/dev/null", o.tasks))},
		{name: "sluice, plain", limit: plainLimit, run: sluice(o, folder, "--sandbox", "off", workflow)},
		{name: "sluice, sandboxed", limit: sandboxLimit, run: sluice(o, folder, "--sandbox", "on", workflow)},
	}
	if _, err := exec.LookPath("make"); err == nil {
		candidates = append(candidates, candidate{name: "make -j2", run: command(folder, "make", "-s", "-j2", "-f", makefile)})
	}
	return candidates, nil
}

// command runs a program and throws away what it prints.
func command(folder string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

// sluice runs a manifest in a new home folder each time.
func sluice(o options, folder string, args ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		home, err := os.MkdirTemp(folder, "home-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(home)
		p := sluicerun.Program{Binary: o.sluice, Home: home}
		out, err := p.Run(ctx, limit, append([]string{"run", "--no-progress"}, args...)...)
		if err == nil && out.Exit != 0 {
			err = fmt.Errorf("exit code %d: %s", out.Exit, out.Last(10))
		}
		return err
	}
}

// limit for one call.
const limit = 5 * time.Minute
