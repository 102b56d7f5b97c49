package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-ml/sluice/internal/metadata"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
)

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

type tester interface {
	Helper()
	Fatal(...any)
}

func open(t tester, folder string) (*metadata.Store, func()) {
	t.Helper()
	db, err := sqlite.OpenDB(context.Background(), filepath.Join(folder, "md.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(context.Background(), metadata.MigrationTable, metadata.Migrations()); err != nil {
		t.Fatal(err)
	}
	return metadata.NewStore(db.Write, db.Read), func() { _ = db.Close() }
}

func newStore(t *testing.T) *metadata.Store {
	s, done := open(t, t.TempDir())
	t.Cleanup(done)
	return s
}

func put(t *testing.T, s *metadata.Store, r metadata.Record) metadata.Recorded {
	t.Helper()
	got, err := s.PutExecution(t.Context(), r, noon)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func training(state metadata.ExecutionState) metadata.Record {
	return metadata.Record{
		Execution: metadata.Execution{
			Type: metadata.ContainerExecution, Name: "run-1/train", State: state,
			Custom: metadata.Properties{"task_name": "train", "n": int64(3), "rate": 0.5, "gpu": true, "inputs": map[string]any{"a": []any{1.0, "x"}}},
		},
		Artifacts: []metadata.ArtifactEvent{
			{Artifact: metadata.Artifact{Type: "system.Dataset", URI: "s3://b/data"}, Type: metadata.Input, Path: []any{"data"}, Adopt: true},
			{Artifact: metadata.Artifact{Type: "system.Model", URI: "s3://b/model", Digest: "sha256:0123456789abcdef", Custom: metadata.Properties{"acc": 0.9}}, Type: metadata.Output, Path: []any{"model"}},
		},
		Contexts: []metadata.Context{
			{Type: metadata.PipelineContext, Name: "trainer"},
			{Type: metadata.PipelineRunContext, Name: "run-1", Custom: metadata.Properties{"namespace": "ml"}},
		},
	}
}

func TestWhatIsPutCanBeRead(t *testing.T) {
	s := newStore(t)
	first := put(t, s, training(metadata.Running))
	e, err := s.ExecutionByTypeAndName(t.Context(), metadata.ContainerExecution, "run-1/train")
	if err != nil {
		t.Fatal(err)
	}
	want := metadata.Execution{
		ID: first.ExecutionID, Type: metadata.ContainerExecution, Name: "run-1/train", State: metadata.Running, Created: noon, Updated: noon,
		Custom: training("").Execution.Custom,
	}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	// The same again, later, changes nothing but state and time.
	record := training(metadata.Complete)
	record.Execution.Custom = metadata.Properties{"exit_code": int64(0)}
	second, err := s.PutExecution(t.Context(), record, noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error("the same record got other ids:", diff)
	}
	want.State, want.Updated = metadata.Complete, noon.Add(time.Hour)
	want.Custom["exit_code"] = int64(0)
	list, err := s.ExecutionsByID(t.Context(), first.ExecutionID, 999)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]metadata.Execution{want}, list); diff != "" {
		t.Error(diff)
	}

	events, err := s.EventsByExecutionIDs(t.Context(), first.ExecutionID)
	if err != nil {
		t.Fatal(err)
	}
	wantEvents := []metadata.Event{
		{ArtifactID: first.ArtifactIDs[0], ExecutionID: first.ExecutionID, Type: metadata.Input, Path: []any{"data"}, Time: noon},
		{ArtifactID: first.ArtifactIDs[1], ExecutionID: first.ExecutionID, Type: metadata.Output, Path: []any{"model"}, Time: noon},
	}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Error(diff)
	}
	c, err := s.ContextByTypeAndName(t.Context(), metadata.PipelineRunContext, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if c.Custom["namespace"] != "ml" {
		t.Errorf("context is %+v", c)
	}
	artifacts, err := s.ArtifactsByContext(t.Context(), c.ID)
	if err != nil || len(artifacts) != 2 || artifacts[1].Custom["acc"] != 0.9 {
		t.Errorf("artifacts of the run: %+v, %v", artifacts, err)
	}
	executions, err := s.ExecutionsByContext(t.Context(), c.ID)
	if err != nil || len(executions) != 1 {
		t.Errorf("executions of the run: %+v, %v", executions, err)
	}
}

func TestNothingThere(t *testing.T) {
	s := newStore(t)
	if _, err := s.ExecutionByTypeAndName(t.Context(), "x", "y"); !errors.Is(err, metadata.ErrNotFound) {
		t.Errorf("execution: %v", err)
	}
	if _, err := s.ContextByTypeAndName(t.Context(), "x", "y"); !errors.Is(err, metadata.ErrNotFound) {
		t.Errorf("context: %v", err)
	}
	if _, err := s.Lineage(t.Context(), 7, metadata.LineageOptions{}); !errors.Is(err, metadata.ErrNotFound) {
		t.Errorf("lineage: %v", err)
	}
	if _, err := s.PutExecution(t.Context(), metadata.Record{Execution: metadata.Execution{ID: 9}}, noon); !errors.Is(err, metadata.ErrNotFound) {
		t.Errorf("update: %v", err)
	}
	if list, err := s.ArtifactsByID(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("no ids: %v, %v", list, err)
	}
}

