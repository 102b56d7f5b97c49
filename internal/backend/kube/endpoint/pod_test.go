package endpoint_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

// run runs a task's only container against the endpoint and gives what it reported.
func (w *world) runPod(p spec.Pod) (spec.Report, int, string) {
	w.t.Helper()
	folder := w.t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("mine"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	p.Main, p.Endpoint, p.CA = "main", w.base, w.ca
	data, err := json.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "executor", "pod")
	cmd.Env = append(os.Environ(), placesEnv+"="+folder, spec.PodEnv+"="+string(data))
	var said bytes.Buffer
	cmd.Stderr = &said
	_ = cmd.Run() // the exit code says more
	text, err := os.ReadFile(filepath.Join(folder, "termination-log"))
	if err != nil {
		w.t.Fatal(err, said.String())
	}
	var report spec.Report
	if err := json.Unmarshal(text, &report); err != nil {
		w.t.Fatal(err)
	}
	return report, cmd.ProcessState.ExitCode(), said.String()
}

func container(script string) []spec.Container {
	return []spec.Container{{Name: "main", Argv: []string{"sh", "-c", script}}}
}

func TestPodBringsAndStoresArtifacts(t *testing.T) {
	w := newWorld(t, false)
	in, out := w.at("folder", "in"), w.at("s3", "run/task/out")
	if err := os.WriteFile(w.folder+"/in", []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.serve(output("out"), map[string]program.Artifact{"out": out}, map[string][]program.Artifact{"in": {in}})
	dir := t.TempDir()
	report, code, said := w.runPod(spec.Pod{
		Task: spec.Spec{
			Inputs:     []spec.Input{{Name: "in", Path: dir + "/in"}},
			Artifacts:  []spec.Artifact{{Name: "out", Path: dir + "/out"}, {Name: "maybe", Path: dir + "/none", Optional: true}},
			Containers: container("cat " + dir + "/in " + dir + "/in > " + dir + "/out"),
		},
		Fetch: []spec.Transfer{{Name: "in"}}, Save: []spec.Transfer{{Name: "out", Archive: "none"}, {Name: "maybe"}},
	})
	if code != 0 || said != "" || report.Result == nil {
		t.Fatalf("exit code %d, said %q, reported %+v", code, said, report)
	}
	sum := sha256.Sum256([]byte("text\ntext\n"))
	want := map[string]spec.Found{"out": {Saved: []spec.Saved{{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: 10}}}}
	if diff := cmp.Diff(want, report.Result.Artifacts); diff != "" {
		t.Error(diff)
	}
	if got := string(w.objects.Object("/bucket/run/task/out")); got != "text\ntext\n" {
		t.Errorf("stored %q", got)
	}
}

// What a KFP component says of its outputs: a list with a place of its own, a custom path, bytes that are elsewhere, and none.
func TestPodStoresWhatAComponentReports(t *testing.T) {
	w := newWorld(t, false)
	w.serve(output("list"), map[string]program.Artifact{"list": w.at("s3", "run/task/list")}, nil)
	dir := t.TempDir()
	report, code, said := w.runPod(spec.Pod{
		Task: spec.Spec{
			Artifacts: []spec.Artifact{{Name: "list", Path: dir + "/list"}}, ExecutorOutput: dir + "/report.json",
			Containers: container(`cd ` + dir + `; printf 1 > list; printf 22 > custom; printf 333 > away; cat > report.json <<END
{"artifacts":{"list":{"artifacts":[
  {"name":"a","uri":"s3://bucket/run/task/list"},
  {"name":"b","uri":"s3://bucket/run/task/b","custom_path":"` + dir + `/custom"},
  {"name":"c","uri":"s3://theirs/c","custom_path":"` + dir + `/away"},
  {"name":"d","uri":"s3://bucket/run/task/d"}]}}}
END`),
		},
		Save: []spec.Transfer{{Name: "list", Archive: "none"}},
	})
	if code != 0 || report.Result == nil {
		t.Fatalf("exit code %d, said %q, reported %+v", code, said, report)
	}
	var sizes []int64
	for _, s := range report.Result.Artifacts["list"].Saved {
		sizes = append(sizes, s.Size)
	}
	if diff := cmp.Diff([]int64{1, 2, 0, 0}, sizes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"/bucket/run/task/b", "/bucket/run/task/list"}, w.objects.Names()); diff != "" {
		t.Error(diff)
	}
}

func TestPodHandsInALongResult(t *testing.T) {
	w := newWorld(t, false)
	report, code, said := w.runPod(spec.Pod{Task: spec.Spec{Result: true, Containers: container("head -c 5000 /dev/zero | tr '\\0' x")}})
	if code != 0 || said != "" || report.Result != nil || !report.Stored {
		t.Fatalf("exit code %d, said %q, reported %+v", code, said, report)
	}
	data, err := w.results().Get(t.Context(), w.run, "run.task")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	var r spec.Result
	if err := json.Unmarshal(data, &r); err != nil || *r.Stdout != strings.Repeat("x", 5000) || report.Digest != hex.EncodeToString(sum[:]) {
		t.Errorf("%v: digest %s of %.100s", err, report.Digest, data)
	}
	w.run.ArtifactRoot = ""
	w.serve(program.Outputs{}, nil, nil)
	report, code, said = w.runPod(spec.Pod{Task: spec.Spec{Result: true, Containers: container("head -c 5000 /dev/zero | tr '\\0' x")}})
	if code != 65 || report.Result == nil || report.Result.Phase != spec.Error || !strings.Contains(report.Result.Message, "configure one") || report.Result.Message == "" || said == "" {
		t.Errorf("exit code %d, said %q, reported %+v", code, said, report.Result)
	}
}

func TestPodWhoseArtifactsAreNotThere(t *testing.T) {
	w := newWorld(t, false)
	w.serve(output("out"), map[string]program.Artifact{}, map[string][]program.Artifact{"in": {w.at("s3", "absent")}})
	dir := t.TempDir()
	report, code, _ := w.runPod(spec.Pod{
		Task:  spec.Spec{Inputs: []spec.Input{{Name: "in", Path: dir + "/in"}}, Containers: container("touch " + dir + "/ran")},
		Fetch: []spec.Transfer{{Name: "in"}},
	})
	if r := report.Result; code != 65 || r == nil || r.Phase != spec.Error || r.Ran || !strings.Contains(r.Message, "input artifact in") {
		t.Errorf("exit code %d, reported %+v", code, report.Result)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("the command has run")
	}
	report, code, _ = w.runPod(spec.Pod{
		Task: spec.Spec{Artifacts: []spec.Artifact{{Name: "out", Path: dir + "/out"}}, Containers: container("touch " + dir + "/out")},
		Save: []spec.Transfer{{Name: "out"}},
	})
	if r := report.Result; code != 65 || r == nil || r.Phase != spec.Error || !strings.Contains(r.Message, "configure an artifact repository") {
		t.Errorf("exit code %d, reported %+v", code, report.Result)
	}
}
