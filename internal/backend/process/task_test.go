package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/backend/process"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

var run = engine.Run{Name: "wf", UID: "uid", Namespace: "ns"}

// both runs a test as plain processes and in a sandbox.
func both(t *testing.T, test func(t *testing.T, mode process.Mode)) {
	t.Helper()
	for _, mode := range []process.Mode{process.Off, process.On} {
		t.Run("sandbox "+string(mode), func(t *testing.T) {
			if mode == process.On {
				needSandbox(t)
			}
			test(t, mode)
		})
	}
}

func result(t *testing.T, b *process.Backend, sink events, cmd engine.StartTask) engine.Result {
	t.Helper()
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	return sink.finished(t)
}

// succeeds gives the lines that a task printed.
func succeeds(t *testing.T, b *process.Backend, sink events, cmd engine.StartTask) []string {
	t.Helper()
	r := result(t, b, sink, cmd)
	if r.Phase != engine.SucceededPhase {
		log, _ := os.ReadFile(process.LogFile("", run.UID, cmd.Path))
		t.Fatalf("%s: %s %s", r.Phase, r.Message, log)
	}
	return strings.Split(*r.Outputs.Result, "\n")
}

func TestEnvironment(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		b, sink := open(t, func(c *process.Config) {
			c.Sandbox = mode
			c.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "SECRET_OF_SLUICE=x", "HOME=/nonexistent"}
			c.Secrets = map[string]map[string]string{"s": {"k": "secret"}}
			c.ConfigMaps = map[string]map[string]string{"c": {"k": "config"}}
		})
		cmd := shell("run.env", `echo "$SLUICE_TASK $SLUICE_RUN $A $B $C $D $E $LANG"; echo "${SECRET_OF_SLUICE-unset} ${F-unset} $1"; test -d "$HOME" && touch "$HOME/x"; case $HOME in /nonexistent) exit 9; esac`)
		c := &cmd.Body.Containers[0]
		c.Args = append(c.Args, "sh", "$(A)$$(A)")
		c.Env = []program.EnvVar{
			{Name: "A", Value: "a"}, {Name: "B", Value: "$(A)b"}, {Name: "C", Secret: "s", Key: "k"}, {Name: "D", ConfigMap: "c", Key: "k"},
			{Name: "E", Field: "metadata.name"}, {Name: "F", Secret: "none", Key: "k", Optional: true},
		}
		want := []string{"run.env wf a ab secret config pod C.UTF-8", "unset unset a$(A)"}
		if diff := cmp.Diff(want, succeeds(t, b, sink, cmd)); diff != "" {
			t.Error(diff)
		}
		c.Env = []program.EnvVar{{Name: "A", Secret: "none", Key: "k"}, {Name: "B", Field: "spec.none"}}
		cmd.Path = "run.broken"
		r := result(t, b, sink, cmd)
		for _, part := range []string{`no key "k" of a Secret "none"`, `no field "spec.none"`} {
			if r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, part) {
				t.Errorf("%+v lacks %q", r, part)
			}
		}
	})
}

func TestProgramsOfImagesAreAtTheirPlace(t *testing.T) {
	needSandbox(t)
	if _, err := os.Stat("/argosay"); err == nil {
		t.Skip("this machine has one")
	}
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "argosay"), []byte("#!/bin/sh\necho said \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b, sink := open(t, func(c *process.Config) { c.Sandbox, c.ExtraPath = process.On, []string{tools} })
	cmd := shell("run.a", "true; /argosay x")
	cmd.Body.Containers[0].Image = "argoproj/argosay:v2"
	if got := succeeds(t, b, sink, cmd); got[0] != "said x" {
		t.Errorf("%q", got)
	}
}

