package process_test

import (
	"archive/zip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// wheel makes a Python package that can be installed from a folder.
func wheel(t *testing.T, folder, name, version string) {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%s-py3-none-any.whl", name, version)))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	info := fmt.Sprintf("%s-%s.dist-info/", name, version)
	for file, text := range map[string]string{
		name + ".py":      "version = '" + version + "'\n",
		info + "METADATA": fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version),
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   "",
	} {
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func needPip(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("python3", "-c", "import venv, pip").CombinedOutput(); err != nil {
		t.Skipf("python3 with venv and pip is needed: %s", out)
	}
}

// python is a task that prints what a package says.
func python(path, source string, requirements ...string) engine.StartTask {
	cmd := shell(path, "")
	cmd.Body.Containers[0] = program.Container{Name: "main", Command: []string{"sh", "-c", "exit 9"}}
	cmd.Body.Requirements = requirements
	cmd.Body.PythonCommand = []string{"python3", "-c", source}
	return cmd
}

func TestPythonEnvironments(t *testing.T) {
	needPip(t)
	index := t.TempDir()
	wheel(t, index, "sluicetestone", "1.2")
	wheel(t, index, "sluicetesttwo", "3.4")
	var log locked
	b, sink := open(t, func(c *process.Config) {
		c.Log = logTo(&log)
		c.Env = append(c.Env, "PIP_NO_INDEX=1", "PIP_FIND_LINKS="+index)
	})
	source := "import sluicetestone as one, sluicetesttwo as two; print(one.version, two.version)"
	requirements := []string{"sluicetestone==1.2", program.InstallSeparator, "sluicetesttwo>=3", "--no-deps"}
	for _, path := range []string{"run.a", "run.b", "run.c"} {
		if err := b.Start(t.Context(), run, python(path, source, requirements...)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if r := sink.finished(t); r.Phase != engine.SucceededPhase || *r.Outputs.Result != "1.2 3.4" {
			t.Fatalf("%+v", r)
		}
	}
	if n := strings.Count(log.String(), "installing python packages"); n != 1 {
		t.Errorf("installed %d times\n%s", n, log.String())
	}
	r := result(t, b, sink, python("run.none", "print(1)", "sluicetestone==9"))
	if r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, "pip install sluicetestone==9") || !strings.Contains(r.Message, "No matching distribution") {
		t.Errorf("%+v", r)
	}
}

func TestPythonEnvironmentIsNotMadeWhereThereIsNoNeed(t *testing.T) {
	needPip(t)
	var log locked
	home := ""
	b, sink := open(t, func(c *process.Config) { c.Log = logTo(&log); home = c.Home })
	cmd := python("run.a", "import pip; print(1)", "pip>=1", `none-such==1; python_version<"3"`, "--no-deps", "--index-url", "http://none.invalid")
	if got := succeeds(t, b, sink, cmd); got[0] != "1" {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(home, "envs")); err == nil || strings.Contains(log.String(), "installing") {
		t.Errorf("an environment was made: %s", log.String())
	}
}

// Any kfp of the same major version will do: the pin is the compiler's own version.
func TestAnyKFPOfTheSameMajorVersionWillDo(t *testing.T) {
	needPip(t)
	site := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(site, "kfp"), 0o755), os.WriteFile(filepath.Join(site, "kfp", "__init__.py"), []byte("__version__ = '2.99.0'\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, sink := open(t, func(c *process.Config) {
		c.Env = append(c.Env, "PYTHONPATH="+site, "PIP_NO_INDEX=1")
	})
	if got := succeeds(t, b, sink, python("run.a", "import kfp; print(kfp.__version__)", "kfp==2.14.3", "--no-deps")); got[0] != "2.99.0" {
		t.Errorf("%q", got)
	}
	if r := result(t, b, sink, python("run.b", "print(1)", "kfp==1.8.22")); r.Phase != engine.ErrorPhase {
		t.Errorf("another major version will do: %+v", r)
	}
}

// locked is a text that several goroutines write to.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
