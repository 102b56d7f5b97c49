package hooktest

import (
	"encoding/json"
	"time"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// sampleTemplate is the template of the sample task, and its digest a name for it.
const (
	sampleTemplate = `{"name":"train","inputs":{"parameters":[{"name":"epochs"}],"artifacts":[{"name":"data","path":"/tmp/data"}]},` +
		`"container":{"image":"python:3.12","command":["python","train.py"],"args":["--epochs","{{inputs.parameters.epochs}}"]},` +
		`"outputs":{"parameters":[{"name":"accuracy","valueFrom":{"path":"/tmp/accuracy"}}],"artifacts":[{"name":"model","path":"/tmp/model"}]}}`
	sampleDigest = "sha256:3f2a7c1d0b5e4968a1d27c80e6f3b9541d8a0c6e72b4f519de83a6c07b12f4e5"
)

// Sample is a review of a training task, as Sluice sends it for a plugin that is called hook.
func Sample(hook string, point v1alpha1.Point, uid string) *v1alpha1.TaskReviewRequest {
	created := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	asked := time.Now().UTC().Truncate(time.Millisecond)
	deadline := asked.Add(time.Hour)
	r := &v1alpha1.TaskReviewRequest{
		UID: uid, Hook: hook, Point: point, Scope: v1alpha1.ScopeTask, Asked: asked, Deadline: &deadline,
		Workflow: v1alpha1.Workflow{
			Name: "train-and-test-x7k2p", Namespace: "ml", UID: "5d6e3b0a-7f6d-4f0e-9a51-2f1c7f9f6a3e",
			Pipeline: "train-and-test", Language: "argo",
			Labels:       map[string]string{"pipelines.kubeflow.org/enabled": "true", "team": "vision"},
			Annotations:  map[string]string{"description": "a sample"},
			Parameters:   map[string]any{"dataset": "flowers", "epochs": "3"},
			ArtifactRoot: "s3://artifacts/train-and-test-x7k2p",
			CreatedAt:    &created,
		},
		Task: v1alpha1.Task{
			ID: "4", Path: "train-and-test-x7k2p.train", Name: "train", Attempt: 0,
			Template: "train", TemplateSpec: json.RawMessage(sampleTemplate), TemplateDigest: sampleDigest,
			Call: json.RawMessage(`{"name":"train","template":"train","depends":"fetch","arguments":{"parameters":[{"name":"epochs","value":"3"}]}}`),
			Inputs: v1alpha1.Inputs{
				Parameters: map[string]any{"epochs": "3"},
				Artifacts: map[string][]v1alpha1.Artifact{"data": {{
					Name: "data", URI: "s3://artifacts/train-and-test-x7k2p/fetch/data.tgz", Type: "system.Dataset",
					Metadata: map[string]any{"rows": int64(150), "source": "flowers"},
					Store:    json.RawMessage(`{"s3":{"bucket":"artifacts","key":"train-and-test-x7k2p/fetch/data.tgz"}}`),
					Archive:  "tar", Digest: "sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab", Size: 4551,
				}}},
			},
			OutputArtifacts: map[string]v1alpha1.Artifact{"model": {
				Name: "model", URI: "s3://artifacts/train-and-test-x7k2p/train/model.tgz", Type: "system.Model",
				Store: json.RawMessage(`{"s3":{"bucket":"artifacts","key":"train-and-test-x7k2p/train/model.tgz"}}`),
			}},
		},
	}
	if point == v1alpha1.Post {
		zero, started := 0, asked.Add(-30*time.Second)
		r.Task.Final = true
		r.Result = &v1alpha1.Result{
			Phase: "Succeeded", ExitCode: &zero, StartedAt: &started, FinishedAt: &asked, Host: "node-3",
			Resources: map[string]int64{"cpu": 41, "memory": 12884901888},
			Outputs: v1alpha1.Outputs{
				Parameters: map[string]any{"accuracy": "0.97"},
				Artifacts: map[string][]v1alpha1.Artifact{"model": {{
					Name: "model", URI: "s3://artifacts/train-and-test-x7k2p/train/model.tgz", Type: "system.Model",
					Metadata: map[string]any{"framework": "sklearn"},
					Digest:   "sha256:0a3666a0710c08aa6d0de92ce72beeb5b93124cce1bf3701c9d6cdeb543cb73e", Size: 88213,
				}}},
			},
		}
	}
	return r
}