func TestEntrypoints(t *testing.T) {
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "argosay"), []byte("#!/bin/sh\necho said \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b, sink := open(t, func(c *process.Config) {
		c.ExtraPath = []string{tools}
		c.Images = map[string][]string{"known": {"echo", "entry"}}
	})
	for i, test := range []struct {
		image string
		args  []string
		want  string
	}{
		{"argoproj/argosay:v2", []string{"x"}, "said x"},
		{"known@sha256:00", []string{"x"}, "entry x"},
		{"other", []string{"echo", "x"}, "x"},
	} {
		cmd := shell(fmt.Sprintf("run.%d", i), "")
		cmd.Body.Containers[0] = program.Container{Name: "main", Image: test.image, Args: test.args}
		if got := succeeds(t, b, sink, cmd); got[0] != test.want {
			t.Errorf("%s: %q, want %q", test.image, got, test.want)
		}
	}
	cmd := shell("run.none", "")
	cmd.Body.Containers[0] = program.Container{Name: "main", Image: "unknown:1", Args: []string{"no-such-program"}}
	r := result(t, b, sink, cmd)
	if r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, `entrypoint of image "unknown:1" is not known`) || r.Transient {
		t.Errorf("%+v", r)
	}
}

func TestScript(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		b, sink := open(t, func(c *process.Config) { c.Sandbox = mode })
		cmd := shell("run.script", "")
		cmd.Body.Kind = program.Script
		cmd.Body.Script = "print('$(HOME)', 6 * 7)\n"
		cmd.Body.Containers[0] = program.Container{Name: "main", Command: []string{"python3"}}
		if got := succeeds(t, b, sink, cmd); got[0] != "$(HOME) 42" {
			t.Errorf("%q", got)
		}
	})
}

func TestVolumes(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		b, sink := open(t, func(c *process.Config) {
			c.Sandbox = mode
			c.ConfigMaps = map[string]map[string]string{"c": {"k": "config", "l": "more"}}
			c.Secrets = map[string]map[string]string{"s": {"k": "secret"}}
		})
		top := t.TempDir()
		at := func(name string) string { return filepath.Join(top, "mnt", name) }
		cmd := shell("run.volumes", fmt.Sprintf("cd %s; cat config/* renamed/f secret/k; echo x > empty/f; cat part/f; ls part; cat claim/f 2>/dev/null; echo y > claim/f", filepath.Join(top, "mnt")))
		cmd.Body.Volumes = []program.Volume{
			{Name: "v-config", Kind: "configMap", Source: "c"}, {Name: "v-renamed", Kind: "configMap", Source: "c", Items: map[string]string{"k": "f"}},
			{Name: "v-secret", Kind: "secret", Source: "s"}, {Name: "v-empty", Kind: "emptyDir"}, {Name: "v-claim", Kind: "claim", Source: "work"},
			{Name: "v-none", Kind: "secret", Source: "none", Optional: true},
		}
		cmd.Body.Containers[0].Mounts = []program.Mount{
			{Volume: "v-config", Path: at("config")}, {Volume: "v-renamed", Path: at("renamed")}, {Volume: "v-secret", Path: at("secret")},
			{Volume: "v-empty", Path: at("empty")}, {Volume: "v-empty", Path: at("part"), SubPath: "."}, {Volume: "v-claim", Path: at("claim")},
			{Volume: "v-none", Path: at("none")},
		}
		if diff := cmp.Diff([]string{"configmoreconfigsecretx", "f"}, succeeds(t, b, sink, cmd)); diff != "" {
			t.Error(diff)
		}
		// A claim is the same folder for all tasks of a run, anything else is a task's own.
		cmd.Path = "run.again"
		if diff := cmp.Diff([]string{"configmoreconfigsecretx", "f", "y"}, succeeds(t, b, sink, cmd)); diff != "" {
			t.Error(diff)
		}
		if left, err := filepath.Glob(filepath.Join(top, "mnt", "*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
		cmd.Path = "run.broken"
		cmd.Body.Volumes[2].Source = "none"
		cmd.Body.Volumes[1].Items = map[string]string{"none": "f"}
		r := result(t, b, sink, cmd)
		for _, part := range []string{`volume v-secret: no Secret "none"`, `volume v-renamed: ConfigMap "c" has no key "none"`} {
			if r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, part) {
				t.Errorf("%+v lacks %q", r, part)
			}
		}
	})
}

