// Package process runs tasks as processes of this machine, each in the hands of an executor (see internal/executor) that
// outlives this program. Everything of an attempt is in one folder:
//
//	<home>/runs/<run uid>/tasks/<name>-<hash of path>/
//
// with the files that the package spec of the executor lists, and reported.json once its outputs are stored.
package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// Sink takes events; the runner's Sink is one.
type Sink interface {
	Tell(runUID string, e engine.Event)
}

// Mode says whether tasks get a private view of the machine.
type Mode string

// The modes: Auto takes a sandbox where the kernel allows one, On refuses to work without, Off does not try.
const (
	Auto Mode = "auto"
	On   Mode = "on"
	Off  Mode = "off"
)

// Config is how tasks are run. Home is the only field without a default.
type Config struct {
	// Home is the absolute path of SLUICE_HOME.
	Home string
	// Executor is the command line of the executor without its last argument, the task folder; empty is the program
	// sluice-executor in the folder of the running program.
	Executor []string
	// Launcher runs executors in containers; nil runs them as processes of this machine.
	Launcher Launcher
	// Sandbox is Auto where empty; with a Launcher it means nothing.
	Sandbox Mode
	// MaxParallel is how many tasks run at once; the others wait in order. The default is twice the number of
	// processors, and at least 8: tasks often wait for something else than a processor, and a laptop should stay usable.
	MaxParallel int
	// Env is the environment of this program; tasks get search paths, locale, proxies and the like of it, see taskEnv.
	Env []string
	// ExtraPath are folders to look for programs in before PATH.
	ExtraPath []string
	// Images gives the entrypoint of images whose containers name no command, by image without registry docker.io, tag
	// and digest. argoproj/argosay is known.
	Images map[string][]string
	// Secrets and ConfigMaps by name, then key.
	Secrets, ConfigMaps map[string]map[string]string
	// Claims are folders of the machine that stand for persistent volume claims; others get a folder of the run.
	Claims map[string]string
	// Grace is how long a command may take to end after SIGTERM; the default is 30 s.
	Grace time.Duration
	// Limits asks for the memory limits of containers to be enforced.
	Limits bool
	// DecodeArtifact reads the artifact JSON that a metadataFrom file holds; nil reads [program.Artifact].
	DecodeArtifact func(text string) (program.Artifact, error)
	// Artifacts are options for artifact stores.
	Artifacts artifact.Options
	// Log is for warnings; nil drops them.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if !filepath.IsAbs(c.Home) {
		return c, fmt.Errorf("process backend: home %q must be an absolute path", c.Home)
	}
	if c.Launcher != nil {
		c.Sandbox = Off
	}
	if len(c.Executor) == 0 && c.Launcher == nil {
		self, err := os.Executable()
		if err != nil {
			return c, fmt.Errorf("process backend: find the executor: %w", err)
		}
		beside := filepath.Join(filepath.Dir(self), "sluice-executor")
		if _, err := os.Stat(beside); err != nil {
			return c, fmt.Errorf("process backend: find the executor: %w", err)
		}
		c.Executor = []string{beside}
	}
	switch c.Sandbox {
	case "":
		c.Sandbox = Auto
	case Auto, On, Off:
	default:
		return c, fmt.Errorf("process backend: sandbox %q is none of auto, on, off", c.Sandbox)
	}
	if c.MaxParallel < 0 {
		return c, errors.New("process backend: MaxParallel must not be negative")
	}
	if c.MaxParallel == 0 {
		c.MaxParallel = max(8, 2*runtime.NumCPU())
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Artifacts.Secrets == nil {
		c.Artifacts.Secrets = c.secret
	}
	return c, nil
}

// secret answers store blocks.
func (c Config) secret(name, key string) (string, error) {
	value, ok := c.Secrets[name][key]
	if !ok {
		return "", fmt.Errorf("no key %q of a secret %q is known: give it with -f FILE or in the configuration folder", key, name)
	}
	return value, nil
}
