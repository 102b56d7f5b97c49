package container

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/backend"
	"github.com/sluice-ml/sluice/internal/backend/backendtest"
	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// podman makes an image with a shell and an executor; tests are skipped where that is not possible.
func podman(t *testing.T) (image, executor string) {
	t.Helper()
	if testing.Short() {
		t.Skip("containers take their time")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("a static busybox is needed for an image")
	}
	if _, err := exec.LookPath("podman"); err != nil {
		t.Skip("podman is needed")
	}
	executor = filepath.Join(t.TempDir(), "sluice-executor")
	build := exec.Command("go", "build", "-o", executor, "../../../cmd/sluice-executor")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	image = fmt.Sprintf("localhost/sluice-test-%d:1", os.Getpid())
	load := exec.Command("podman", "import", "--change", `ENTRYPOINT ["echo","entry"]`, "--change", "ENV PATH=/bin", "--change", "ENV FROM_IMAGE=yes", "--change", "WORKDIR /work", "-", image)
	load.Stdin = bytes.NewReader(rootFS(t, busybox))
	if out, err := load.CombinedOutput(); err != nil {
		t.Skipf("podman cannot import an image here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("podman", "rmi", "--force", image).CombinedOutput(); err != nil {
			t.Errorf("remove the image: %v: %s", err, out)
		}
	})
	try := exec.Command("podman", append(append([]string{"run", "--rm", "--network", "host", "--log-driver", "none"}, machineOptions("podman")...), image)...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("podman cannot run containers here: %v: %s", err, out)
	}
	return image, executor
}

