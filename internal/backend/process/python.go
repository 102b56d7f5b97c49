package process

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/sluice-ml/sluice/internal/program"
)

// satisfied.py says whether an interpreter already has what a task would install.
//
//go:embed satisfied.py
var satisfiedScript string

// pythonEnv is where a task's Python packages are.
type pythonEnv struct {
	bin string // a folder for the front of PATH; empty where this machine's own interpreter has them
	env []string
}

// environments makes Python environments, each once, and remembers those that it has looked at.
type environments struct {
	mu   sync.Mutex
	sets map[string]*environmentSet
}

// environmentSet is what is known of one set of requirements.
type environmentSet struct {
	turn  chan struct{} // held by the one that looks or installs
	ready *pythonEnv
}

func newEnvironments() *environments { return &environments{sets: map[string]*environmentSet{}} }

// python gives the environment for the task's requirements; nil where it has none.
func (a *attempt) python() (*pythonEnv, error) {
	body := a.cmd.Body
	if len(body.Requirements) == 0 || len(body.PythonCommand) == 0 || a.b.cfg.Launcher != nil {
		return nil, nil
	}
	env, err := a.b.pythons.get(a.ctx, a.b.cfg, body.Requirements)
	if err != nil {
		return nil, fmt.Errorf("python environment: %w", err)
	}
	return env, nil
}

func (e *environments) get(ctx context.Context, cfg Config, requirements []string) (*pythonEnv, error) {
	key := strings.Join(requirements, "\x00")
	e.mu.Lock()
	set := e.sets[key]
	if set == nil {
		set = &environmentSet{turn: make(chan struct{}, 1)}
		e.sets[key] = set
	}
	e.mu.Unlock()
	select {
	case set.turn <- struct{}{}:
		defer func() { <-set.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if set.ready != nil {
		return set.ready, nil
	}
	env, err := provide(ctx, cfg, requirements)
	if err == nil {
		set.ready = env
	}
	return env, err
}

// provide looks whether the requirements are there already, and installs them where they are not.
func provide(ctx context.Context, cfg Config, requirements []string) (*pythonEnv, error) {
	python, err := findPython(cfg)
	if err != nil {
		return nil, err
	}
	identity, satisfied, err := examine(ctx, cfg, python, requirements)
	if err != nil {
		return nil, err
	}
	if satisfied {
		return &pythonEnv{}, nil
	}
	sum := sha256.Sum256([]byte(identity + "\x00" + strings.Join(requirements, "\x00")))
	folder := filepath.Join(cfg.Home, "envs", hex.EncodeToString(sum[:10]))
	env := &pythonEnv{bin: filepath.Join(folder, "bin"), env: []string{"VIRTUAL_ENV=" + folder}}
	return env, install(ctx, cfg, python, folder, requirements)
}

// findPython finds the interpreter that tasks would find.
func findPython(cfg Config) (string, error) {
	vars := &environment{values: map[string]string{"PATH": searchPath(cfg)}}
	for _, name := range []string{"python3", "python"} {
		if file := vars.find(name); file != "" {
			return file, nil
		}
	}
	return "", errors.New("no python3 in PATH")
}

// examine asks an interpreter which one it is and whether it can import what is required.
func examine(ctx context.Context, cfg Config, python string, requirements []string) (identity string, satisfied bool, err error) {
	words, err := json.Marshal(installations(requirements))
	if err != nil {
		return "", false, err
	}
	cmd := exec.CommandContext(ctx, python, "-c", satisfiedScript, string(words))
	cmd.Env = cfg.Env
	out, err := cmd.Output()
	if err != nil {
		return "", false, fmt.Errorf("look at the packages of %s: %w", python, withStderr(err))
	}
	var answer struct {
		Identity string `json:"identity"`
		Missing  string `json:"missing"`
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", false, fmt.Errorf("look at the packages of %s: %w", python, err)
	}
	if answer.Missing != "" {
		cfg.Log.Debug("python packages are missing", "python", python, "missing", answer.Missing)
	}
	return answer.Identity, answer.Missing == "", nil
}

// installations splits requirements into the words of each pip install.
func installations(requirements []string) [][]string {
	var list [][]string
	rest := requirements
	for {
		i := slices.Index(rest, program.InstallSeparator)
		if i < 0 {
			return append(list, rest)
		}
		list, rest = append(list, rest[:i]), rest[i+1:]
	}
}

// completeMark is in an environment that was made to its end.
const completeMark = ".complete"

// install makes an environment that sees this machine's packages and has the required ones besides. Programs that want
// the same one wait for each other; one that was not made to its end is made anew.
func install(ctx context.Context, cfg Config, python, folder string, requirements []string) (err error) {
	mark := filepath.Join(folder, completeMark)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	unlock, err := lockFile(ctx, folder+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	cfg.Log.Info("installing python packages, once", "packages", strings.Join(requirements, " "))
	if err := command(ctx, cfg, python, "-m", "venv", "--system-site-packages", "--without-pip", folder); err != nil {
		return fmt.Errorf("make a virtual environment: %w", err)
	}
	inside := filepath.Join(folder, "bin", "python3")
	for _, words := range installations(requirements) {
		args := append([]string{"-m", "pip", "install", "--disable-pip-version-check", "--quiet"}, words...)
		if err := command(ctx, cfg, inside, args...); err != nil {
			return fmt.Errorf("pip install %s: %w", strings.Join(words, " "), err)
		}
	}
	return os.WriteFile(mark, nil, 0o644)
}

// command runs a program of this machine with the whole environment of this program: pip has its settings there.
func command(ctx context.Context, cfg Config, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = cfg.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	_, err := cmd.Output()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return withStderr(err)
}

// withStderr adds the last lines that a program said to its error.
func withStderr(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) || len(exit.Stderr) == 0 {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
	return fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-5):], "; "))
}

// lockFile waits for a lock that other programs may hold.
func lockFile(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	locked := make(chan error, 1)
	go func() {
		for {
			err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
			if !errors.Is(err, syscall.EINTR) {
				locked <- err
				return
			}
		}
	}()
	select {
	case err := <-locked:
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), f.Close())
		}
		return func() { _ = f.Close() }, nil
	case <-ctx.Done():
		// The lock comes some time, and goes with the file.
		go func() {
			err := <-locked
			_ = errors.Join(err, f.Close()) // nobody is there to be told
		}()
		return nil, context.Cause(ctx)
	}
}

// userBase is where packages of this machine's user are, which a private HOME would hide.
func userBase(cfg Config) string {
	home := ""
	for _, v := range cfg.Env {
		if rest, ok := strings.CutPrefix(v, "PYTHONUSERBASE="); ok {
			return rest
		}
		if rest, ok := strings.CutPrefix(v, "HOME="); ok {
			home = rest
		}
	}
	if home == "" {
		return ""
	}
	base := filepath.Join(home, ".local")
	if found, err := filepath.Glob(filepath.Join(base, "lib", "python3*")); err != nil || len(found) == 0 {
		return ""
	}
	return base
}
