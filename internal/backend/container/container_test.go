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
