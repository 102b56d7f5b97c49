package result

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
	"github.com/sluice-ml/sluice/internal/program"
)

func at(uri string) program.Artifact {
	return program.Artifact{URI: "s3://b/" + uri, Store: program.JSON(`{"s3":{"bucket":"b","key":"` + uri + `"}}`)}
}

func TestOf(t *testing.T) {
	key, code := "elsewhere", 3
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stored := at("run/a")
	stored.Name, stored.Archive, stored.Digest, stored.Size = "a", "tar", "sha256:1", 7
	described := at("elsewhere")
	described.Name = "a"
	declared := program.Outputs{Artifacts: []program.OutputArtifact{{Name: "a", Path: "/tmp/a.txt", Archive: "tar"}}}
	for name, test := range map[string]struct {
		from spec.Result
		o    Options
		want engine.Result
		err  string
	}{
		"a task that stored its output itself": {
			from: spec.Result{Phase: spec.Succeeded, Ran: true, Artifacts: map[string]spec.Found{"a": {Saved: []spec.Saved{{Digest: "sha256:1", Size: 7}}}}},
			want: engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{"a": {stored}}}},
		},
		"a task whose output the backend stores": {
			from: spec.Result{Phase: spec.Succeeded, Ran: true, Artifacts: map[string]spec.Found{"a": {Staged: "out/a"}}},
			o: Options{Save: func(staged, name string, a program.Artifact) (program.Artifact, error) {
				if staged != "out/a" || name != "a.txt" {
					return a, errors.New(staged + " " + name)
				}
				a.Digest, a.Size = "sha256:1", 7
				return a, nil
			}},
			want: engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{"a": {stored}}}},
		},
		"an output that cannot be stored": {
			from: spec.Result{Phase: spec.Succeeded, Ran: true, Artifacts: map[string]spec.Found{"a": {Staged: "out/a"}}},
			o:    Options{Save: func(_, _ string, a program.Artifact) (program.Artifact, error) { return a, errors.New("no room") }},
			want: engine.Result{Phase: engine.ErrorPhase, Message: "output artifact a: no room"},
			err:  "output artifact a: no room",
		},
		"a failed command whose output cannot be stored": {
			from: spec.Result{Phase: spec.Failed, Message: "exit code 3", ExitCode: &code, Ran: true, Artifacts: map[string]spec.Found{"a": {Staged: "out/a"}}},
			want: engine.Result{Phase: engine.FailedPhase, Message: "exit code 3", ExitCode: &code},
			err:  "output artifact a: its bytes were left in the pod",
		},
		"an output that is described": {
			from: spec.Result{Phase: spec.Succeeded, Ran: true, Artifacts: map[string]spec.Found{"a": {Key: &key}}},
			want: engine.Result{Phase: engine.SucceededPhase, Outputs: engine.Outputs{Artifacts: map[string][]program.Artifact{"a": {described}}}},
		},
		"what did nothing may be tried again": {
			from: spec.Result{Phase: spec.Error, Message: "no input"},
			want: engine.Result{Phase: engine.ErrorPhase, Message: "no input", Transient: true},
		},
		"what was stopped says why": {
			from: spec.Result{Phase: spec.Failed, Message: "terminated", Stopped: true, Ran: true},
			o:    Options{Stopped: &engine.StopTask{Message: "enough"}},
			want: engine.Result{Phase: engine.FailedPhase, Message: "enough"},
		},
		"what ended before it was stopped does not": {
			from: spec.Result{Phase: spec.Failed, Message: "exit code 3", Ran: true},
			o:    Options{Stopped: &engine.StopTask{Message: "enough"}},
			want: engine.Result{Phase: engine.FailedPhase, Message: "exit code 3"},
		},
		"what it used": {
			from: spec.Result{Phase: spec.Succeeded, Ran: true, Started: start, Finished: start.Add(2 * time.Second), CPU: 1600 * time.Millisecond, MaxMemory: 100},
			want: engine.Result{Phase: engine.SucceededPhase, Started: start, Resources: map[string]int64{"cpu": 2, "memory": 200}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := engine.StartTask{Outputs: declared, OutputArtifacts: map[string]program.Artifact{"a": at("run/a")}}
			got, _, err := Of(&test.from, cmd, test.o)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if said := text(err); said != test.err {
				t.Errorf("error %q, want %q", said, test.err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A component's own report of its artifacts: names, metadata, and places that it chose.
func TestReported(t *testing.T) {
	cmd := engine.StartTask{
		Outputs:         program.Outputs{Artifacts: []program.OutputArtifact{{Name: "a", Type: "system.Model", List: true, Metadata: map[string]any{"x": 1}}}},
		OutputArtifacts: map[string]program.Artifact{"a": at("run/task/a")},
	}
	r := spec.Result{
		Phase: spec.Succeeded,
		Reported: map[string][]program.Artifact{"a": {
			{Name: "one", Metadata: map[string]any{"y": 2}}, {Name: "two", URI: "s3://b/run/task/b"}, {Name: "three", URI: "gs://other/c"},
		}},
		Artifacts: map[string]spec.Found{"a": {Saved: []spec.Saved{{Digest: "sha256:1", Size: 1}, {Digest: "sha256:2", Size: 2}, {}}}},
	}
	got, stored, err := Of(&r, cmd, Options{})
	if err != nil || !stored {
		t.Fatal(stored, err)
	}
	want := []program.Artifact{
		{Name: "one", URI: "s3://b/run/task/a", Type: "system.Model", Metadata: map[string]any{"x": 1, "y": 2}, Store: at("run/task/a").Store, Digest: "sha256:1", Size: 1},
		{Name: "two", URI: "s3://b/run/task/b", Type: "system.Model", Metadata: map[string]any{"x": 1}, Store: at("run/task/b").Store, Digest: "sha256:2", Size: 2},
		{Name: "three", URI: "gs://other/c", Type: "system.Model", Metadata: map[string]any{"x": 1}},
	}
	if diff := cmp.Diff(want, got.Outputs.Artifacts["a"]); diff != "" {
		t.Error(diff)
	}
}

func TestLocated(t *testing.T) {
	base := program.Artifact{Name: "a", URI: "s3://b/old", Store: program.JSON(`{"s3":{"bucket":"b","key":"old"}}`), Archive: "tar"}
	folder := program.Artifact{Name: "a", Store: program.JSON(`{"folder":{"path":"/store/run/a"}}`)}
	for name, test := range map[string]struct {
		base       program.Artifact
		text       string
		uri, store string
	}{
		"a key":               {base, "new/key", "s3://b/new/key", `{"s3":{"bucket":"b","key":"new/key"}}`},
		"a key with a slash":  {base, "/new", "s3://b/new", `{"s3":{"bucket":"b","key":"/new"}}`},
		"a path":              {folder, "/other/x", "/other/x", `{"folder":{"path":"/other/x"}}`},
		"a name in a folder":  {folder, "x", "/store/run/x", `{"folder":{"path":"/store/run/x"}}`},
		"a URI":               {base, "https://h/x", "https://h/x", `{"http":{"url":"https://h/x"}}`},
		"a URI of other kind": {base, "gs://b/x", "gs://b/x", ""},
		"a store block":       {base, `{"s3":{"bucket":"c","key":"k"}}`, "s3://c/k", `{"s3":{"bucket":"c","key":"k"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := located(test.base, test.text)
			if err != nil || got.URI != test.uri || string(got.Store) != test.store || got.Archive != "" || got.Name != "a" {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
	for _, text := range []string{"", "{", `{"a":1,"b":2}`} {
		if got, err := located(base, text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
