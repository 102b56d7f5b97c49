package executor_test

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// waiting is a task whose command says that it began and then waits for a word.
func waiting(t *testing.T, before string) (k task, began func() string, release func()) {
	t.Helper()
	folder := t.TempDir()
	say, word := filepath.Join(folder, "say"), filepath.Join(folder, "word")
	if err := errors.Join(syscall.Mkfifo(say, 0o600), syscall.Mkfifo(word, 0o600)); err != nil {
		t.Fatal(err)
	}
	k = newTask(t, spec.Spec{
		Result: true, Grace: 50 * time.Millisecond,
		Containers: []spec.Container{sh("exec 3<>" + say + " 4<>" + word + "; " + before + " echo run; echo $$ >&3; read x <&4; echo released")},
	})
	began = func() string {
		t.Helper()
		f, err := os.Open(say)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		line, err := bufio.NewReader(f).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	release = func() {
		t.Helper()
		if err := os.WriteFile(word, []byte("go\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k, began, release
}

func TestKilledExecutorTakesItsCommandAlong(t *testing.T) {
	k, began, _ := waiting(t, "")
	cmd := k.start(t)
	pid := began()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	r := k.run(t)
	if r.Phase != spec.Error || !r.Ran || !strings.Contains(r.Message, "lost") || r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	// What it printed may have been on its way.
	if got := k.text(t, spec.LogFile); got != "run\n" && got != "" {
		t.Errorf("log %q: it ran again", got)
	}
	// It was killed when its executor died; its new parent may not have looked at it yet.
	if state := k.procState(t, pid); state != "" && state != "Z" && state != "X" {
		t.Errorf("the command is still there: %s", state)
	}
}

func TestSecondExecutorWaitsForTheFirst(t *testing.T) {
	k, began, release := waiting(t, "")
	first := k.start(t)
	began()
	second := k.start(t)
	release()
	if err := errors.Join(first.Wait(), second.Wait()); err != nil {
		t.Fatal(err)
	}
	if r := k.result(t); r.Phase != spec.Succeeded || *r.Stdout != "run\nreleased" {
		t.Errorf("%+v", r)
	}
}

func TestOutputsAreTakenAfterAllWhenTheCommandHadExited(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for state, want := range map[string]spec.Phase{
		"started 2026-01-02T03:04:05Z\nexited 0 main\n":                                        spec.Error,
		"executor 1 2 b\nstarted 2026-01-02T03:04:05Z\nexited 3 main\nstdout \"said\"\ndone\n": spec.Failed,
		"started 2026-01-02T03:04:05Z\nexited 143 main\nstdout \"said\"\ndone stopped\n":       spec.Failed,
		"started 2026-01-02T03:04:05Z\nexited 0 ma":                                            spec.Error,
		"started 2026-01-02T03:04:05Z\n":                                                       spec.Error,
		"started 2026-01-02T03:04:05Z\nexited 0 other\nexited 0 main\nstdout \"said\"\ndone\n": spec.Succeeded,
	} {
		k := newTask(t, spec.Spec{
			Result: true, Containers: []spec.Container{sh("echo ran again")}, Parameters: []spec.Parameter{{Name: "p", Path: out}},
		})
		err := errors.Join(os.WriteFile(out, []byte("7"), 0o600), os.WriteFile(k.file(spec.StateFile), []byte(state), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		r := k.run(t)
		if r.Phase != want || !r.Ran || r.Started.Year() != 2026 {
			t.Errorf("%q: %+v", state, r)
		}
		if want != spec.Error && (r.Parameters["p"] != "7" || *r.Stdout != "said") {
			t.Errorf("%q: outputs %+v", state, r)
		}
		if strings.Contains(state, "stopped") != r.Stopped {
			t.Errorf("%q: stopped %v", state, r.Stopped)
		}
		if got := k.text(t, spec.LogFile); got != "" {
			t.Errorf("it ran again: %q", got)
		}
	}
}

func TestResultIsNotMadeTwice(t *testing.T) {
	k := newTask(t, spec.Spec{Containers: []spec.Container{sh("echo run")}})
	first := k.run(t)
	second := k.run(t)
	if !first.Finished.Equal(second.Finished) || k.text(t, spec.LogFile) != "run\n" {
		t.Error("it ran twice")
	}
}

func TestSignals(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		send   []syscall.Signal
		code   int
		log    string
	}{
		"gently":            {send: []syscall.Signal{syscall.SIGTERM}, code: 143, log: "run\n"},
		"the command cares": {before: "trap 'echo bye; exit 5' TERM;", send: []syscall.Signal{syscall.SIGINT}, code: 5, log: "run\nbye\n"},
		"the command is glad": {
			before: "trap 'exit 0' TERM;", send: []syscall.Signal{syscall.SIGTERM}, code: 0, log: "run\n",
		},
		"after the grace":   {before: "trap '' TERM;", send: []syscall.Signal{syscall.SIGTERM}, code: 137, log: "run\n"},
		"at once":           {before: "trap '' TERM;", send: []syscall.Signal{syscall.SIGQUIT}, code: 137, log: "run\n"},
		"first so, then so": {before: "trap '' TERM;", send: []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT}, code: 137, log: "run\n"},
	} {
		t.Run(name, func(t *testing.T) {
			k, began, _ := waiting(t, test.before)
			cmd := k.start(t)
			began()
			for _, s := range test.send {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			r := k.result(t)
			if r.Phase != spec.Failed || !r.Stopped || r.ExitCode == nil || *r.ExitCode != test.code || r.Message == "" {
				t.Errorf("%+v", r)
			}
			if got := k.text(t, spec.LogFile); got != test.log {
				t.Errorf("log %q", got)
			}
		})
	}
}

func TestStopFile(t *testing.T) {
	k := newTask(t, spec.Spec{Containers: []spec.Container{sh("echo run")}})
	if err := os.WriteFile(k.file(spec.StopFile), []byte("gently"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := k.run(t)
	if r.Phase != spec.Failed || !r.Stopped || r.Ran || k.text(t, spec.LogFile) != "" {
		t.Errorf("%+v", r)
	}
}

func TestBrokenFolders(t *testing.T) {
	k := task{t.TempDir()}
	cmd := k.start(t) // says why on standard error
	if err := cmd.Wait(); err == nil {
		t.Error("a folder without a spec is accepted")
	}
	if err := os.WriteFile(k.file(spec.SpecFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.start(t).Wait(); err == nil {
		t.Error("a spec that is cut off is accepted")
	}
}
