package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

func TestExpand(t *testing.T) {
	vars := &environment{values: map[string]string{}}
	vars.set("A", "1")
	vars.set("B", "$(A)")
	for text, want := range map[string]string{
		"": "", "plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(NONE)": "$(NONE)", "$$(A)": "$(A)", "$$": "$", "$": "$", "$(A": "$(A",
		"$A": "$A", "a$": "a$", "$(B)": "$(A)", "$$$(A)": "$1", "$()": "$()",
	} {
		if got := vars.expand(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestImageName(t *testing.T) {
	for image, want := range map[string]string{
		"argoproj/argosay:v2": "argoproj/argosay", "docker.io/argoproj/argosay": "argoproj/argosay", "docker.io/library/busybox:1": "busybox",
		"host:5000/x": "host:5000/x", "host:5000/x:1": "host:5000/x", "x@sha256:ab": "x", "x:1@sha256:ab": "x", "": "",
	} {
		if got := imageName(image); got != want {
			t.Errorf("%q: %q, want %q", image, got, want)
		}
	}
}

func TestQuantity(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "1": 1, "500m": 0.5, "1.5": 1.5, "50Mi": 50 << 20, "1Ki": 1024, "2G": 2e9, "1e3": 1000, "5M": 5e6, "1E": 1e18, "100k": 1e5,
	} {
		if got, err := Quantity(text); err != nil || got != want {
			t.Errorf("%q: %v %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "1X", "Mi", "-1", "1 Mi", "1iM"} {
		if got, err := Quantity(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestLayers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	line := func(path, options, kind, super string) string {
		return "31 23 0:28 / " + path + " " + options + " shared:1 - " + kind + " source " + super + "\n"
	}
	text := line("/", "rw", "ext4", "rw") + line("/proc", "rw", "proc", "rw") + line("/dev/shm", "rw", "tmpfs", "rw") +
		line(dir, "rw", "tmpfs", "rw") + line(file, "rw", "ext4", "rw") + line("/mnt/ro", "ro", "ext4", "rw") + line("/mnt/ro/inner", "rw", "ext4", "rw") +
		line("/cover/old", "rw", "ext4", "rw") + line("/cover", "rw", "xfs", "ro") + line(`/with\040blank`, "rw", "autofs", "rw") + "nonsense\n"
	want := []spec.Layer{
		{Path: dir}, {Path: file, Bind: true}, {Path: "/mnt/ro", Bind: true}, {Path: "/cover", Bind: true}, {Path: "/with blank", Bind: true},
	}
	if diff := cmp.Diff(want, layers(text)); diff != "" {
		t.Error(diff)
	}
}

func TestPieces(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"plain/x", "has/mount/y", "has/other", "mounted"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("plain", filepath.Join(top, "link")), os.WriteFile(filepath.Join(top, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(top, name) }
	got, err := pieces([]spec.Layer{{Path: in("has/mount")}, {Path: in("mounted"), Bind: true}}, top)
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Layer{
		{Path: in("file"), Bind: true}, {Path: in("has"), Make: true}, {Path: in("has/mount")}, {Path: in("has/other")}, {Path: in("link"), Link: "plain"},
		{Path: in("mounted"), Bind: true}, {Path: in("plain")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFindCgroups(t *testing.T) {
	v1 := "1 0 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n1 0 0:1 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	got, err := findCgroups("4:memory:/a/b\n3:cpu,cpuacct:/\n0::/c\n", v1)
	if err != nil || got.memory != "/sys/fs/cgroup/memory/a/b" || got.cpu != "/sys/fs/cgroup/cpu,cpuacct" || got.unified {
		t.Errorf("%+v %v", got, err)
	}
	dir := t.TempDir()
	own := filepath.Join(dir, "own")
	if err := errors.Join(os.Mkdir(own, 0o755), os.WriteFile(filepath.Join(own, "cgroup.subtree_control"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	got, err = findCgroups("0::/own\n", "1 0 0:1 / "+dir+" rw - cgroup2 cgroup2 rw\n")
	if err != nil || got.memory != own || !got.unified {
		t.Errorf("%+v %v", got, err)
	}
	made, err := got.make("/x/task-1", 0, program.Container{MemoryLimit: "1Mi", CPULimit: "500m"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]spec.Group{{Folder: filepath.Join(own, "sluice-task-1-0"), Unified: true, Memory: true}}, made); diff != "" {
		t.Error(diff)
	}
	for file, want := range map[string]string{"memory.max": "1048576", "cpu.max": "50000 100000"} {
		if data, err := os.ReadFile(filepath.Join(made[0].Folder, file)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v", file, data, err)
		}
	}
	if _, err := findCgroups("0::/\n", ""); err == nil {
		t.Error("no cgroups are found where none are mounted")
	}
}

func TestQueue(t *testing.T) {
	q := newQueue(1)
	q.take()
	order := make(chan int, 3)
	entered := func(ctx context.Context, i int) chan error {

		done := make(chan error, 1)
		before := q.length()
		go func() {
			err := q.enter(ctx)
			if err == nil {
				order <- i
			}
			done <- err
		}()
		for q.length() == before {
		}
		return done
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	one, two, three := entered(t.Context(), 1), entered(ctx, 2), entered(t.Context(), 3)
	why := errors.New("why")
	cancel(why)
	if err := <-two; !errors.Is(err, why) {
		t.Errorf("the second: %v", err)
	}
	q.leave()
	if err := <-one; err != nil {
		t.Error(err)
	}
	select {
	case err := <-three:
		t.Fatalf("the third did not wait: %v", err)
	default:
	}
	q.leave()
	if err := <-three; err != nil {
		t.Error(err)
	}
	if a, b := <-order, <-order; a != 1 || b != 3 {
		t.Errorf("order %d %d", a, b)
	}
	q.leave()
	if err := q.enter(t.Context()); err != nil {
		t.Error(err)
	}
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

func TestTaskDirsDiffer(t *testing.T) {
	seen := map[string]string{}
	for _, path := range []string{"run.a", "run.b.a", "run[0].a", "run.a(0)", "run.a(1)", "run.a(0:x/y)", "run.A", "run", "run.." + strings.Repeat("x", 300)} {
		dir := TaskDir("/home", "uid", path)
		if other, there := seen[dir]; there {
			t.Errorf("%q and %q share %s", path, other, dir)
		}
		seen[dir] = path
		if len(filepath.Base(dir)) > 100 || filepath.Dir(dir) != "/home/runs/uid/tasks" {
			t.Errorf("%q: %s", path, dir)
		}
	}
	if got := RunDir("/home", "../../etc"); got != "/home/runs/______etc" {
		t.Error(got)
	}
}

func TestFields(t *testing.T) {
	a := &attempt{
		b: &Backend{host: "host"}, run: engine.Run{UID: "u", Namespace: "ns"},
		cmd: engine.StartTask{Pod: "pod", Labels: map[string]string{"a.b/c": "l"}, Annotations: map[string]string{"x": "y"}},
	}
	for field, want := range map[string]string{
		"metadata.name": "pod", "metadata.namespace": "ns", "metadata.labels['a.b/c']": "l", "metadata.annotations['x']": "y",
		"metadata.labels['none']": "", "status.podIP": "127.0.0.1", "spec.nodeName": "host",
	} {
		if got, ok, err := a.field(field); got != want || !ok || err != nil {
			t.Errorf("%s: %q %v %v", field, got, ok, err)
		}
	}
	if _, _, err := a.field("spec.nonsense"); err == nil {
		t.Error("an unknown field is accepted")
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"a relative home": {Home: "x", Executor: []string{"e"}},
		"no executor":     {Home: "/x"},
		"sandbox":         {Home: "/x", Executor: []string{"e"}, Sandbox: "maybe"},
		"parallel":        {Home: "/x", Executor: []string{"e"}, MaxParallel: -1},
	} {
		if _, err := c.withDefaults(); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestInstallations(t *testing.T) {
	got := installations([]string{"a", "--no-deps", program.InstallSeparator, "b"})
	if diff := cmp.Diff([][]string{{"a", "--no-deps"}, {"b"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"2": 2 * time.Second, "0.5": 500 * time.Millisecond, "2m": 2 * time.Minute} {
		if got, err := duration(text); err != nil || got != want {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
}

func TestPassed(t *testing.T) {
	vars := []string{"PATH", "LANG", "LC_ALL", "http_proxy", "PIP_INDEX_URL", "AWS_SECRET_ACCESS_KEY", "HOME", "KUBECONFIG"}
	got := slices.Collect(func(yield func(string) bool) {
		for _, v := range vars {
			if passed(v) && !yield(v) {
				return
			}
		}
	})
	if diff := cmp.Diff(vars[:5], got); diff != "" {
		t.Error(diff)
	}
}
