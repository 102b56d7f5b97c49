//go:build !linux

package executor

import (
	"errors"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

var errLinux = errors.New("only Linux has sandboxes and limits for tasks")

func enterView(spec.Spec) ([]string, error) { return nil, errLinux }

func grab(string) (int, error) { return 0, errLinux }

func attach(int, string, bool) error { return errLinux }

// groups are cgroups, which only Linux has.
type groups struct{}

func openGroups(byContainer map[string][]spec.Group) (*groups, error) {
	if len(byContainer) > 0 {
		return nil, errLinux
	}
	return nil, nil
}

func (g *groups) shareOwn([]spec.Container) {}

func (g *groups) starved(string) bool { return false }

func (g *groups) close() {}
