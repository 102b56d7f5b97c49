package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/argo"
	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/capacity"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/kfp"
	"github.com/sluice-ml/sluice/internal/program"
	"github.com/sluice-ml/sluice/internal/store"
	"github.com/sluice-ml/sluice/internal/submission"
)

// judged is what a capacity profile says of one template's pods.
type judged struct {
	File     string `json:"file"`
	Template string `json:"template"`
	Fits     bool   `json:"fits"`
	capacity.Verdict
	// Unknown says why it cannot be judged before a task starts: its pod depends on a placeholder.
	Unknown string `json:"unknown,omitempty"`
}

// judge puts the pods that a manifest's templates would become before a profile. A manifest that cannot be compiled has
// none: lint says why.
func judge(ctx context.Context, profile capacity.Profile, d store.Document, others []store.Document, parameters map[string]any) []judged {
	p, err := compiled(d, others, parameters)
	if err != nil {
		return nil
	}
	var out []judged
	for _, key := range slices.Sorted(maps.Keys(p.Templates)) {
		t := p.Templates[key]
		if t.Task == nil || t.Task.Kind != program.Containers && t.Task.Kind != program.Script {
			continue
		}
		j := judged{File: d.Name, Template: t.Name}
		objects, err := pod.Build(ctx, pod.Config{ExecutorImage: "sluice-executor"}, engine.Run{Name: "lint", UID: "lint", Namespace: "default"}, engine.StartTask{
			Path: "lint." + t.Name, Pod: "lint", Template: t, Body: *t.Task, RunPod: p.Pod, Outputs: t.Outputs, Daemon: t.Daemon,
		}, anyImage{})
		if err != nil {
			j.Unknown = err.Error()
		} else {
			j.Verdict = profile.Judge(objects.Pod)
			j.Fits = j.Verdict.Fits()
		}
		out = append(out, j)
	}
	return out
}

// compiled gives a manifest's program.
func compiled(d store.Document, others []store.Document, parameters map[string]any) (*program.Program, error) {
	if !argo.IsArgo(d.Data) && kfp.IsIR(d.Data) {
		p, err := kfp.Load(kfp.Source(d))
		if err != nil {
			return nil, err
		}
		return p.Compile(kfp.Options{Lint: true})
	}
	m, err := submission.Compile(store.Submission{Documents: append([]store.Document{d}, others...)}, submission.Options{Parameters: parameters})
	if err != nil {
		return nil, err
	}
	return m.Program, nil
}

// anyImage stands in for what images run by themselves: it makes no difference to whether a pod fits.
type anyImage struct{}

func (anyImage) Image(context.Context, string, []string, string, string) (pod.Image, error) {
	return pod.Image{Entrypoint: []string{"entrypoint"}}, nil
}

// printJudged prints a line for each template, and one for each rule that it breaks.
func printJudged(w io.Writer, profile string, all []judged) {
	for _, j := range all {
		where := fmt.Sprintf("%s: template %s", j.File, j.Template)
		switch {
		case j.Unknown != "":
			fmt.Fprintf(w, "%s: cannot be judged before it starts, with its placeholders filled in: %s\n", where, j.Unknown)
			continue
		case j.Fits:
			fmt.Fprintf(w, "%s: fits %s at %s\n", where, profile, j.Size)
		default:
			for _, b := range j.Broken {
				fmt.Fprintf(w, "%s: does not fit %s: %s: %s\n", where, profile, b.Path, b.Message)
			}
		}
		for _, n := range j.Notes {
			fmt.Fprintf(w, "%s: note: %s: %s\n", where, n.Path, n.Message)
		}
	}
}

// misfits are the files with templates that do not fit.
func misfits(all []judged) map[string]bool {
	files := map[string]bool{}
	for _, j := range all {
		if !j.Fits && j.Unknown == "" {
			files[j.File] = true
		}
	}
	return files
}

// capacityNames are the profiles, for the flag's help.
func capacityNames() string { return strings.Join(capacity.Names(), ", ") }
