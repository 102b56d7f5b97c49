package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/kfpoutput"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// The test program is the executor when it is called with a task folder.
func TestMain(m *testing.M) {
	if len(os.Args) >= 3 && os.Args[1] == "executor" {
		os.Exit(executor.Main(os.Args[2:], os.Stderr, executor.Host{Environ: os.Environ(), Parse: kfpoutput.ParseExecutorOutput, Places: testPlaces()}))
	}
	os.Exit(m.Run())
}

// task is a task folder.
type task struct{ folder string }

func newTask(t *testing.T, s spec.Spec) task {
	t.Helper()
	for i, c := range s.Containers {
		if c.Name == "" {
			s.Containers[i].Name = "main"
		}
		s.Containers[i].Env = append(c.Env, "PATH="+os.Getenv("PATH"))
	}
	folder := t.TempDir()
	data, err := json.Marshal(s)
	if err := errors.Join(err, os.WriteFile(filepath.Join(folder, spec.SpecFile), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return task{folder}
}

func (k task) file(name string) string { return filepath.Join(k.folder, name) }

func (k task) text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(k.file(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// start starts an executor on the folder.
func (k task) start(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "executor", k.folder)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// run runs an executor to its end and reads the result.
func (k task) run(t *testing.T) spec.Result {
	t.Helper()
	if err := k.start(t).Wait(); err != nil {
		t.Fatal(err)
	}
	return k.result(t)
}

func (k task) result(t *testing.T) spec.Result {
	t.Helper()
	var r spec.Result
	if err := json.Unmarshal([]byte(k.text(t, spec.ResultFile)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func sh(script string) spec.Container { return spec.Container{Argv: []string{"sh", "-c", script}} }

func TestResult(t *testing.T) {
	tests := map[string]struct {
		spec spec.Spec
		want spec.Result
		log  string
	}{
		"standard output is the result and both streams are logged": {
			spec: spec.Spec{Result: true, Containers: []spec.Container{sh("echo one; echo two >&2; echo three")}},
			want: spec.Result{Phase: spec.Succeeded, Stdout: ptr("one\nthree")},
			log:  "one\ntwo\nthree\n",
		},
		"only the end of a long output is the result": {
			spec: spec.Spec{Result: true, Containers: []spec.Container{sh("head -c 300000 /dev/zero | tr '\\0' x; echo end")}},
			want: spec.Result{Phase: spec.Succeeded, Stdout: ptr(strings.Repeat("x", spec.MaxResult-3) + "end")},
			log:  strings.Repeat("x", 300000) + "end\n",
		},
		"a program that is not there": {
			spec: spec.Spec{Containers: []spec.Container{{Argv: []string{"no-such-program"}}}},
			want: spec.Result{Phase: spec.Failed, ExitCode: ptr(64), Message: `main: Error (exit code 64): no program "no-such-program" in PATH=`},
		},
		"a folder is no program": {
			spec: spec.Spec{Containers: []spec.Container{{Argv: []string{"/tmp"}}}},
			want: spec.Result{Phase: spec.Failed, ExitCode: ptr(64), Message: "main: Error (exit code 64): start /tmp: permission denied"},
		},
		"killed by a signal": {
			spec: spec.Spec{Containers: []spec.Container{sh("kill -9 $$")}},
			want: spec.Result{Phase: spec.Failed, ExitCode: ptr(137), Message: "main: Error (exit code 137)"},
		},
		"standard input is empty": {
			spec: spec.Spec{Containers: []spec.Container{sh("read x && exit 9; exit 0")}},
			want: spec.Result{Phase: spec.Succeeded},
		},
		"a container set runs in the order of its needs": {
			spec: spec.Spec{Result: true, Containers: []spec.Container{
				{Name: "main", Argv: []string{"echo", "2"}, Needs: []string{"a"}}, {Name: "a", Argv: []string{"echo", "1"}},
			}},
			want: spec.Result{Phase: spec.Succeeded, Stdout: ptr("2"), Containers: []spec.ContainerResult{
				{Name: "main", Phase: spec.Succeeded, ExitCode: ptr(0)}, {Name: "a", Phase: spec.Succeeded, ExitCode: ptr(0)},
			}},
			log: "1\n2\n",
		},
		"what needs a failed container is not started": {
			spec: spec.Spec{Containers: []spec.Container{
				{Name: "a", Argv: []string{"false"}}, {Name: "b", Argv: []string{"echo", "b"}, Needs: []string{"a"}}, {Name: "c", Argv: []string{"echo", "c"}},
			}},
			want: spec.Result{Phase: spec.Failed, Message: "a: Error (exit code 1)", Containers: []spec.ContainerResult{
				{Name: "a", Phase: spec.Failed, ExitCode: ptr(1), Message: "Error (exit code 1)"},
				{Name: "b", Phase: spec.Failed, ExitCode: ptr(143), Message: "Error (exit code 143): it needs container a, which failed"},
				{Name: "c", Phase: spec.Succeeded, ExitCode: ptr(0)},
			}},
			log: "c\n",
		},
		"a container is tried again": {
			spec: spec.Spec{Containers: []spec.Container{{
				Name: "main", Argv: []string{"sh", "-c", "echo try; test -e $F && exit 0; touch $F; exit 1"}, Retries: 2, Delay: time.Millisecond,
				Env: []string{"F=" + filepath.Join(t.TempDir(), "f")},
			}}},
			want: spec.Result{Phase: spec.Succeeded},
			log:  "try\ntry\n",
		},
		"it takes too long": {
			spec: spec.Spec{Containers: []spec.Container{sh("exec sleep 100")}, Timeout: 20 * time.Millisecond},
			want: spec.Result{Phase: spec.Failed, ExitCode: ptr(143), Message: "the task took longer than its timeout of 20ms", TimedOut: true},
		},
		"it takes too long and does not listen": {
			spec: spec.Spec{Containers: []spec.Container{sh("trap '' TERM; sleep 100; sleep 100")}, Timeout: 50 * time.Millisecond, Grace: 50 * time.Millisecond},
			want: spec.Result{Phase: spec.Failed, ExitCode: ptr(137), Message: "the task took longer than its timeout of 50ms", TimedOut: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k := newTask(t, test.spec)
			got := k.run(t)
			if len(test.spec.Containers) == 1 && test.want.ExitCode == nil {
				test.want.ExitCode = ptr(0)
			}
			if test.want.Containers != nil && test.want.Phase == spec.Succeeded {
				test.want.ExitCode = ptr(0) // of main
			}
			test.want.Ran = true
			message := test.want.Message
			if !strings.HasPrefix(got.Message, message) || message == "" && got.Message != "" {
				t.Errorf("message %q, want %q", got.Message, message)
			}
			if got.Started.IsZero() || got.Finished.Before(got.Started) {
				t.Errorf("from %v to %v", got.Started, got.Finished)
			}
			got.Message, test.want.Message = "", ""
			if diff := cmp.Diff(test.want, timeless(got)); diff != "" {
				t.Error(diff)
			}
			// Which of the two streams comes first is not certain.
			if log := k.text(t, spec.LogFile); !slices.Equal(sortedLines(log), sortedLines(test.log)) {
				t.Errorf("log %.200q, want %.200q", log, test.log)
			}
		})
	}
}

func sortedLines(text string) []string {
	return slices.Sorted(slices.Values(strings.SplitAfter(text, "\n")))
}

// timeless takes out what differs from run to run.
func timeless(r spec.Result) spec.Result {
	r.Started, r.Finished, r.CPU, r.MaxMemory = time.Time{}, time.Time{}, 0, 0
	for i := range r.Containers {
		r.Containers[i].Started, r.Containers[i].Finished = time.Time{}, time.Time{}
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func TestOutputs(t *testing.T) {
	out := t.TempDir()
	in := func(name string) string { return filepath.Join(out, name) }
	script := fmt.Sprintf(`cd %s
printf 'text\n\n' > p; printf 'text\n' > typed; printf '{"key":1}' > key; ln -s p link
mkdir -p d/e; echo 1 > d/f; ln -s f d/l; mkfifo d/pipe
echo '{"parameterValues":{"reported":11},"artifacts":{"model":{"artifacts":[{"name":"m","uri":"/x","metadata":{"acc":0.5}}]}}}' > report
echo model > model`, out)
	k := newTask(t, spec.Spec{
		Containers: []spec.Container{sh(script)},
		Parameters: []spec.Parameter{
			{Name: "p", Path: in("p"), Trim: true}, {Name: "typed", Path: in("typed")}, {Name: "linked", Path: in("link"), Trim: true},
			{Name: "default", Path: in("none"), Default: ptr("d")}, {Name: "optional", Path: in("none"), Optional: true}, {Name: "reported", Path: in("none")},
		},
		Artifacts: []spec.Artifact{
			{Name: "file", Path: in("p")}, {Name: "folder", Path: in("d")}, {Name: "optional", Path: in("none"), Optional: true},
			{Name: "key", KeyFrom: in("key")}, {Name: "metadata", MetadataFrom: in("key")}, {Name: "model", Path: in("model")},
		},
		ExecutorOutput: in("report"),
	})
	r := k.run(t)
	if r.Phase != spec.Succeeded {
		t.Fatal(r.Message)
	}
	want := map[string]any{"p": "text\n", "typed": "text\n", "linked": "text\n", "default": "d", "reported": 11.0}
	if diff := cmp.Diff(want, r.Parameters); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]spec.Found{
		"file": {Staged: "out/0"}, "folder": {Staged: "out/1"}, "key": {Key: ptr(`{"key":1}`)}, "metadata": {Metadata: ptr(`{"key":1}`)},
		"model": {Items: []string{"out/5-0"}},
	}, r.Artifacts); diff != "" {
		t.Error(diff)
	}
	if got := k.text(t, "out/1/f") + k.text(t, "out/1/l") + k.text(t, "out/5-0"); got != "1\n1\nmodel\n" {
		t.Errorf("staged %q", got)
	}
	if _, err := os.Stat(k.file("out/1/e")); err != nil {
		t.Error(err)
	}
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "d/pipe is neither file") {
		t.Errorf("warnings %v", r.Warnings)
	}
	if m := r.Reported["model"]; len(m) != 1 || m[0].Metadata["acc"] != 0.5 {
		t.Errorf("reported %+v", r.Reported)
	}
}

func TestMissingOutputs(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	s := spec.Spec{
		Containers: []spec.Container{sh("exit 0")}, Parameters: []spec.Parameter{{Name: "p", Path: none}},
		Artifacts: []spec.Artifact{{Name: "a", Path: none}, {Name: "k", KeyFrom: none}},
	}
	r := newTask(t, s).run(t)
	if r.Phase != spec.Error || *r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	for _, part := range []string{"output parameter p: open", "output artifact a: lstat", "output artifact k: open"} {
		if !strings.Contains(r.Message, part) {
			t.Errorf("message %q lacks %q", r.Message, part)
		}
	}
	s.Containers = []spec.Container{sh("exit 1")}
	if r := newTask(t, s).run(t); r.Phase != spec.Failed || r.Message != "main: Error (exit code 1)" {
		t.Errorf("%+v", r)
	}
}

// What is no file has no content to take: a pipe's would be waited for, and a device's has no end.
func TestOutputsThatAreNoFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	r := newTask(t, spec.Spec{
		Containers: []spec.Container{sh("mkfifo " + pipe)}, Parameters: []spec.Parameter{{Name: "p", Path: pipe}, {Name: "z", Path: "/dev/zero"}},
		Artifacts: []spec.Artifact{{Name: "a", Path: pipe}, {Name: "b", Path: "/dev/zero"}},
	}).run(t)
	if r.Phase != spec.Error || *r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	for _, part := range []string{
		"output parameter p: " + pipe + " is not a regular file", "output parameter z: /dev/zero is not a regular file",
		"output artifact a: " + pipe + " is neither a file nor a folder", "output artifact b: /dev/zero is neither a file nor a folder",
	} {
		if !strings.Contains(r.Message, part) {
			t.Errorf("message %q lacks %q", r.Message, part)
		}
	}
}

func TestInputs(t *testing.T) {
	host := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(host, "d"), 0o755), os.WriteFile(filepath.Join(host, "d", "f"), []byte("x"), 0o600),
		os.Symlink("d", filepath.Join(host, "link"))); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	k := newTask(t, spec.Spec{
		Containers: []spec.Container{{Argv: []string{"sh", "-c", "cat raw staged copied/f; ls -l raw copied | cut -c1-10"}, Dir: to}},
		Inputs: []spec.Input{
			{Name: "raw", Data: ptr("raw\n"), Path: filepath.Join(to, "raw"), Mode: ptr(int32(0o755))},
			{Name: "staged", From: "in/0", Path: filepath.Join(to, "staged")},
			{Name: "copied", From: filepath.Join(host, "link"), Path: filepath.Join(to, "copied"), Mode: ptr(int32(0o700)), Recurse: true},
		},
	})
	if err := errors.Join(os.Mkdir(k.file("in"), 0o700), os.WriteFile(k.file("in/0"), []byte("staged\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if r := k.run(t); r.Phase != spec.Succeeded {
		t.Fatal(r.Message)
	}
	if got := k.text(t, spec.LogFile); !strings.HasPrefix(got, "raw\nstaged\nx-rwxr-xr-x\n") || !strings.Contains(got, "-rwx------\n") {
		t.Errorf("%q", got)
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	// One process leaves the group, one the session; both must be gone when the result is there.
	k := newTask(t, spec.Spec{Result: true, Containers: []spec.Container{sh("sleep 1000 & echo $!; setsid sleep 1000 & echo $!; (setsid sh -c 'sleep 1000 & echo $!; exec sleep 1000' &); sleep 0.1")}})
	start := time.Now()
	r := k.run(t)
	if time.Since(start) > 20*time.Second {
		t.Error("it waited for them")
	}
	for pid := range strings.FieldsSeq(*r.Stdout) {
		state := k.procState(t, pid)
		if state != "" && state != "Z" {
			t.Errorf("process %s is still there: %s", pid, state)
		}
	}
	if n := len(strings.Fields(*r.Stdout)); n != 3 {
		t.Errorf("%d processes, want 3", n)
	}
}

func (task) procState(t *testing.T, pid string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return rest[:1]
}
