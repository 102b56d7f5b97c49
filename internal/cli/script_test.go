package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/sluice-ml/sluice/internal/cli"
	"github.com/sluice-ml/sluice/internal/executor"
)

// TestMain makes the test binary also the programs that the scripts start.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"sluice": func() {
			code := cli.Main(cli.System("v0-test"))
			if err := goleak.Find(); err != nil {
				fmt.Fprintln(os.Stderr, "left behind:", err)
				code = 70
			}
			os.Exit(code)
		},
		"sluice-executor": func() {
			os.Exit(executor.Main(os.Args[1:], os.Stderr, executor.Host{Environ: os.Environ()}))
		},
	})
}

// Every script in testdata/script tells what one command does.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("SLUICE_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HOME", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"until": until},
	})
}

// until repeats a command until what it prints matches: until REGEXP COMMAND ARGS...
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until regexp command args...")
	}
	want, err := regexp.Compile(args[0])
	ts.Check(err)
	name, err := exec.LookPath(args[1])
	ts.Check(err)
	var out []byte
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		cmd := exec.Command(name, args[2:]...)
		cmd.Dir = ts.Getenv("WORK")
		cmd.Env = append(os.Environ(), "SLUICE_HOME="+ts.Getenv("SLUICE_HOME"), "HOME="+ts.Getenv("HOME"))
		if out, _ = cmd.CombinedOutput(); want.Match(out) {
			return
		}
		time.Sleep(20 * time.Millisecond) // the run is in another process: there is nothing to wait on
	}
	ts.Fatalf("%q was never printed, last: %s", args[0], out)
}