// A record that cannot be written leaves nothing behind.
func TestAllOrNothing(t *testing.T) {
	s := newStore(t)
	record := training(metadata.Running)
	record.Artifacts[1].Artifact.Custom = metadata.Properties{"bad": func() {}}
	if _, err := s.PutExecution(t.Context(), record, noon); err == nil {
		t.Fatal("a function was written")
	}
	if _, err := s.ExecutionByTypeAndName(t.Context(), metadata.ContainerExecution, "run-1/train"); !errors.Is(err, metadata.ErrNotFound) {
		t.Errorf("the execution is there: %v", err)
	}
	put(t, s, training(metadata.Running)) // and ids that were made in the transaction are not remembered
}

func TestFindArtifacts(t *testing.T) {
	s := newStore(t)
	put(t, s, training(metadata.Complete))
	for text, want := range map[string]int{
		"2": 1, "s3://b/model": 1, "model": 1, "b/model": 1, "odel": 0, "sha256:01234567": 1, "0123456789abcdef": 1, "0123": 0,
		"%": 0, "s3://b/": 0, "'; DROP TABLE md_artifact; --": 0, "99": 0,
	} {
		found, err := s.FindArtifacts(t.Context(), text, 10)
		if err != nil || len(found) != want {
			t.Errorf("%q finds %v, %v, want %d", text, found, err, want)
		}
	}
}

// Lineage over random pipelines is what a search over the events in memory finds.
func TestLineageIsTheWholeOfIt(t *testing.T) {
	s := newStore(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++ // each pipeline has names of its own
		name := func(kind string, i int) string { return fmt.Sprint(n, kind, i) }
		type edge struct{ from, to string }
		var edges []edge
		count := rapid.IntRange(1, 12).Draw(t, "executions")
		ids := map[string]int64{}
		for i := range count {
			record := metadata.Record{Execution: metadata.Execution{Type: metadata.ContainerExecution, Name: name("e", i), State: metadata.Complete}}
			for range rapid.IntRange(0, 3).Draw(t, "inputs") {
				uri := name("a", rapid.IntRange(0, max(0, i-1)).Draw(t, "input"))
				record.Artifacts = append(record.Artifacts, metadata.ArtifactEvent{Artifact: metadata.Artifact{URI: uri}, Type: metadata.Input, Path: []any{uri}, Adopt: true})
				edges = append(edges, edge{uri, record.Execution.Name})
			}
			out := name("a", i)
			record.Artifacts = append(record.Artifacts, metadata.ArtifactEvent{Artifact: metadata.Artifact{URI: out}, Type: metadata.Output, Path: []any{out}, Adopt: true})
			edges = append(edges, edge{record.Execution.Name, out})
			got, err := s.PutExecution(context.Background(), record, noon)
			if err != nil {
				t.Fatal(err)
			}
			for k, a := range record.Artifacts {
				ids[a.Artifact.URI] = got.ArtifactIDs[k]
			}
		}
		start := name("a", rapid.IntRange(0, count-1).Draw(t, "start"))
		want := map[string]bool{start: true}
		for _, up := range []bool{true, false} {
			seen := map[string]bool{start: true}
			for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
				for _, e := range edges {
					near, far := e.from, e.to
					if up {
						near, far = e.to, e.from
					}
					if near == queue[0] && !seen[far] {
						seen[far], want[far] = true, true
						queue = append(queue, far)
					}
				}
			}
		}
		lineage, err := s.Lineage(context.Background(), ids[start], metadata.LineageOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, a := range lineage.Artifacts {
			got[a.URI] = true
		}
		for _, e := range lineage.Executions {
			got[e.Name] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLineageIsBounded(t *testing.T) {
	s := newStore(t)
	var last int64
	for i := range 30 {
		r := put(t, s, metadata.Record{
			Execution: metadata.Execution{Type: metadata.ContainerExecution, Name: fmt.Sprint("e", i), State: metadata.Complete},
			Artifacts: []metadata.ArtifactEvent{
				{Artifact: metadata.Artifact{URI: fmt.Sprint("a", i)}, Type: metadata.Input, Path: []any{"in"}, Adopt: true},
				{Artifact: metadata.Artifact{URI: fmt.Sprint("a", i+1)}, Type: metadata.Output, Path: []any{"out"}},
			},
		})
		last = r.ArtifactIDs[1]
	}
	for _, test := range []struct {
		options    metadata.LineageOptions
		executions int
		truncated  bool
	}{
		{metadata.LineageOptions{Direction: metadata.Down}, 0, false},
		{metadata.LineageOptions{Depth: 100}, 30, false},
		{metadata.LineageOptions{Depth: 5}, 5, true},
		{metadata.LineageOptions{Depth: 100, MaxNodes: 11}, 5, true},
	} {
		got, err := s.Lineage(t.Context(), last, test.options)
		if err != nil || len(got.Executions) != test.executions || got.Truncated != test.truncated {
			t.Errorf("%+v: %d executions, truncated %v, %v", test.options, len(got.Executions), got.Truncated, err)
		}
	}
}

func BenchmarkPutExecution(b *testing.B) {
	s, done := open(b, b.TempDir())
	defer done()
	for i := 0; b.Loop(); i++ {
		r := training(metadata.Complete)
		r.Execution.Name = fmt.Sprint("run-1/", i)
		if _, err := s.PutExecution(b.Context(), r, noon); err != nil {
			b.Fatal(err)
		}
	}
}
