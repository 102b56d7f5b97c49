package lineage_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/hook/lineage"
	"github.com/sluice-ml/sluice/internal/metadata"
	"github.com/sluice-ml/sluice/internal/store/sqlite"
	"github.com/sluice-ml/sluice/pkg/taskhook"
)

func setUp(t *testing.T) (*metadata.Store, taskhook.Plugin) {
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "md.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Migrate(t.Context(), metadata.MigrationTable, metadata.Migrations()); err != nil {
		t.Fatal(err)
	}
	store := metadata.NewStore(db.Write, db.Read)
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	return store, lineage.New(lineage.Store{Metadata: store, Now: func() time.Time { return now }})
}

func task(run, name string, inputs ...string) *taskhook.Request {
	r := &taskhook.Request{
		UID: run + name, Hook: "lineage", Point: v1alpha1.Pre, Scope: v1alpha1.ScopeTask,
		Workflow: v1alpha1.Workflow{Name: run, UID: "uid-" + run, Namespace: "ml", Pipeline: "trainer", ArtifactRoot: "s3://b"},
		Task: v1alpha1.Task{
			ID: "1", Path: run + "." + name, Name: name, Template: name,
			Inputs: v1alpha1.Inputs{Parameters: map[string]any{"x": int64(1)}, Artifacts: map[string][]v1alpha1.Artifact{}},
		},
	}
	for _, uri := range inputs {
		r.Task.Inputs.Artifacts["in"] = append(r.Task.Inputs.Artifacts["in"], v1alpha1.Artifact{URI: uri})
	}
	return r
}

// runTask puts both points, each twice as a retry would, and gives the execution's id.
func runTask(t *testing.T, p taskhook.Plugin, r *taskhook.Request, result v1alpha1.Result) int64 {
	t.Helper()
	var id int64
	for range 2 {
		response, err := taskhook.Answer(t.Context(), p, r)
		if err != nil {
			t.Fatal(err)
		}
		got, isID := response.Placeholders["execution_id"].(int64)
		if !isID || (id != 0 && got != id) {
			t.Fatalf("placeholders are %v, were of %d", response.Placeholders, id)
		}
		id = got
		post := *r
		post.Point, post.State, post.Result = v1alpha1.Post, response.State, &result
		if response, err = taskhook.Answer(t.Context(), p, &post); err != nil || response.Decision != v1alpha1.Done {
			t.Fatalf("Post: %+v, %v", response, err)
		}
	}
	return id
}

func made(uri string) v1alpha1.Result {
	return v1alpha1.Result{Phase: "Succeeded", Outputs: v1alpha1.Outputs{
		Parameters: map[string]any{"acc": 0.5},
		Artifacts:  map[string][]v1alpha1.Artifact{"out": {{URI: uri, Type: "system.Model", Metadata: map[string]any{"framework": "sklearn"}}}},
	}}
}

