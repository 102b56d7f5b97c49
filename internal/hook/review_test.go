package hook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-ml/sluice/api/v1alpha1"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

func fullPost() (engine.Run, *program.Program, engine.AskHook) {
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	zero, text := 0, "printed"
	run := testRun
	run.Created = created
	run.Annotations = map[string]string{"note": "x"}
	run.ArtifactRoot = "/artifacts"
	p := &program.Program{Language: "argo", Name: "flow-"}
	cmd := askPost("u1")
	cmd.Asked, cmd.Finished = created.Add(time.Hour), created.Add(time.Minute)
	cmd.Parameters = map[string]any{"epochs": "3", "rate": 0.5, "big": int64(9007199254740993)}
	cmd.Final, cmd.State = true, program.JSON(`{"k":1}`)
	cmd.Call = &program.Call{Name: "train", Source: program.JSON(`{"name":"train"}`)}
	cmd.Cache = &program.Cache{Scheme: "key", Name: "c", Key: "k", MaxAge: "1h"}
	cmd.Inputs = engine.Inputs{
		Parameters: map[string]any{"x": "1", "y": int64(2)},
		Artifacts:  map[string][]program.Artifact{"data": {{URI: "s3://b/k", Type: "system.Dataset", Metadata: map[string]any{"rows": int64(5)}}}},
		Defaulted:  map[string]bool{"y": true, "x": false},
	}
	cmd.OutputArtifacts = map[string]program.Artifact{"model": {URI: "s3://b/model"}}
	cmd.Result = &engine.Result{
		Phase: engine.SucceededPhase, ExitCode: &zero, Started: created, Host: "h", Resources: map[string]int64{"cpu": 3}, Reused: true,
		Outputs: engine.Outputs{Parameters: map[string]any{"acc": 0.9}, Result: &text},
	}
	return run, p, cmd
}

func TestRequestHasEverything(t *testing.T) {
	r := newRequest(fullPost())
	created := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	finished := created.Add(time.Minute)
	zero, text := 0, "printed"
	want := &v1alpha1.TaskReviewRequest{
		UID: "u1", Hook: "lineage", Point: v1alpha1.Post, Scope: v1alpha1.ScopeTask, Asked: created.Add(time.Hour),
		Workflow: v1alpha1.Workflow{
			Name: "flow", Namespace: "ml", UID: "run-1", Pipeline: "flow-", Language: "argo", ArtifactRoot: "/artifacts", CreatedAt: &created,
			Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "x"},
			Parameters: map[string]any{"epochs": "3", "rate": 0.5, "big": int64(9007199254740993)},
		},
		Task: v1alpha1.Task{
			ID: "7", Path: "flow.train", Name: "train", Final: true, Template: "train", TemplateSpec: trainTemplate.Source,
			TemplateDigest: digestOf(trainTemplate.Source), Call: json.RawMessage(`{"name":"train"}`),
			Inputs: v1alpha1.Inputs{
				Parameters: map[string]any{"x": "1", "y": int64(2)}, Defaulted: []string{"y"},
				Artifacts: map[string][]v1alpha1.Artifact{"data": {{URI: "s3://b/k", Type: "system.Dataset", Metadata: map[string]any{"rows": int64(5)}}}},
			},
			OutputArtifacts: map[string]v1alpha1.Artifact{"model": {URI: "s3://b/model"}},
			Cache:           &v1alpha1.Cache{Scheme: "key", Name: "c", Key: "k", MaxAge: "1h"},
		},
		State: json.RawMessage(`{"k":1}`),
		Result: &v1alpha1.Result{
			Phase: "Succeeded", ExitCode: &zero, Reused: true, StartedAt: &created, FinishedAt: &finished, Host: "h", Resources: map[string]int64{"cpu": 3},
			Outputs: v1alpha1.Outputs{Parameters: map[string]any{"acc": 0.9}, Result: &text},
		},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	// And it arrives as it was sent.
	data, err := encode(v1alpha1.TaskReview{TypeMeta: v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReview}, Request: r})
	if err != nil {
		t.Fatal(err)
	}
	back, err := v1alpha1.DecodeReview(data, v1alpha1.RefuseUnknown)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, back.Request); diff != "" {
		t.Error(diff)
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	run, p, cmd := fullPost()
	const secret = "hunter2-é\"<"
	cmd.Inputs.Parameters["token"] = "Bearer " + secret
	cmd.Inputs.Parameters["deep"] = map[string]any{"list": []any{1, secret}}
	cmd.Inputs.Artifacts["data"][0].Metadata["by"] = secret
	cmd.Result.Message, cmd.Result.Outputs.Result = "failed for "+secret, ptr("out: "+secret)
	cmd.Template = &program.Template{Name: "train", Source: program.JSON(`{"env":"hunter2-é\"\u003c","other":"< & >"}`)}
	cmd.Parameters = map[string]any{"p": secret}
	r := newRequest(run, p, cmd)
	digest := r.Task.TemplateDigest
	redact(r, []string{secret, "xy"})
	data, err := encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "hunter2") {
		t.Errorf("still there: %s", data)
	}
	if n := strings.Count(string(data), redacted); n != 7 {
		t.Errorf("redacted %d times, want 7: %s", n, data)
	}
	if r.Task.TemplateDigest == digest {
		t.Error("the template was changed and kept its digest")
	}
	if cmd.Inputs.Parameters["token"] != "Bearer "+secret || cmd.Inputs.Artifacts["data"][0].Metadata["by"] != secret {
		t.Error("the engine's own values were changed")
	}
}

func ptr[T any](v T) *T { return &v }