func TestSandboxHidesWhatTasksWrite(t *testing.T) {
	needSandbox(t)
	b, sink := open(t, func(c *process.Config) { c.Sandbox = process.On })
	shared := filepath.Join(t.TempDir(), "out")
	etc := "/etc/sluice-test-" + filepath.Base(filepath.Dir(shared))
	script := fmt.Sprintf("test -e %[1]s && exit 9; echo $SLUICE_TASK > %[1]s; echo x > %[2]s 2>/dev/null; cat %[1]s; ls -d /proc/[0-9]* | wc -l", shared, etc)
	paths := []string{"run.one", "run.two", "run.three"}
	for _, path := range paths {
		cmd := shell(path, script)
		cmd.Outputs.Parameters = []program.Output{{Name: "p", Path: shared}}
		if err := b.Start(t.Context(), run, cmd); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range paths {
		r := sink.finished(t)
		if r.Phase != engine.SucceededPhase {
			t.Fatalf("%+v", r)
		}
		lines := strings.Fields(*r.Outputs.Result)
		if r.Outputs.Parameters["p"] != lines[0] {
			t.Errorf("%v: %v", r.Outputs.Parameters, lines)
		}
		if lines[1] != "4" && lines[1] != "3" && lines[1] != "5" { // executor, shell, ls and wc
			t.Errorf("it sees %s processes", lines[1])
		}
		got = append(got, lines[0])
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"run.one", "run.three", "run.two"}, got); diff != "" {
		t.Error(diff)
	}
	for _, file := range []string{shared, etc} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is there", file)
		}
	}
}

// The home folder of tests lies in /tmp, which is not what a task that gives /tmp as its output wrote.
func TestATemporaryFolderAsOutputHoldsWhatTheTaskWrote(t *testing.T) {
	needSandbox(t)
	b, sink := open(t, func(c *process.Config) { c.Sandbox = process.On })
	cmd := shell("run.first", "echo x >/tmp/x; mkdir -p /tmp/d/e; echo y >/tmp/d/e/y")
	cmd.Outputs.Artifacts = []program.OutputArtifact{{Name: "all", Path: "/tmp"}}
	cmd.OutputArtifacts = map[string]program.Artifact{"all": {Name: "all", Store: program.JSON(`{"folder":{"path":"` + t.TempDir() + `"}}`)}}
	if err := b.Start(t.Context(), run, cmd); err != nil {
		t.Fatal(err)
	}
	r := sink.finished(t)
	if r.Phase != engine.SucceededPhase {
		t.Fatalf("%+v", r)
	}
	next := shell("run.next", "cd /in; find . -type f | sort | tr '\\n' ' '; ls | wc -l")
	next.Inputs.Artifacts = map[string][]program.Artifact{"all": r.Outputs.Artifacts["all"]}
	next.ArtifactPaths = map[string][]string{"all": {"/in"}}
	if got := succeeds(t, b, sink, next); strings.Join(strings.Fields(got[0]), " ") != "./d/e/y ./x 2" {
		t.Errorf("%q", got)
	}
}

