package executor_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/executor"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

const placesEnv = "SLUICE_TEST_PLACES"

// testPlaces are the places of a pod that the executor of a test uses.
func testPlaces() executor.Places {
	folder := os.Getenv(placesEnv)
	return executor.Places{Folder: folder, TerminationLog: filepath.Join(folder, "termination-log"), TokenFile: filepath.Join(folder, "token")}
}

// testPod is the folder that the containers of a pod share.
type testPod struct{ folder string }

// container is one that runs.
type container struct {
	cmd         *exec.Cmd
	out, stderr bytes.Buffer
	stdout      *bufio.Reader
}

// start starts the executor of a container. Its output is read by whoever waits for it.
func (p testPod) start(t *testing.T, s spec.Pod, env ...string) *container {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	c := &container{cmd: exec.Command(os.Args[0], "executor", "pod")}
	c.cmd.Env = append(os.Environ(), placesEnv+"="+p.folder, spec.PodEnv+"="+string(data))
	c.cmd.Env = append(c.cmd.Env, env...)
	c.cmd.Stderr = &c.stderr
	pipe, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdout = bufio.NewReader(io.TeeReader(pipe, &c.out))
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() }) // if the test gave up
	return c
}

// wait waits for its end and gives the exit code.
func (c *container) wait(t *testing.T) int {
	t.Helper()
	if _, err := io.Copy(io.Discard, c.stdout); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // the exit code says more
	return c.cmd.ProcessState.ExitCode()
}

// ready waits for a line of standard output.
func (c *container) ready(t *testing.T) {
	t.Helper()
	if _, err := c.stdout.ReadString('\n'); err != nil {
		t.Fatalf("%v; it said %q", err, c.stderr.String())
	}
}

func (p testPod) report(t *testing.T) spec.Report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.folder, "termination-log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > spec.MaxTermination {
		t.Errorf("the report has %d bytes", len(data))
	}
	var r spec.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%v: %q", err, data)
	}
	return r
}

func podOf(containers ...string) func(name, script string) spec.Pod {
	return func(name, script string) spec.Pod {
		return spec.Pod{Main: "main", Containers: containers, Task: spec.Spec{Containers: []spec.Container{{Name: name, Argv: []string{"sh", "-c", script}}}}}
	}
}

func TestPodResult(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	tests := map[string]struct {
		task           spec.Spec
		script         string
		code           int
		want           spec.Result
		stdout, stderr string
	}{
		"output goes to the container's own streams, and is the result": {
			task: spec.Spec{Result: true}, script: "echo one; echo two >&2; printf three",
			want: spec.Result{Phase: spec.Succeeded, ExitCode: ptr(0), Stdout: ptr("one\nthree")}, stdout: "one\nthree", stderr: "two\n",
		},
		"the exit code is the command's": {
			script: "exit 7", code: 7, want: spec.Result{Phase: spec.Failed, ExitCode: ptr(7), Message: "main: Error (exit code 7)"},
		},
		"parameters": {
			task:   spec.Spec{Parameters: []spec.Parameter{{Name: "p", Path: out, Trim: true}}},
			script: "echo v > " + out, want: spec.Result{Phase: spec.Succeeded, ExitCode: ptr(0), Parameters: map[string]any{"p": "v"}},
		},
		"an output that is missing": {
			task: spec.Spec{Parameters: []spec.Parameter{{Name: "p", Path: "/nowhere/p"}}}, script: "true", code: 65,
			want:   spec.Result{Phase: spec.Error, ExitCode: ptr(0), Message: "output parameter p: open /nowhere/p: no such file or directory"},
			stderr: "sluice-executor: output parameter p: open /nowhere/p: no such file or directory\n",
		},
		"the environment is the container's, without what to do": {
			script: `echo "$MINE${SLUICE_POD-}${SLUICE_POD_FILE-}"`, stdout: "yes\n", want: spec.Result{Phase: spec.Succeeded, ExitCode: ptr(0)},
		},
		"a result that is too long, without an endpoint": {
			task: spec.Spec{Result: true}, script: "head -c 3000 /dev/zero | tr '\\0' x", code: 65, stdout: strings.Repeat("x", 3000),
			want:   spec.Result{Phase: spec.Error, ExitCode: ptr(0), Message: "the result has 3163 bytes, more than the 2048 that a termination message takes"},
			stderr: "sluice-executor: the result has 3163 bytes",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := testPod{t.TempDir()}
			test.task.Containers = []spec.Container{{Name: "main", Argv: []string{"sh", "-c", test.script}}}
			c := p.start(t, spec.Pod{Main: "main", Task: test.task}, "MINE=yes", spec.PodFileEnv+"=/nowhere")
			if code := c.wait(t); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			r := p.report(t)
			if r.Result == nil || !r.Result.Ran || r.Result.Started.IsZero() || r.Result.Finished.Before(r.Result.Started) {
				t.Fatalf("report %+v", r)
			}
			got := timeless(*r.Result)
			// How long the numbers in it are differs from run to run.
			got.Message, _, _ = strings.Cut(got.Message, ", and the task has no endpoint")
			test.want.Ran = true
			if strings.HasPrefix(got.Message, "the result has 3") {
				got.Message, test.want.Message, test.stderr = "", "", "sluice-executor: the result has 3"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got := c.out.String(); got != test.stdout {
				t.Errorf("stdout %.100q, want %.100q", got, test.stdout)
			}
			if got := c.stderr.String(); !strings.HasPrefix(got, test.stderr) || test.stderr == "" && got != "" {
				t.Errorf("stderr %q, want %q", got, test.stderr)
			}
		})
	}
}

