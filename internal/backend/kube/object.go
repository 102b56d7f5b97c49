package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-ml/sluice/internal/artifact"
	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/program"
)

// objectTask is an attempt at a resource template: it acts on an object of the cluster, and has no pod.
type objectTask struct {
	cancel context.CancelCauseFunc
	result *engine.Result // under the backend's lock
}

// stoppedError ends an objectTask with a message for people.
type stoppedError string

func (s stoppedError) Error() string { return string(s) }

func (o *objectTask) stop(cmd engine.StopTask) { o.cancel(stoppedError(result.StopMessage(cmd))) }

// startObject begins a resource template, or tells once more how it ended. One that was begun before a crash is begun
// again: what it makes has a name that tells it apart. The lock is held.
func (b *Backend) startObject(id key, run engine.Run, cmd engine.StartTask) {
	tell := func(r engine.Result) {
		b.sink.Tell(id.run, engine.Event{Finished: &engine.Finished{Node: cmd.Node, Result: r}})
	}
	if o := b.objects[id]; o != nil {
		if o.result != nil {
			tell(*o.result)
		}
		return
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	o := &objectTask{cancel: cancel}
	b.objects[id] = o
	b.done.Go(func() {
		defer cancel(nil)
		b.sink.Tell(id.run, engine.Event{Running: &engine.Running{Node: cmd.Node}})
		started := b.cfg.Now().UTC()
		outputs, err := b.act(ctx, run, cmd)
		r := objectResult(outputs, err, context.Cause(ctx))
		r.Started = started
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.objects[id] != o || b.ctx.Err() != nil {
			return
		}
		o.result = &r
		tell(r)
	})
}

// objectResult says how a resource template ended. As with Argo, whose executor exits with 64 then, what the API server refuses and
// what the conditions call a failure is Failed.
func objectResult(outputs engine.Outputs, err, cause error) engine.Result {
	code := 0
	if err == nil {
		return engine.Result{Phase: engine.SucceededPhase, ExitCode: &code, Outputs: outputs}
	}
	code = 64
	var stopped stoppedError
	var missing unavailable
	switch {
	case errors.As(cause, &stopped):
		return engine.Result{Phase: engine.FailedPhase, Message: stopped.Error()}
	case errors.As(err, &missing):
		return engine.Result{Phase: engine.ErrorPhase, Message: err.Error()}
	case passing(err):
		return engine.Result{Phase: engine.ErrorPhase, Message: err.Error(), Transient: true}
	}
	return engine.Result{Phase: engine.FailedPhase, Message: fmt.Sprintf("Error (exit code %d): %s", code, clip(err.Error())), ExitCode: &code}
}

// unavailable is an error about the controller, not about the task.
type unavailable string

func (u unavailable) Error() string { return string(u) }

// objectBody is Argo's ResourceTemplate.
type objectBody struct {
	Action        string `json:"action"`
	MergeStrategy string `json:"mergeStrategy"`
	Manifest      string `json:"manifest"`
	ManifestFrom  *struct {
		Artifact *struct {
			Name string `json:"name"`
		} `json:"artifact"`
	} `json:"manifestFrom"`
	SetOwnerReference bool     `json:"setOwnerReference"`
	SuccessCondition  string   `json:"successCondition"`
	FailureCondition  string   `json:"failureCondition"`
	Flags             []string `json:"flags"`
}

// act carries a resource template out.
func (b *Backend) act(ctx context.Context, run engine.Run, cmd engine.StartTask) (engine.Outputs, error) {
	var body objectBody
	if err := json.Unmarshal(cmd.Body.Resource, &body); err != nil {
		return engine.Outputs{}, fmt.Errorf("read the resource template: %w", err)
	}
	if b.cfg.Objects == nil {
		return engine.Outputs{}, unavailable("this controller has no client for resource templates")
	}
	account, err := serviceAccount(cmd)
	if err != nil {
		return engine.Outputs{}, err
	}
	manifest := body.Manifest
	if from := body.ManifestFrom; from != nil && from.Artifact != nil {
		if manifest, err = b.manifestFrom(ctx, run, cmd, from.Artifact.Name); err != nil {
			return engine.Outputs{}, err
		}
	}
	conditions, err := parseConditions(body.SuccessCondition, body.FailureCondition)
	if err != nil {
		return engine.Outputs{}, err
	}
	if body.Action == "delete" && (conditions.any() || len(cmd.Outputs.Parameters) > 0) {
		return engine.Outputs{}, errors.New("successCondition, failureCondition and outputs are not supported for delete action")
	}
	client, err := b.cfg.Objects.As(run.Namespace, account)
	if err != nil {
		return engine.Outputs{}, unavailable(fmt.Sprintf("make a client for service account %s: %v", account, err))
	}
	d := &deed{
		client: client, mapper: b.cfg.Objects, run: run, identity: key{run.UID, cmd.Path}.identity(), owned: body.SetOwnerReference,
		strategy: body.MergeStrategy,
	}
	if err := d.read(body.Action, manifest, body.Flags); err != nil {
		return engine.Outputs{}, err
	}
	if err := d.do(ctx, body.Action); err != nil {
		return engine.Outputs{}, err
	}
	if err := d.wait(ctx, conditions); err != nil {
		return engine.Outputs{}, err
	}
	return b.objectOutputs(ctx, cmd, d.object)
}

// serviceAccount is the account whose rights a template has: its own, else the workflow's, else the namespace's default.
func serviceAccount(cmd engine.StartTask) (string, error) {
	account := "default"
	for _, settings := range []program.JSON{cmd.RunPod, cmd.Body.Pod} {
		if len(settings) == 0 {
			continue
		}
		var s struct {
			ServiceAccountName string `json:"serviceAccountName"`
		}
		if err := json.Unmarshal(settings, &s); err != nil {
			return "", fmt.Errorf("read the pod settings: %w", err)
		}
		if s.ServiceAccountName != "" {
			account = s.ServiceAccountName
		}
	}
	return account, nil
}

// maxManifest bounds a manifest that comes from an artifact, in bytes: a cluster takes no larger object.
const maxManifest = 3 << 20

// manifestFrom reads a manifest from an input artifact.
func (b *Backend) manifestFrom(ctx context.Context, run engine.Run, cmd engine.StartTask, name string) (string, error) {
	list := cmd.Inputs.Artifacts[name]
	if len(list) != 1 {
		return "", fmt.Errorf("manifestFrom: there is no input artifact %q", name)
	}
	opts := b.cfg.Artifacts(run)
	opts.Limits = artifact.Limits{Bytes: maxManifest}
	if err := small(ctx, list[0], opts); err != nil {
		return "", fmt.Errorf("manifestFrom: artifact %s: %w", name, err)
	}
	folder, err := os.MkdirTemp("", "sluice-manifest-")
	if err != nil {
		return "", fmt.Errorf("manifestFrom: %w", err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "manifest")
	if err := artifact.Fetch(ctx, list[0], file, opts); err != nil {
		return "", fmt.Errorf("manifestFrom: %w", err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("manifestFrom: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxManifest {
		return "", fmt.Errorf("manifestFrom: artifact %s is no file of at most %d bytes", name, maxManifest)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("manifestFrom: %w", err)
	}
	return string(data), nil
}

// small looks at an artifact before it is fetched: the controller has little room for other people's files.
func small(ctx context.Context, a program.Artifact, opts artifact.Options) error {
	store, err := artifact.OpenArtifact(a, opts)
	if err != nil {
		return err
	}
	info, err := store.Stat(ctx, "")
	switch {
	case err != nil:
		return err
	case info.Tree && a.SubPath == "":
		return errors.New("it is a folder, no manifest")
	case info.Size > maxManifest:
		return fmt.Errorf("it has %d bytes, and a manifest at most %d", info.Size, maxManifest)
	}
	return nil
}