func TestLargeInputsAndFolders(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		b, sink := open(t, func(c *process.Config) { c.Sandbox = mode })
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "in")
		if err := os.WriteFile(filepath.Join(from, "big"), make([]byte, 6<<20), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := shell("run.in", fmt.Sprintf("wc -c < %[1]s/big; echo more >> %[1]s/big; tail -n 1 %[1]s/big | tr -d '\\0'; cat %[2]s; rm %[2]s", to, to+".raw"))
		cmd.Inputs.Artifacts = map[string][]program.Artifact{
			"a": {{Name: "a", Store: program.JSON(`{"folder":{"path":"` + from + `"}}`)}},
			"b": {{Name: "b", Store: program.JSON(`{"raw":{"data":"raw"}}`)}},
		}
		cmd.ArtifactPaths = map[string][]string{"a": {to}, "b": {to + ".raw"}}
		if diff := cmp.Diff([]string{"6291456", "more", "raw"}, succeeds(t, b, sink, cmd)); diff != "" {
			t.Error(diff)
		}
		if info, err := os.Stat(filepath.Join(from, "big")); err != nil || info.Size() != 6<<20 {
			t.Errorf("the stored artifact changed: %v %v", info, err)
		}
	})
}

func TestQueueKeepsOrder(t *testing.T) {
	b, sink := open(t, func(c *process.Config) { c.MaxParallel = 1 })
	file := filepath.Join(t.TempDir(), "order")
	const many = 8
	for i := range many {
		if err := b.Start(t.Context(), run, shell(fmt.Sprintf("run.%d", i), fmt.Sprintf("echo %d >> %s", i, file))); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue
		}
		// One that is stopped while it waits never starts.
		path := fmt.Sprintf("run.stopped%d", i)
		if err := b.Start(t.Context(), run, shell(path, "echo stopped >> "+file)); err != nil {
			t.Fatal(err)
		}
		if err := b.Stop(t.Context(), run, engine.StopTask{Path: path, Message: "no more"}); err != nil {
			t.Fatal(err)
		}
	}
	var failed int
	for range 2*many - 1 {
		if r := sink.finished(t); r.Phase == engine.FailedPhase && r.Message == "no more" {
			failed++
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), "stopped") > 0 || failed != many-1 {
		t.Errorf("%d stopped, log %q", failed, data)
	}
	if n := len(strings.Fields(string(data))); n != many {
		t.Errorf("%d ran, want %d", n, many)
	}
}

func TestFoldersAreCleanedUp(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		var home string
		b, sink := open(t, func(c *process.Config) { c.Sandbox = mode; home = c.Home })
		cmd := shell("run.a", "mkdir -p /tmp/sluice-locked/x && chmod 0 /tmp/sluice-locked && rmdir /tmp/sluice-locked/x 2>/dev/null; rm -rf /tmp/sluice-locked 2>/dev/null; mkdir $HOME/d && touch $HOME/d/f && chmod 0 $HOME/d; echo done")
		succeeds(t, b, sink, cmd)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(process.TaskDir(home, run.UID, cmd.Path))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			if inside, err := os.ReadDir(filepath.Join(process.TaskDir(home, run.UID, cmd.Path), e.Name())); err == nil && len(inside) == 0 {
				continue // an empty folder
			}
			names = append(names, e.Name())
		}
		want := []string{"log", "result.json", "state"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestKilledExecutorIsNotAsked(t *testing.T) {
	both(t, func(t *testing.T, mode process.Mode) {
		var home string
		b, sink := open(t, func(c *process.Config) { c.Sandbox = mode; home = c.Home })
		cmd := shell("run.killed", "kill -9 $PPID; sleep 100")
		if mode == process.On { // the first process of its namespace cannot be killed from inside
			cmd = shell("run.killed", "sleep 100")
		}
		start := time.Now()
		if err := b.Start(t.Context(), run, cmd); err != nil {
			t.Fatal(err)
		}
		if mode == process.On {
			killExecutor(t, home, cmd.Path)
		}
		r := sink.finished(t)
		if r.Phase != engine.ErrorPhase || !strings.Contains(r.Message, "without a result") || time.Since(start) > 20*time.Second {
			t.Errorf("%+v", r)
		}
		if ran := strings.Contains(r.Message, "had been started"); ran == r.Transient {
			t.Errorf("transient %v: %s", r.Transient, r.Message)
		}
	})
}
