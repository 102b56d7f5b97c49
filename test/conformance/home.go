package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/test/sluicerun"
)

// home makes a program with a home folder of its own. The returned function ends what still runs there and removes it;
// with keep it stays and the function says where it is. Python environments that sluice makes are shared by all homes.
func (o options) home(path []string, env ...string) (sluicerun.Program, func(keep bool) string, error) {
	folder, err := os.MkdirTemp("", "sluice-conformance-")
	if err != nil {
		return sluicerun.Program{}, nil, fmt.Errorf("make a home folder: %w", err)
	}
	p := sluicerun.Program{Binary: o.sluice, Home: filepath.Join(folder, "home"), Dir: filepath.Join(folder, "work"), Path: path, Env: env}
	for _, sub := range []string{p.Home, p.Dir} {
		if err := os.Mkdir(sub, 0o755); err != nil {
			return p, nil, fmt.Errorf("make a home folder: %w", err)
		}
	}
	environments := filepath.Join(o.work, "envs")
	if err := os.MkdirAll(environments, 0o755); err != nil {
		return p, nil, fmt.Errorf("make a folder for Python environments: %w", err)
	}
	if err := os.Symlink(environments, filepath.Join(p.Home, "envs")); err != nil {
		return p, nil, fmt.Errorf("share Python environments: %w", err)
	}
	return p, func(keep bool) string {
		p.KillRest()
		if keep && o.keep {
			return "kept: " + folder
		}
		if err := os.RemoveAll(folder); err != nil {
			return "could not be removed: " + err.Error()
		}
		return ""
	}, nil
}

// trouble turns what no run may do into differences.
func trouble(out sluicerun.Output) []string {
	var found []string
	if out.Panicked() {
		found = append(found, "panicked:\n"+out.Last(30))
	}
	if out.TimedOut {
		found = append(found, fmt.Sprintf("hung: not done after %.0f s\n%s", out.Took.Seconds(), out.Last(5)))
	}
	return found
}