func TestPodThatCannotBegin(t *testing.T) {
	tests := map[string]struct {
		env  []string
		want string
	}{
		"nothing to do":       {want: "there is nothing to do: neither SLUICE_POD nor SLUICE_POD_FILE is set"},
		"nonsense":            {env: []string{spec.PodEnv + "={"}, want: "SLUICE_POD is not what a controller of this version writes: unexpected end of JSON input"},
		"no file":             {env: []string{spec.PodFileEnv + "=/nowhere/pod"}, want: "read what to do: open /nowhere/pod: no such file or directory"},
		"no container":        {env: []string{spec.PodEnv + "={}"}, want: "SLUICE_POD has 0 containers, and needs one"},
		"a name that escapes": {env: []string{spec.PodEnv + `={"task":{"containers":[{"name":"../x"}]}}`}, want: `SLUICE_POD: "../x" is no container's name`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := testPod{t.TempDir()}
			cmd := exec.Command(os.Args[0], "executor", "pod")
			cmd.Env = append(test.env, placesEnv+"="+p.folder)
			said, _ := cmd.CombinedOutput() // the exit code is looked at
			if code := cmd.ProcessState.ExitCode(); code != 65 || string(said) != spec.Voice+test.want+"\n" {
				t.Errorf("exit code %d, said %q", code, said)
			}
			if test.env != nil && strings.Contains(test.env[0], "name") {
				return // it is not the main container
			}
			if r := p.report(t); r.Result == nil || r.Result.Phase != spec.Error || r.Result.Ran || r.Result.Message != test.want {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestPodFromFile(t *testing.T) {
	p := testPod{t.TempDir()}
	data, err := json.Marshal(podOf("main")("main", "exit 3"))
	file := filepath.Join(p.folder, "pod.json")
	if err != nil || os.WriteFile(file, data, 0o600) != nil {
		t.Fatal("the file cannot be written", err)
	}
	cmd := exec.Command(os.Args[0], "executor", "pod")
	cmd.Env = append(os.Environ(), placesEnv+"="+p.folder, spec.PodFileEnv+"="+file)
	if said, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 3 || len(said) != 0 {
		t.Errorf("exit code %d, said %q", cmd.ProcessState.ExitCode(), said)
	}
}

// A command that the specification does not have follows on the command line, whatever it looks like.
func TestPodCommandLine(t *testing.T) {
	for _, test := range []struct {
		command []string
		code    int
		out     string
	}{
		{[]string{"sh", "-c", `printf %s "$0"; exit 4`, "--install"}, 4, "--install"},
		{nil, 65, ""},
	} {
		s := podOf("main")("main", "")
		s.Task.Containers[0].Argv = nil
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], append([]string{"executor", "pod"}, test.command...)...)
		cmd.Env = append(os.Environ(), placesEnv+"="+t.TempDir(), spec.PodEnv+"="+string(data))
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code != test.code || string(out) != test.out {
			t.Errorf("%q: exit code %d, printed %q; want %d and %q", test.command, code, out, test.code, test.out)
		}
	}
}

// The command gets the signal that the container got, and the container still reports.
func TestPodSignals(t *testing.T) {
	trap := `trap 'echo got TERM; exit 5' TERM; trap 'echo got INT; exit 6' INT; trap 'echo got QUIT; exit 8' QUIT; trap 'echo got USR1; exit 0' USR1; echo ready; while :; do sleep 0.01; done`
	tests := map[string]struct {
		send    []syscall.Signal
		script  string
		code    int
		stopped bool
	}{
		"SIGTERM":               {send: []syscall.Signal{syscall.SIGTERM}, script: trap, code: 5, stopped: true},
		"SIGINT":                {send: []syscall.Signal{syscall.SIGINT}, script: trap, code: 6, stopped: true},
		"an image's own":        {send: []syscall.Signal{syscall.SIGQUIT}, script: trap, code: 8, stopped: true},
		"one that ends nothing": {send: []syscall.Signal{syscall.SIGUSR1}, script: trap, code: 0},
		"a second one kills": {
			send:   []syscall.Signal{syscall.SIGTERM, syscall.SIGTERM},
			script: `trap 'echo ready' TERM; echo ready; while :; do sleep 0.01; done`, code: 137, stopped: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := testPod{t.TempDir()}
			c := p.start(t, podOf("main")("main", test.script))
			for _, s := range test.send {
				c.ready(t)
				if err := c.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			if code := c.wait(t); code != test.code {
				t.Errorf("exit code %d, want %d; it said %q", code, test.code, c.stderr.String())
			}
			if r := p.report(t); r.Result == nil || *r.Result.ExitCode != test.code || r.Result.Stopped != test.stopped {
				t.Errorf("report %+v", r.Result)
			}
		})
	}
}

func TestPodContainersWaitForEachOther(t *testing.T) {
	p := testPod{t.TempDir()}
	of := podOf("main", "a")
	log := filepath.Join(p.folder, "log")
	after := of("main", "echo main >> "+log)
	after.Await = []string{"a"}
	sidecar := of("side", "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
	sidecar.Sidecar = true
	side, main := p.start(t, sidecar), p.start(t, after)
	side.ready(t)
	if code := p.start(t, of("a", "echo a >> "+log)).wait(t); code != 0 {
		t.Errorf("a ended with %d", code)
	}
	if code := main.wait(t); code != 0 {
		t.Errorf("main ended with %d: %s", code, main.stderr.String())
	}
	if code := side.wait(t); code != 0 {
		t.Errorf("the sidecar ended with %d: %s", code, side.stderr.String())
	}
	if data, err := os.ReadFile(log); err != nil || string(data) != "a\nmain\n" {
		t.Errorf("%q, %v", data, err)
	}
}

// What its end is called by the signal is not what a sidecar's pod should be called a failure for.
func TestPodSidecarThatDiesOfTheSignal(t *testing.T) {
	p := testPod{t.TempDir()}
	sidecar := podOf("main")("side", "echo ready; exec sleep 1000")
	sidecar.Sidecar = true
	side := p.start(t, sidecar)
	side.ready(t)
	main := podOf("main", "other")("main", "exit 4")
	if code := p.start(t, main).wait(t); code != 4 {
		t.Errorf("main ended with %d", code)
	}
	if code := side.wait(t); code != 0 || side.stderr.String() != "" {
		t.Errorf("the sidecar ended with %d: %s", code, side.stderr.String())
	}
}

func TestPodAwaitedContainerFails(t *testing.T) {
	for name, script := range map[string]string{"it fails": "exit 3", "its executor is killed": "echo ready; exec sleep 1000"} {
		t.Run(name, func(t *testing.T) {
			p := testPod{t.TempDir()}
			of := podOf("main", "a")
			after := of("main", "echo never")
			after.Await = []string{"a"}
			first := p.start(t, of("a", script))
			code := 3
			if strings.Contains(script, "ready") {
				first.ready(t)
				code = 137
				if err := first.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			first.wait(t)
			main := p.start(t, after)
			if got := main.wait(t); got != 143 || main.out.String() != "" {
				t.Errorf("main ended with %d and said %q", got, main.out.String())
			}
			want := fmt.Sprintf("main: Error (exit code 143): it needs container a, which ended with exit code %d", code)
			if r := p.report(t).Result; r == nil || r.Phase != spec.Failed || r.Ran || r.Message != want || main.stderr.String() != spec.Voice+want+"\n" {
				t.Errorf("report %+v, said %q", r, main.stderr.String())
			}
		})
	}
}

func TestPodIsStoppedWhileItWaits(t *testing.T) {
	p := testPod{t.TempDir()}
	after := podOf("main", "a")("main", "echo never")
	after.Await = []string{"a"}
	main := p.start(t, after)
	waitFor(func() bool { _, err := os.Stat(filepath.Join(p.folder, "marks", "main.alive")); return err == nil })
	if err := main.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := main.wait(t); code != 143 {
		t.Errorf("exit code %d", code)
	}
	if r := p.report(t).Result; r == nil || !r.Stopped || r.Ran {
		t.Errorf("report %+v", r)
	}
}

func TestInstall(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	to := filepath.Join(t.TempDir(), "bin", "sluice-executor")
	for range 2 { // a container may be started again
		if said, err := exec.Command(os.Args[0], "executor", "install", to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(to)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	cmd := exec.Command(to, "executor", "pod")
	cmd.Env = append(os.Environ(), placesEnv+"="+t.TempDir())
	if said, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 65 {
		t.Errorf("the copy said %q", said)
	}
}

// waitFor asks until something is so; go test's own timeout ends what never comes.
func waitFor(so func() bool) {
	for !so() {
		runtime.Gosched()
	}
}

// BenchmarkPod is what wrapping a command costs, beside the command alone. This test's program does it, which is larger than
// the executor.
func BenchmarkPod(b *testing.B) {
	data, err := json.Marshal(spec.Pod{Main: "main", Task: spec.Spec{Result: true, Containers: []spec.Container{{Name: "main", Argv: []string{"/bin/true"}}}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("wrapped", func(b *testing.B) {
		folder := b.TempDir()
		for b.Loop() {
			cmd := exec.Command(os.Args[0], "executor", "pod")
			cmd.Env = append(os.Environ(), placesEnv+"="+folder, spec.PodEnv+"="+string(data))
			if said, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, said)
			}
			if err := os.RemoveAll(filepath.Join(folder, "task")); err != nil { // a pod is new, too
				b.Fatal(err)
			}
		}
	})
}
