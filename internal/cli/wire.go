package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/builtin"
	"github.com/sluice-ml/sluice/internal/backend/container"
	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/hook"
	"github.com/sluice-ml/sluice/internal/runner"
	"github.com/sluice-ml/sluice/internal/runner/locks"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
	"github.com/sluice-ml/sluice/internal/submission"
)

// openStore opens the database of the home folder, once.
func (a *app) openStore(ctx context.Context) (*sqlite.Store, error) {
	if a.store == nil {
		s, err := sqlite.Open(ctx, a.folder("sluice.db"))
		if err != nil {
			return nil, a.explainStore(err)
		}
		a.store = s
		a.later(s.Close)
	}
	return a.store, nil
}

// explainStore says where the database is, who said so, and what to do about it.
func (a *app) explainStore(err error) error {
	switch {
	case sqlite.Damaged(err):
		return err // the end of the program says what to do, as it does where that shows later
	case errors.Is(err, sqlite.ErrNewer):
		return fmt.Errorf("%w; use that version, or give another home folder with --home or SLUICE_HOME", err)
	}
	return usage("home folder %s (from %s) cannot be used: %w; give one that you may write to with --home or SLUICE_HOME", a.home, a.homeFrom, err)
}

// machine gives the engine for a manifest.
func (a *app) machine(m *submission.Manifest) (*engine.Machine, error) {
	return engine.New(m.Program, m.Lang, (&hook.Conditions{}).Match)
}

// registry reads hook documents. A file that is still there is read anew: how a plugin is reached is live, and what a run
// has settled with its hooks is in its own events.
func (a *app) registry(docs []store.Document) (*hook.Registry, error) {
	var hooks []hook.Hook
	var faults []error
	for _, d := range docs {
		data := d.Data
		if filepath.IsAbs(d.Name) {
			if now, err := os.ReadFile(d.Name); err == nil {
				data = now
			}
		}
		loaded, err := hook.LoadFile(d.Name, data)
		faults = append(faults, err)
		hooks = append(hooks, loaded...)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, usageError{err}
	}
	reg, err := hook.NewRegistry(append(hooks, builtinHooks(hooks)...))
	if err != nil {
		return nil, usageError{err}
	}
	return reg, nil
}

// hooksOf gives the hooks that select a run. What they sign with must be there.
func (a *app) hooksOf(ctx context.Context, reg *hook.Registry, run store.Run) ([]engine.Hook, error) {
	hooks, err := reg.Select(run.Namespace, run.Labels)
	if err != nil {
		return nil, err
	}
	if err := reg.CheckSecrets(ctx, a.hookSecrets(), run.Namespace, hooks); err != nil {
		return nil, usageError{err}
	}
	return hooks, nil
}

func (a *app) hookSecrets() hook.Secrets { return hook.LocalSecrets{Getenv: a.lookupEnv} }

// parts are what a run is connected with.
type parts struct {
	runner *runner.Runner
	ends   []func() error
}

// close ends the parts: first the hooks, which send the last notices, then the rest.
func (p *parts) close() error {
	var err error
	for _, end := range slices.Backward(p.ends) {
		err = errors.Join(err, end())
	}
	p.ends = nil
	return err
}

// noticeTime is how long notices that nothing waits for may keep the program from ending.
const noticeTime = 5 * time.Second

// connect makes the backend, the dispatcher and the locks for one run and puts them together.
func (a *app) connect(e *execution, st *sqlite.Store) (_ *parts, err error) {
	p := &parts{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	hub := runner.NewHub()
	backend, err := a.backend(e, hub)
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, backend.Close)
	hooks, err := a.dispatcher(e, hub)
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), noticeTime)
		defer cancel()
		if err := hooks.Close(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("end the hooks: %w", err)
		}
		return nil
	})
	held := locks.New(st, hub, locks.Options{Log: a.log})
	p.ends = append(p.ends, held.Close)
	p.runner = runner.New(runner.Config{
		Hub: hub, Backend: backend, Hooks: hooks, Locks: held, Journal: st, Log: a.log,
	})
	return p, nil
}