func TestRunningIsSeenBeforeTheEnd(t *testing.T) {
	store, p := setUp(t)
	if _, err := p.Pre(t.Context(), task("a", "train", "s3://b/data")); err != nil {
		t.Fatal(err)
	}
	e, err := store.ExecutionByTypeAndName(t.Context(), metadata.ContainerExecution, "uid-a/Task/a.train")
	if err != nil || e.State != metadata.Running {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestWhatIsRecorded(t *testing.T) {
	store, p := setUp(t)
	id := runTask(t, p, task("a", "train", "s3://b/data"), made("s3://b/model"))
	list, err := store.ExecutionsByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := metadata.Properties{
		"display_name": "train", "task_name": "train", "task_path": "a.train", "namespace": "ml", "workflow": "a", "template": "train",
		"inputs": map[string]any{"x": 1.0}, "outputs": map[string]any{"acc": 0.5},
	}
	if diff := cmp.Diff(want, list[0].Custom); diff != "" || list[0].State != metadata.Complete {
		t.Error(list[0].State, diff)
	}
	models, err := store.ArtifactsByURI(t.Context(), "s3://b/model")
	if err != nil || len(models) != 1 || models[0].Type != "system.Model" {
		t.Fatalf("%+v, %v", models, err)
	}
	if diff := cmp.Diff(metadata.Properties{"display_name": "out", "framework": "sklearn"}, models[0].Custom); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct{ typ, name string }{{metadata.PipelineContext, "trainer"}, {metadata.PipelineRunContext, "uid-a"}} {
		got, err := store.ContextByTypeAndName(t.Context(), c.typ, c.name)
		if err != nil {
			t.Fatal(err)
		}
		if executions, err := store.ExecutionsByContext(t.Context(), got.ID); err != nil || len(executions) != 1 {
			t.Errorf("%s has %d executions, %v", c.name, len(executions), err)
		}
	}
}

// A chain of tasks over two runs, of which the second reuses the first's work, is one lineage.
func TestLineageOverRuns(t *testing.T) {
	store, p := setUp(t)
	runTask(t, p, task("a", "fetch"), made("s3://b/data"))
	runTask(t, p, task("a", "train", "s3://b/data"), made("s3://b/model"))
	reused := made("s3://b/model")
	reused.Reused = true
	cached := runTask(t, p, task("b", "train", "s3://b/data"), reused)
	runTask(t, p, task("b", "deploy", "s3://b/model"), v1alpha1.Result{Phase: "Succeeded"})
	runTask(t, p, task("b", "broken", "s3://b/model"), v1alpha1.Result{Phase: "Failed", Message: "exit code 1"})

	models, err := store.ArtifactsByURI(t.Context(), "s3://b/model")
	if err != nil || len(models) != 1 {
		t.Fatalf("a reused model is the same artifact: %+v, %v", models, err)
	}
	got, err := store.Lineage(t.Context(), models[0].ID, metadata.LineageOptions{})
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]metadata.ExecutionState{}
	for _, e := range got.Executions {
		states[e.Custom["task_path"].(string)] = e.State
	}
	want := map[string]metadata.ExecutionState{
		"a.fetch": metadata.Complete, "a.train": metadata.Complete, "b.train": metadata.Cached, "b.deploy": metadata.Complete, "b.broken": metadata.Failed,
	}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Error(diff)
	}
	if list, _ := store.ExecutionsByID(t.Context(), cached); list[0].State != metadata.Cached {
		t.Errorf("the reused one is %s", list[0].State)
	}
}

// Artifacts that have only a store block are known again by it.
func TestArtifactsWithoutURI(t *testing.T) {
	store, p := setUp(t)
	for i, block := range []string{
		`{"s3":{"bucket":"b","key":"k","endpoint":"e"}}`, `{"folder":{"path":"/tmp/x"}}`, `{"http":{"url":"https://h/f"}}`,
		`{"git":{"repo":"https://h/r","revision":"main"}}`, `{"raw":{"data":"hello"}}`,
	} {
		name := string(rune('a' + i))
		result := made("")
		result.Outputs.Artifacts["out"][0].Store = json.RawMessage(block)
		runTask(t, p, task(name, "make"), result)
		use := task(name, "use", "")
		use.Task.Inputs.Artifacts["in"][0].Store = json.RawMessage(block)
		runTask(t, p, use, v1alpha1.Result{Phase: "Succeeded"})
		e, err := store.ExecutionByTypeAndName(t.Context(), metadata.ContainerExecution, "uid-"+name+"/Task/"+name+".make")
		if err != nil {
			t.Fatal(err)
		}
		events, err := store.EventsByExecutionIDs(t.Context(), e.ID)
		if err != nil || len(events) != 1 {
			t.Fatalf("%s: %v, %v", block, events, err)
		}
		got, err := store.Lineage(t.Context(), events[0].ArtifactID, metadata.LineageOptions{Direction: metadata.Down})
		if err != nil || len(got.Executions) != 1 {
			t.Errorf("%s: %d executions read it, %v", block, len(got.Executions), err)
		}
	}
}

func TestScopes(t *testing.T) {
	store, p := setUp(t)
	graph := task("a", "part")
	graph.Scope = v1alpha1.ScopeGraph
	runTask(t, p, graph, v1alpha1.Result{Phase: "Skipped"})
	e, err := store.ExecutionByTypeAndName(t.Context(), metadata.DAGExecution, "uid-a/Graph/a.part")
	if err != nil || e.State != metadata.Canceled {
		t.Errorf("%+v, %v", e, err)
	}
}
