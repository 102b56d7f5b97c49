// Package submission turns what a user submits, in either language, into what a run starts from: the one place that knows both
// front ends. The command line uses it for runs on this machine, the controller for Workflow objects.
package submission

import "github.com/sluice-ml/sluice/internal/program"

// Options are what a submission says besides the manifest. They are kept with the run, so that it can be resumed,
// retried and resubmitted with the same ones.
type Options struct {
	// Parameters are JSON values, or [Given] ones.
	Parameters map[string]any `json:"parameters,omitempty"`
	// Artifacts are given to the workflow or pipeline by the names of its inputs.
	Artifacts      map[string][]program.Artifact `json:"artifacts,omitempty"`
	Name           string                        `json:"name,omitempty"`
	GenerateName   string                        `json:"generateName,omitempty"`
	Namespace      string                        `json:"namespace,omitempty"`
	Labels         map[string]string             `json:"labels,omitempty"`
	Annotations    map[string]string             `json:"annotations,omitempty"`
	Entrypoint     string                        `json:"entrypoint,omitempty"`
	ServiceAccount string                        `json:"serviceAccount,omitempty"`
	// Resubmitted says that an earlier run was of the same manifest: what ended that one (spec.shutdown) is not meant.
	Resubmitted bool `json:"resubmitted,omitempty"`
}
