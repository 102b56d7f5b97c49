package process

import (
	"syscall"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// sandbox is how tasks get a private view of the machine.
type sandbox struct {
	root bool
}

func openSandbox(Config) (*sandbox, error) { return nil, nil }

func (v *sandbox) describe(folder, host string, s *spec.Spec) {}

func (v *sandbox) attributes(attr *syscall.SysProcAttr) {}

func bootID() string { return spec.Boot() }