func (a *app) backend(e *execution, sink runner.Sink) (runner.Backend, error) {
	cfg := process.Config{
		Home: a.home, Executor: a.executor(), Sandbox: process.Mode(e.options.Sandbox), Env: a.Environ(),
		Secrets: e.manifest.Secrets, ConfigMaps: e.manifest.ConfigMaps, Limits: e.options.Limits,
		MaxParallel:    int(e.options.Parallelism), // 0 is the backend's own choice
		DecodeArtifact: e.manifest.Lang.DecodeArtifact, Artifacts: a.artifactOptions(e.manifest), Log: a.log,
	}
	var containers backend.Backend
	var err error
	switch e.options.Runtime {
	case "", "process":
		containers, err = process.New(cfg, sink)
	default: // the flag lets nothing else through
		c := container.Config{Program: e.options.Runtime, Process: cfg}
		if len(cfg.Executor) > 0 {
			c.Executor = cfg.Executor[0]
		}
		containers, err = container.New(c, sink)
	}
	if err != nil {
		return nil, err
	}
	opts := a.artifactOptions(e.manifest)
	others := builtin.New(builtin.Config{
		Home: a.home, Eval: e.manifest.Eval, Artifacts: func(engine.Run) artifact.Options { return opts },
	}, sink)
	return backend.ByKind(containers, others), nil
}

// artifactOptions are what stores need to know: the Secrets that were given, and the folder that stands in for stores whose
// credentials were not. That it does is said once for each bucket.
func (a *app) artifactOptions(m *submission.Manifest) artifact.Options {
	var said sync.Map
	return artifact.Options{
		Secrets: func(name, key string) (string, error) {
			value, ok := m.Secrets[name][key]
			if !ok {
				return "", fmt.Errorf("there is no key %q of a Secret %q; give it with -f FILE", key, name)
			}
			return value, nil
		},
		StandIn: artifact.StandIn{Folder: filepath.Join(a.home, "stores"), Used: func(place, folder string, reason error) {
			if _, before := said.LoadOrStore(place, true); !before {
				a.log.Warn("a local folder stands in for a store that cannot be reached from here", "store", place, "folder", folder, "reason", reason)
			}
		}},
	}
}

// executor is the command line of the executor: $SLUICE_EXECUTOR, the program beside this one, or one of PATH.
func (a *app) executor() []string {
	if path := a.Env("SLUICE_EXECUTOR"); path != "" {
		return []string{path}
	}
	beside := filepath.Join(filepath.Dir(a.Program), "sluice-executor")
	if _, err := os.Stat(beside); err == nil {
		return []string{beside}
	}
	if path, err := exec.LookPath("sluice-executor"); err == nil {
		return []string{path}
	}
	return nil // the backend says what is missing
}

func (a *app) dispatcher(e *execution, sink runner.Sink) (*hook.Dispatcher, error) {
	var d *hook.Dispatcher
	plugins, err := a.builtins(context.Background(), e.manifest, func(uid string) { d.Wake(uid) })
	if err != nil {
		return nil, err
	}
	cfg := hook.Config{
		Builtins: plugins,
		Registry: e.registry, Sink: sink, UserAgent: "sluice/" + a.Version, Logger: a.log,
		Secrets: a.hookSecrets(),
		Redact: func(engine.Run) []string {
			var values []string
			for _, secret := range e.manifest.Secrets {
				for _, v := range secret {
					values = append(values, v)
				}
			}
			return values
		},
	}
	for _, h := range e.registry.Hooks() {
		if h.Spec.HTTP == nil {
			continue
		}
		// Plugins on this machine can end a pending review early; the port changes with every start.
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			a.log.Warn("hooks cannot call back; they are asked again instead", "error", err)
			break
		}
		cfg.Callback = &hook.Callback{Listener: l}
		break
	}
	if d, err = hook.New(cfg); err != nil {
		return nil, usageError{err}
	}
	return d, nil
}

func (a *app) lookupEnv(name string) (string, bool) {
	v := a.Env(name)
	return v, v != ""
}
