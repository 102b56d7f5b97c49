package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/cluster/refs"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
)

// refused says that an object can never be run, and how it ends.
type refused struct {
	phase   engine.Phase
	message string
}

func (r refused) Error() string { return r.message }

// read takes an object apart into what a run starts from: an Argo workflow with everything it refers to, or the pipeline
// in spec.sluice.
func (c *Controller) read(ctx context.Context, w workflow) (store.Submission, submission.Options, error) {
	opts := submission.Options{Name: w.GetName(), Namespace: w.GetNamespace()}
	spec, _ := w.Object["spec"].(map[string]any)
	if sluice, ok := spec["sluice"].(map[string]any); ok {
		return pipeline(w, spec, sluice, opts)
	}
	main, err := w.manifest()
	if err != nil {
		return store.Submission{}, opts, err
	}
	others, err := refs.Collect(ctx, c.client, w.GetNamespace(), spec)
	if err != nil {
		return store.Submission{}, opts, err
	}
	return store.Submission{Documents: append([]store.Document{{Name: "Workflow " + w.GetName(), Data: main}}, others...)}, opts, nil
}

// pipeline reads spec.sluice: pipelineSpec is a compiled pipeline, runtimeConfig what a run of it is given.
func pipeline(w workflow, spec, sluice map[string]any, opts submission.Options) (store.Submission, submission.Options, error) {
	ir, ok := sluice["pipelineSpec"]
	if !ok {
		return store.Submission{}, opts, refused{engine.ErrorPhase, "invalid spec: spec.sluice.pipelineSpec is missing: it is the compiled pipeline"}
	}
	var main []byte
	var err error
	if text, is := ir.(string); is { // as it was in the file
		main = []byte(text)
	} else if main, err = json.Marshal(ir); err != nil {
		return store.Submission{}, opts, fmt.Errorf("spec.sluice.pipelineSpec: %w", err)
	}
	if config, ok := sluice["runtimeConfig"].(map[string]any); ok {
		if values, ok := config["parameters"].(map[string]any); ok {
			opts.Parameters = values
		}
	}
	opts.Labels, opts.Annotations = w.GetLabels(), w.GetAnnotations()
	opts.ServiceAccount, _ = spec["serviceAccountName"].(string)
	return store.Submission{Documents: []store.Document{{Name: "pipeline of Workflow " + w.GetName(), Data: main}}}, opts, nil
}

// begin compiles an object, and keeps the submission and the first event.
func (c *Controller) begin(ctx context.Context, w workflow) (*submission.Manifest, error) {
	sub, opts, err := c.read(ctx, w)
	if err != nil {
		return nil, err
	}
	m, err := submission.Compile(sub, opts)
	if err != nil {
		return nil, refusal(err)
	}
	if sub.Args, err = json.Marshal(opts); err != nil {
		return nil, fmt.Errorf("keep the options: %w", err)
	}
	run := store.Run{
		UID: string(w.GetUID()), Name: w.GetName(), Namespace: w.GetNamespace(), Language: m.Language,
		Created: w.GetCreationTimestamp().UTC(), Submission: sub, Status: store.Status{Phase: engine.Pending},
	}
	start := engine.Start{Run: engine.Run{
		Name: run.Name, UID: run.UID, Namespace: run.Namespace, Title: m.Title, Created: run.Created, Parameters: m.Parameters,
	}}
	if start.Run.Labels, start.Run.Annotations, err = submission.Labels(m, start.Run); err != nil {
		return nil, refused{engine.FailedPhase, "invalid spec: " + err.Error()}
	}
	run.Labels = start.Run.Labels
	if at, err := time.Parse(time.RFC3339, start.Run.Annotations[annotationCronAt]); err == nil {
		start.Run.Scheduled = &at
	}
	if start.Run.Repository, err = c.repository(ctx, w, sub); err != nil {
		return nil, err
	}
	if c.ArtifactRoot != nil {
		start.Run.ArtifactRoot = c.ArtifactRoot(start.Run)
	}
	if start.Run.Hooks, err = c.choose(run.Namespace, run.Labels); err != nil {
		return nil, fmt.Errorf("select hooks: %w", err)
	}
	first := engine.Event{Time: c.Now().UTC(), Seed: rand.Uint64(), Start: &start}
	if err := c.Journal.Create(ctx, controlled(w), run, first); err != nil {
		return nil, err
	}
	return m, nil
}

// refusal says of a manifest that is wrong how its object ends: as Argo would end it.
func refusal(err error) error {
	if !errors.As(err, new(submission.Refusal)) {
		return err
	}
	var problems argo.Problems
	if !errors.As(err, &problems) {
		return refused{engine.FailedPhase, "invalid spec: " + err.Error()}
	}
	if message, invalid := problems.InvalidSpec(); invalid {
		return refused{engine.FailedPhase, message}
	}
	var lines []string
	for _, p := range problems.Sorted().Errors() {
		lines = append(lines, strings.TrimSpace(p.Path+" "+p.Message))
	}
	return refused{engine.FailedPhase, "invalid spec: " + strings.Join(lines, "; ")}
}

// recall compiles a run again as it was submitted.
func recall(run store.Run) (*submission.Manifest, error) {
	var opts submission.Options
	d := json.NewDecoder(strings.NewReader(string(run.Submission.Args)))
	d.UseNumber()
	if err := d.Decode(&opts); err != nil {
		return nil, fmt.Errorf("its options cannot be read: %w", err)
	}
	for k, v := range opts.Parameters {
		opts.Parameters[k] = submission.Plain(v)
	}
	if len(run.Submission.Documents) == 0 {
		return nil, errors.New("its submission is empty")
	}
	return submission.Compile(run.Submission, opts)
}