// rootFS is a machine with busybox alone.
func rootFS(t *testing.T, busybox string) []byte {
	t.Helper()
	data, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	add := func(h *tar.Header, body []byte) {
		h.Size = int64(len(body))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(body); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "tmp", "etc", "work"} {
		add(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o1777}, nil)
	}
	add(&tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, data)
	add(&tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, []byte("root:x:0:0::/root:/bin/sh\nseven:x:7:70::/home/seven:/bin/sh\n"))
	for _, name := range []string{"sh", "echo", "cat", "printf", "pwd", "env", "sleep", "mkdir", "id", "tr", "head"} {
		add(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"}, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// world is a home folder, and a folder that tasks share with the test.
type world struct{ home, shared, image, executor string }

func (w world) Open(t *testing.T, sink backendtest.Sink) backend.Backend {
	t.Helper()
	b, err := New(Config{
		Program: "podman", Executor: w.executor,
		Process: process.Config{Home: w.home, Env: os.Environ(), Limits: true, Claims: map[string]string{"shared": w.shared}},
	}, sink)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (w world) file(path, what string) string {
	return filepath.Join(w.shared, strings.NewReplacer("/", "_", "(", "_", ")", "_", ":", "_").Replace(path)+"."+what)
}

func (w world) Runs(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(w.file(path, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return bytes.Count(data, []byte("\n"))
}

func (w world) Began(t *testing.T, path string) {
	t.Helper()
	pipe, err := os.Open(w.file(path, "began"))
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := bufio.NewReader(pipe).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}

func (w world) Release(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(w.file(path, "pipe"), []byte("go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w world) Task(t *testing.T, path string, b backendtest.Behaviour) engine.StartTask {
	t.Helper()
	var script strings.Builder
	if b.Deaf {
		fmt.Fprintln(&script, "trap '' TERM")
	}
	fmt.Fprintf(&script, "echo run >> %s\nprintf %%s '%s'\n", w.file(path, "runs"), b.Print)
	for name, content := range b.Files {
		fmt.Fprintf(&script, "printf %%s '%s' > /tmp/%s\n", content, name)
	}
	if b.Wait {
		pipe, began := w.file(path, "pipe"), w.file(path, "began")
		if err := errors.Join(syscall.Mkfifo(pipe, 0o600), syscall.Mkfifo(began, 0o600)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&script, "exec 3<>%s\necho began >&3\nread word < %s\n", began, pipe)
	}
	fmt.Fprintf(&script, "exit %d\n", b.Exit)
	cmd := w.shell(path, script.String())
	cmd.Body.Volumes = []program.Volume{{Name: "shared", Kind: "claim", Source: "shared"}}
	cmd.Body.Containers[0].Mounts = []program.Mount{{Volume: "shared", Path: w.shared}}
	store := t.TempDir()
	backendtest.Declare(&cmd, b, func(name string) string { return "/tmp/" + name }, func(name string) string { return filepath.Join(store, name) })
	return cmd
}

func (w world) shell(path, script string) engine.StartTask {
	return engine.StartTask{
		Node: 1, Path: path, Pod: "pod", Template: &program.Template{},
		Body: program.Body{
			Kind: program.Containers, Result: true,
			Containers: []program.Container{{Name: "main", Image: w.image, Command: []string{"sh", "-c"}, Args: []string{script}}},
		},
	}
}

func TestBackend(t *testing.T) {
	image, executor := podman(t)
	backendtest.Run(t, func(t *testing.T) backendtest.World {
		return world{home: t.TempDir(), shared: t.TempDir(), image: image, executor: executor}
	})
	t.Run("podman is killed", func(t *testing.T) {
		testKilled(t, world{home: t.TempDir(), shared: t.TempDir(), image: image, executor: executor})
	})
	t.Run("a limit of memory", func(t *testing.T) {
		testMemory(t, world{home: t.TempDir(), shared: t.TempDir(), image: image, executor: executor})
	})
	t.Run("what a task sees", func(t *testing.T) {
		testTask(t, world{home: t.TempDir(), shared: t.TempDir(), image: image, executor: executor})
	})
}

// events collects what the backend tells.
type events chan engine.Event

func (e events) Tell(_ string, event engine.Event) { e <- event }

func (e events) finished(t *testing.T) engine.Result {
	t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		select {
		case event := <-e:
			if event.Finished != nil {
				return event.Finished.Result
			}
		case <-timeout:
			t.Fatal("no Finished event")
		}
	}
}

func testTask(t *testing.T, w world) {
	sink := make(events, 16)
	b := w.Open(t, sink)
	defer b.Close()
	for name, test := range map[string]struct {
		change func(*engine.StartTask)
		phase  engine.Phase
		result string
	}{
		"the image's entrypoint": {func(c *engine.StartTask) {
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = nil, []string{"x"}
		}, engine.SucceededPhase, "entry x"},
		"the image's environment and folder": {func(c *engine.StartTask) {
			c.Body.Containers[0].Args = []string{"echo $FROM_IMAGE $A $SLUICE_TASK; pwd"}
			c.Body.Containers[0].Env = []program.EnvVar{{Name: "A", Value: "a"}}
		}, engine.SucceededPhase, "yes a run.x\n/work"},
		"a script": {func(c *engine.StartTask) {
			c.Body.Kind, c.Body.Script = program.Script, "echo from a script"
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = []string{"sh"}, nil
		}, engine.SucceededPhase, "from a script"},
		"an input": {func(c *engine.StartTask) {
			c.Body.Containers[0].Args = []string{"cat /deep/in"}
			c.Inputs.Artifacts = map[string][]program.Artifact{"a": {{Store: program.JSON(`{"raw":{"data":"raw"}}`)}}}
			c.ArtifactPaths = map[string][]string{"a": {"/deep/in"}}
		}, engine.SucceededPhase, "raw"},
		"an image that is not there": {func(c *engine.StartTask) {
			c.Body.Containers[0].Image = "localhost/none-such:1"
			c.Body.Containers[0].Raw = program.JSON(`{"imagePullPolicy":"Never"}`)
		}, engine.ErrorPhase, "image localhost/none-such:1 is not on this machine"},
		"an image without a name": {func(c *engine.StartTask) {
			c.Body.Containers[0].Image = ""
		}, engine.ErrorPhase, "container main: it names no image"},
		"another user, who has the inputs, the folders of outputs and a home": {func(c *engine.StartTask) {
			c.Body.Containers[0].Raw = program.JSON(`{"securityContext":{"runAsUser":1000}}`)
			c.Body.Containers[0].Args = []string{"id -u; id -g; echo $HOME; cat /deep/in; echo more >> /deep/in; echo out > /made/for/it/out"}
			c.Inputs.Artifacts = map[string][]program.Artifact{"a": {{Store: program.JSON(`{"raw":{"data":"raw\n"}}`)}}}
			c.ArtifactPaths = map[string][]string{"a": {"/deep/in"}}
			c.Outputs.Parameters = []program.Output{{Name: "p", Path: "/made/for/it/out", Type: program.String}}
		}, engine.SucceededPhase, "1000\n0\n/\nraw"},
		"a user by name": {func(c *engine.StartTask) {
			c.Body.Pod = program.JSON(`{"securityContext":{"runAsUser":7}}`)
			c.Body.Containers[0].Args = []string{"id -u; id -g; echo $HOME"}
		}, engine.SucceededPhase, "7\n70\n/home/seven"},
		"a program that is not there": {func(c *engine.StartTask) {
			c.Body.Containers[0].Command, c.Body.Containers[0].Args = []string{"no-such-program"}, nil
		}, engine.FailedPhase, "exit code 64"},
		"images that differ": {func(c *engine.StartTask) {
			c.Body.Containers = append(c.Body.Containers, program.Container{
				Name: "b", Image: "localhost/none-such:1", Command: []string{"true"}, Raw: program.JSON(`{"imagePullPolicy":"Never"}`),
			})
		}, engine.ErrorPhase, "container b: image localhost/none-such:1"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := w.shell("run.x", "")
			test.change(&cmd)
			run := engine.Run{UID: strings.ReplaceAll(name, " ", "-")}
			if err := b.Start(t.Context(), run, cmd); err != nil {
				t.Fatal(err)
			}
			r := sink.finished(t)
			if r.Phase != test.phase {
				t.Fatalf("%+v", r)
			}
			if test.phase == engine.SucceededPhase {
				if diff := cmp.Diff(test.result, *r.Outputs.Result); diff != "" {
					t.Error(diff)
				}
				return
			}
			if !strings.Contains(r.Message, test.result) {
				t.Errorf("message %q lacks %q", r.Message, test.result)
			}
		})
	}
}

func TestMissingPrograms(t *testing.T) {
	for _, c := range []Config{{Program: "no-such-program"}, {Program: "sh", Executor: "/nonexistent"}} {
		c.Process = process.Config{Home: t.TempDir()}
		if _, err := New(c, make(events)); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

func TestCommand(t *testing.T) {
	l := &launcher{program: "podman", executor: "/e", network: "host", options: []string{"--x"}}
	got, err := l.Command(process.Launch{
		Folder: "/f", Limits: true, Mounts: []spec.Mount{{From: "/v", Path: "/mnt", ReadOnly: true}},
		Containers: []program.Container{{Image: "i", MemoryLimit: "1Mi", CPULimit: "500m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "podman run --rm --name " + containerName("/f") + " --label dev.sluice.task-folder=/f --pull never --log-driver none --network host --user 0:0 " +
		"--security-opt label=disable --volume /e:/sluice-executor:ro --volume /f:/sluice --volume /v:/mnt:ro " +
		"--memory 1048576b --cpus 0.500 --x --entrypoint /sluice-executor i /sluice"
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
	for _, containers := range [][]program.Container{{{}}, {{Image: "a"}, {Image: "b"}}, {{Image: "a", MemoryLimit: "x"}}} {
		if got, err := l.Command(process.Launch{Containers: containers, Limits: true}); err == nil {
			t.Errorf("%v", got)
		}
	}
}

// Whoever is killed for want of memory is told so.
func testMemory(t *testing.T, w world) {
	try := exec.Command("podman", append(append([]string{"run", "--rm", "--memory", "30m", "--network", "host", "--log-driver", "none"}, machineOptions("podman")...), w.image)...)
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("podman cannot limit memory here: %v: %s", err, out)
	}
	sink := make(events, 16)
	b := w.Open(t, sink)
	defer b.Close()
	cmd := w.shell("run.x", `x=$(cat /dev/zero | tr '\0' x | head -c 100000000); echo no`)
	cmd.Body.Containers[0].MemoryLimit = "30Mi"
	if err := b.Start(t.Context(), engine.Run{UID: "memory"}, cmd); err != nil {
		t.Fatal(err)
	}
	if r := sink.finished(t); r.Phase != engine.FailedPhase || !strings.Contains(r.Message, "OOMKilled") {
		t.Errorf("%+v", r)
	}
}

// A container does not end with the podman that started it: the task goes on, whether this program looks on or not.
func testKilled(t *testing.T, w world) {
	sink := make(events, 16)
	run := engine.Run{UID: "killed"}
	for name, open := range map[string]bool{"while it is followed": true, "while nobody looks": false} {
		t.Run(name, func(t *testing.T) {
			b := w.Open(t, sink)
			defer func() { _ = b.Close() }()
			path := "run." + strings.ReplaceAll(name, " ", "-")
			cmd := w.Task(t, path, backendtest.Behaviour{Wait: true, Print: "x"})
			if err := b.Start(t.Context(), run, cmd); err != nil {
				t.Fatal(err)
			}
			w.Began(t, path)
			state, err := os.ReadFile(filepath.Join(process.TaskDir(w.home, run.UID, path), spec.StateFile))
			if err != nil {
				t.Fatal(err)
			}
			if !open {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(spec.ParseState(string(state)).Executor.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if !open {
				b = w.Open(t, sink)
				if err := b.Start(t.Context(), run, cmd); err != nil {
					t.Fatal(err)
				}
			}
			w.Release(t, path)
			if r := sink.finished(t); r.Phase != engine.SucceededPhase || *r.Outputs.Result != "x" {
				t.Errorf("%+v", r)
			}
			if runs := w.Runs(t, path); runs != 1 {
				t.Errorf("it ran %d times", runs)
			}
		})
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"busybox": "docker.io/library/busybox", "busybox:1": "docker.io/library/busybox:1", "a/b:1": "docker.io/a/b:1",
		"localhost/a": "localhost/a", "quay.io/a/b": "quay.io/a/b", "host:5000/a": "host:5000/a",
	} {
		if got := fullName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestLimitsOfASet(t *testing.T) {
	both := []program.Container{{MemoryLimit: "1k", CPULimit: "1"}, {MemoryLimit: "2k"}}
	got, err := limitOptions(both)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"--memory", "3000b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestHybrid(t *testing.T) {
	for text, want := range map[string]bool{
		"31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n":                                            false,
		"32 31 0:29 / /c/cpu rw - cgroup cgroup rw,cpu\n41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw\n": true,
	} {
		if got := hybrid(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
